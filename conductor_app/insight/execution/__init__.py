"""Runs and their attempts as Conductor's documents: what clients see, and what a failure workflow is told."""

from .imagined import imagined_document
from .lookups import find_attempt, find_run, logs_of
from .rows import attempts_of, facts_of, rows_of
from .runs import run_document, wire_run, wire_runs
from .tasks import task_document, task_documents, wire_task, wire_task_and_definition, wire_tasks

__all__ = [
    "attempts_of",
    "facts_of",
    "find_attempt",
    "find_run",
    "imagined_document",
    "logs_of",
    "rows_of",
    "run_document",
    "task_document",
    "task_documents",
    "wire_run",
    "wire_runs",
    "wire_task",
    "wire_task_and_definition",
    "wire_tasks",
]
