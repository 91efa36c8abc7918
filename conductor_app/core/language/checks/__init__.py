"""What is wrong with a document that somebody wrote: every complaint at once, never an exception.

The same tables of fields that the complaints are read from also say how a document looks with its defaults filled in.
"""

from .event_handler import read_handler
from .reading import normalised_task, normalised_workflow, typed_task, typed_workflow
from .task_definition import task_complaints
from .workflow import workflow_complaints

__all__ = [
    "normalised_task",
    "normalised_workflow",
    "read_handler",
    "task_complaints",
    "typed_task",
    "typed_workflow",
    "workflow_complaints",
]
