"""Rows of search results: the columns that a list shows, with shortened payloads."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.db.models import Case, CharField, F, QuerySet, TextField, Value, When
from django.db.models.functions import Cast, Concat, Substr

from ....models import Attempt, Run
from ...row_types import row_type

MAX_SHOWN_LENGTH, MAX_SHOWN = 10_000, 10_000_000
"""Maximum characters of one payload, and of all payloads of a page."""

RUN_COLUMNS = (
    "id", "name", "version", "status", "reason", "correlation_id", "priority", "created_at", "updated_at", "ended_at",
    "parent_id", "failed_refs", "failed_names", "domains", "started_by", "event", "idempotency_key", "input_size",
    "output_size", "input_path", "output_path",
)  # fmt: skip
ATTEMPT_COLUMNS = (
    "id", "run_id", "name", "status", "reason", "domain", "scheduled_at", "started_at", "updated_at", "ended_at",
    "callback_ms", "number", "worker", "run__name", "run__correlation_id", "run__priority", "task__type",
    "task__status", "task__attempt_id", "input_size", "output_size", "input_path", "output_path",
)  # fmt: skip
if TYPE_CHECKING:
    RunLine = Any
else:
    RunLine = row_type("RunLine", [*RUN_COLUMNS, "input", "output"])
AttemptLine = row_type("AttemptLine", [*(name.replace("__", "_") for name in ATTEMPT_COLUMNS), "input", "output"])


def run_lines(ids: Sequence[str]) -> list[RunLine]:
    """Return the runs with these ids, in their order."""
    return _load_lines(Run.objects.all(), RUN_COLUMNS, RunLine, ids)


def attempt_lines(ids: Sequence[str]) -> list[AttemptLine]:
    """Return the attempts with these ids, in their order."""
    return _load_lines(Attempt.objects.all(), ATTEMPT_COLUMNS, AttemptLine, ids)


def _load_lines(rows: QuerySet, columns: Sequence[str], kind: Any, ids: Sequence[str]) -> list[Any]:
    if not ids:
        return []
    most = min(MAX_SHOWN_LENGTH, MAX_SHOWN // len(ids))
    excerpts = {f"{name}_shown": _payload_excerpt(name, most) for name in ("input", "output")}
    found = rows.filter(pk__in=list(ids)).annotate(**excerpts).values_list(*columns, *excerpts)
    by_id = {values[0]: kind._make(values) for values in found}
    return [by_id[id] for id in ids if id in by_id]


def _payload_excerpt(name: str, most: int) -> Case:
    """Return the text of a payload. Of a long one, return only the beginning, which is not valid JSON."""
    text = Cast(F(name), TextField())
    beginning = Concat(Value("…"), Substr(text, 1, most), output_field=CharField())
    return Case(When(**{f"{name}_size__lte": most}, then=text), default=beginning, output_field=TextField())
