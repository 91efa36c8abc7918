"""Durable workflows for Django: the server, and the Python API for the code of another Django project.

The names of the API are imported at their first use: an import of this package loads nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .in_process.api import (
        get_run,
        pause,
        rerun,
        resume,
        retry,
        signal,
        start_workflow,
        terminate,
        wait_for,
    )
    from .in_process.records import WorkflowRun, WorkflowTask
    from .in_process.tasks import TaskContext, TaskFailed, TaskPostponed, worker_task
    from .in_process.worker import run_due_tasks

_MODULES = {
    **dict.fromkeys(
        ("get_run", "pause", "rerun", "resume", "retry", "signal", "start_workflow", "terminate", "wait_for"), "api"
    ),
    **dict.fromkeys(("WorkflowRun", "WorkflowTask"), "records"),
    **dict.fromkeys(("TaskContext", "TaskFailed", "TaskPostponed", "worker_task"), "tasks"),
    "run_due_tasks": "worker",
}

__all__ = [
    "TaskContext",
    "TaskFailed",
    "TaskPostponed",
    "WorkflowRun",
    "WorkflowTask",
    "get_run",
    "pause",
    "rerun",
    "resume",
    "retry",
    "run_due_tasks",
    "signal",
    "start_workflow",
    "terminate",
    "wait_for",
    "worker_task",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.in_process.{_MODULES[name]}"), name)
