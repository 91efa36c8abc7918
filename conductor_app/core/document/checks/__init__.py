"""What is wrong with a document that somebody wrote: every complaint at once, never an exception.

The same tables of fields that the complaints are read from also say how a document looks with its defaults filled in.
"""

from .event_handler import read_handler
from .normalization import coerce_task, coerce_workflow, normalize_task, normalize_workflow
from .task_definition import task_errors
from .workflow_checks import workflow_errors

__all__ = [
    "coerce_task",
    "coerce_workflow",
    "normalize_task",
    "normalize_workflow",
    "read_handler",
    "task_errors",
    "workflow_errors",
]
