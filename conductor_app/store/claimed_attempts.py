"""Load claimed attempts with their tasks and runs in one statement, for the responses to workers."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.db import connection, models

from ..core.masking import MARK
from ..models import Attempt, Run, Task
from ..models.fields import DocumentField, loads, loads_encrypted
from .statements import fetch, placeholders

PAYLOAD_COLUMNS = ("input", "output", "variables")


def _columns(model: type[models.Model], *excluded: str) -> "list[models.Field[Any, Any]]":
    return [field for field in model._meta.concrete_fields if field.name not in excluded]


SELECTED_MODELS = (
    (Attempt, "a", _columns(Attempt)),
    (Task, "t", _columns(Task)),
    (Run, "r", _columns(Run, *PAYLOAD_COLUMNS)),
)
ATTEMPT_COLUMNS = tuple(str(field.column) for field in SELECTED_MODELS[0][2])
CLAIMED_COLUMNS = ", ".join(f"{alias}.{field.column}" for _, alias, fields in SELECTED_MODELS for field in fields)
"""The columns that `parse_claimed` reads, of an attempt `a`, its task `t` and its run `r`. The first is not null."""
SQL = (
    f"SELECT {CLAIMED_COLUMNS} FROM conductor_attempt a JOIN conductor_task t ON t.id = a.task_id "
    "JOIN conductor_run r ON r.id = a.run_id "
    "WHERE a.id IN "
)


def load_claimed(ids: Sequence[str]) -> list[Attempt]:
    """Return the attempts in the order of the ids, with `task` and `run` (without its payloads) loaded.

    Sets `has_masked_values` to True on an attempt if a payload has encrypted parts.
    """
    rows = fetch(f"{SQL}({placeholders(ids)})", ids)
    by_id = {attempt.id: attempt for attempt in map(parse_claimed, rows)}
    return [by_id[id] for id in ids if id in by_id]


def parse_claimed(row: tuple[Any, ...]) -> Attempt:
    """Return an attempt with its task and run from a row with CLAIMED_COLUMNS."""
    attempt, task, run = _build_rows(row)
    attempt.task, attempt.run = task, run
    attempt.has_masked_values = any(isinstance(value, str) and MARK in value for value in row)
    return attempt


def _build_rows(row: tuple[Any, ...]) -> Iterator[Any]:
    start = 0
    for model, _, fields in SELECTED_MODELS:
        values = row[start : start + len(fields)]
        start += len(fields)
        names = [field.attname for field in fields]
        yield model.from_db(
            connection.alias, names, [_parse_column(*pair) for pair in zip(fields, values, strict=True)]
        )


def _parse_column(field: "models.Field[Any, Any]", value: Any) -> Any:
    if not isinstance(field, DocumentField):
        return value
    # Masked values are `***` in the task, as in every response. Only the payload has their real values.
    return loads(value) if field.model is Task else loads_encrypted(value)
