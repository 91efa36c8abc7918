"""Decisions without access to the database: what a command needs is a data request, or is loaded before."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import local
from typing import Any

import pytest
from django.db.backends.utils import CursorWrapper

from conductor_app.db import pipeline as pg_pipeline
from conductor_app.runs.commands import change
from conductor_app.taskcluster.commands import tasks as standalone

DECISIONS = ((change, "apply_command"), (standalone, "apply_command"))
"""The calls of the core that decide about runs and standalone tasks."""
STATEMENTS = ((CursorWrapper, "_execute"), (CursorWrapper, "_executemany"), (pg_pipeline, "_send_statements"))
_thread = local()


def forbid_statements(patch: pytest.MonkeyPatch) -> None:
    """Raise an error at each statement that a decision executes."""
    for module, name in DECISIONS:
        patch.setattr(module, name, _in_decision(getattr(module, name)))
    for owner, name in STATEMENTS:
        patch.setattr(owner, name, _outside_of_decisions(getattr(owner, name)))


def _in_decision(decide: Callable[..., Any]) -> Callable[..., Any]:
    def decide_without_database(*args: Any, **kwargs: Any) -> Any:
        with _decision():
            return decide(*args, **kwargs)

    return decide_without_database


@contextmanager
def _decision() -> Iterator[None]:
    _thread.decides = True
    try:
        yield
    finally:
        _thread.decides = False


def _outside_of_decisions(execute: Callable[..., Any]) -> Callable[..., Any]:
    def execute_outside_of_decisions(*args: Any, **kwargs: Any) -> Any:
        if getattr(_thread, "decides", False):
            pytest.fail(f"A decision has executed a statement: {args[1] if len(args) > 2 else args[0]}")
        return execute(*args, **kwargs)

    return execute_outside_of_decisions
