"""Rows of attempts with the columns of their tasks and runs that API replies need."""

from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import orjson
from django.db.models import QuerySet, TextField, Value
from django.db.models.functions import Cast

from ....models import Attempt, Run
from ....models.claimed_attempts import ClaimedAttempt
from ...row_types import row_type

ROW_COLUMNS = (
    "id", "number", "seq", "status", "domain", "scheduled_at", "started_at", "updated_at", "ended_at", "lease_ms",
    "delay_ms", "callback_ms", "rate_count", "rate_seconds", "poll_count", "worker", "reason", "previous_id",
    "child_id", "name", "run_id", "ends_at", "task__ref", "task__iteration_path", "task__type", "task__status",
    "task__attempt_id", "task__iteration", "task__branch_head", "input_path", "output_path",
)  # fmt: skip
RUN_FACTS = ("id", "name", "correlation_id", "priority", "resolved_definition_id")

if TYPE_CHECKING:
    Row = Any
    RunFacts = Any
else:
    Row = row_type("Row", [name.replace("task__", "task_") for name in ROW_COLUMNS] + ["input", "output", "step_state"])
    RunFacts = row_type("RunFacts", RUN_FACTS)

_column_values = attrgetter(*(name.replace("__", ".") for name in ROW_COLUMNS))
_attempt_values = attrgetter(*(name.replace("__", ".") for name in ROW_COLUMNS), "input", "output", "task.step_state")
_run_values = attrgetter(*RUN_FACTS)
_TEXT_COLUMNS = {"input_text": "input", "output_text": "output", "step_state_text": "task__step_state"}


def to_row(attempt: Attempt) -> Row:
    """Return the row of an attempt that was loaded as an object."""
    return Row._make(_attempt_values(attempt))


def claimed_row(attempt: ClaimedAttempt) -> Row:
    """Return the row of a claimed attempt. Its payloads are serialized JSON."""
    input, output = orjson.Fragment(attempt.input_text), orjson.Fragment(attempt.output_text)
    return Row._make((*_column_values(attempt), input, output, attempt.task.step_state_text))


def load_rows(attempts: "QuerySet[Attempt]", *, with_payloads: bool = True) -> list[Row]:
    """Load the rows of a query in one statement. Payloads remain JSON text; without them, they are empty objects."""
    texts = {
        name: Cast(path, TextField()) if with_payloads else Value("{}", TextField())
        for name, path in _TEXT_COLUMNS.items()
    }
    return list(map(Row._make, attempts.annotate(**texts).values_list(*ROW_COLUMNS, *texts)))


def attempts_of(run_ids: Iterable[str]) -> "QuerySet[Attempt]":
    """Return the attempts of these runs in the order of their creation."""
    return Attempt.objects.filter(run_id__in=list(run_ids)).order_by("run_id", "seq")


def run_facts_of(run: Any) -> RunFacts:
    """Return the fields of a run that the documents of its tasks contain."""
    return RunFacts._make(_run_values(run))


def run_facts(run_ids: Iterable[str]) -> list[RunFacts]:
    """Load the fields of several runs that the documents of their tasks contain."""
    return list(map(RunFacts._make, Run.objects.filter(pk__in=list(run_ids)).values_list(*RUN_FACTS)))
