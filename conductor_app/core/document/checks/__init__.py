"""Validation of documents. All errors are collected; invalid documents do not raise exceptions.

The field tables that validate a document also give its defaults.
"""

from .event_handler import read_handler
from .normalization import coerce_task, coerce_workflow, normalize_task, normalize_workflow
from .task_definition import task_errors
from .workflow_checks import has_too_many_expressions, has_too_many_steps, inline_errors, workflow_errors

__all__ = [
    "coerce_task",
    "coerce_workflow",
    "has_too_many_expressions",
    "has_too_many_steps",
    "inline_errors",
    "normalize_task",
    "normalize_workflow",
    "read_handler",
    "task_errors",
    "workflow_errors",
]
