"""Runs and attempts as Conductor's documents, for API replies and for the input of failure workflows."""

from .attempt_rows import attempts_of, load_rows, run_facts_of
from .lookups import find_attempt, find_run, load_logs
from .simulated_documents import simulated_document
from .task_documents import task_document, task_documents, wire_claimed_task, wire_task, wire_tasks
from .workflow_documents import run_document, wire_run, wire_runs

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
    "wire_claimed_task",
    "wire_run",
    "wire_runs",
    "wire_task",
    "wire_tasks",
]
