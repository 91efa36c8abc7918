"""Runs and attempts as Conductor's documents, for API replies and for the input of failure workflows."""

from .lookups import find_attempt, find_run, load_logs
from .rows import attempts_of, load_rows, run_facts_of
from .runs import run_document, wire_run, wire_runs
from .simulated import simulated_document
from .tasks import task_document, task_documents, wire_task, wire_task_and_definition, wire_tasks

__all__ = [
    "attempts_of",
    "find_attempt",
    "find_run",
    "load_logs",
    "load_rows",
    "run_document",
    "run_facts_of",
    "simulated_document",
    "task_document",
    "task_documents",
    "wire_run",
    "wire_runs",
    "wire_task",
    "wire_task_and_definition",
    "wire_tasks",
]
