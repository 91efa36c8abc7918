"""What is being done: lines that are logged meanwhile say so, and a span where traces are collected."""

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from . import spans

MAX_FACT_LENGTH = 200
"""Ids are shorter; what a client has made up is cut."""
RUN_FACT_NAMES = ("run_id", "task_id", "attempt_id")

_context: ContextVar[dict[str, str | int]] = ContextVar("about", default={})  # noqa: B039, it is replaced, never changed


@contextmanager
def log_context(what: str, **facts: str | int) -> Iterator[None]:
    """Let lines say what they are about while the block runs, and make a span of it."""
    found = _format_facts(facts)
    before = _context.get()
    if found.get("run_id", before.get("run_id")) != before.get("run_id"):
        before = {name: fact for name, fact in before.items() if name not in RUN_FACT_NAMES}
    token = _context.set({**before, **found})
    try:
        with spans.span(what, found):
            yield
    finally:
        _context.reset(token)


def reset(**facts: str | int) -> None:
    """A thread turns to something else: lines say these facts, and nothing of what it did before."""
    _context.set(_format_facts(facts))


def bind(**facts: str | int) -> None:
    """More is known of what is being done."""
    _context.set({**_context.get(), **_format_facts(facts)})


def merge_context(logger: Any, method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A log line with what it is about; what it says itself goes first."""
    for name, fact in _context.get().items():
        line.setdefault(name, fact)
    return line


def _format_facts(facts: dict[str, str | int]) -> dict[str, str | int]:
    return {name: fact[:MAX_FACT_LENGTH] if isinstance(fact, str) else fact for name, fact in facts.items() if fact}


def request_id() -> str:
    """The id of the request that is being answered; empty where none is."""
    return str(_context.get().get("request_id", ""))
