"""The context of the current operation, which is added to log lines and spans."""

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from . import spans

MAX_FACT_LENGTH = 200
"""The maximum length of a fact. Ids are shorter. Longer texts of clients are truncated."""
RUN_FACT_NAMES = ("run_id", "task_id", "attempt_id")

_context: ContextVar[dict[str, str | int]] = ContextVar("log_context", default={})  # noqa: B039 - the dictionary is never mutated


@contextmanager
def log_context(operation: str, **facts: str | int) -> Iterator[None]:
    """Add facts to the log lines of the block, and trace it as a span."""
    new_facts = _format_facts(facts)
    before = _context.get()
    if new_facts.get("run_id", before.get("run_id")) != before.get("run_id"):
        before = {name: fact for name, fact in before.items() if name not in RUN_FACT_NAMES}
    token = _context.set({**before, **new_facts})
    try:
        with spans.span(operation, new_facts):
            yield
    finally:
        _context.reset(token)


def reset(**facts: str | int) -> None:
    """Replace the facts of this thread, because it starts another operation."""
    _context.set(_format_facts(facts))


def bind(**facts: str | int) -> None:
    """Add facts to the current operation."""
    _context.set({**_context.get(), **_format_facts(facts)})


def merge_context(logger: Any, method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Return a log line with the facts of its context. Its own facts take precedence."""
    for name, fact in _context.get().items():
        line.setdefault(name, fact)
    return line


def _format_facts(facts: dict[str, str | int]) -> dict[str, str | int]:
    return {name: fact[:MAX_FACT_LENGTH] if isinstance(fact, str) else fact for name, fact in facts.items() if fact}


def request_id() -> str:
    """Return the id of the current HTTP request, or ""."""
    return str(_context.get().get("request_id", ""))
