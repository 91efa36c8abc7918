"""The action that a bulk operation applies to each run: an engine operation, or a change of labels."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from django.db import transaction

from ...models import BulkOperation
from ..runs import labels
from ..runs.operations import Operation, apply_operation

ItemAction = Callable[[str, Callable[[], None]], None]
"""Applies the action to a run id, and calls the second argument in the same transaction."""
OPTIONS = ("latest", "resume_children", "with_failure")
LABELLING: dict[str, Callable[..., Any]] = {"label": labels.add_labels, "unlabel": labels.remove_labels}


def bulk_action_of(row: BulkOperation) -> ItemAction:
    """Return the function that applies the action of an operation to one run."""
    reason = f"{row.reason} (bulk operation {row.pk})".strip()
    if row.action in LABELLING:
        return partial(_change_labels, LABELLING[row.action], row.options.get("labels", ()), row.by, reason)
    ticked: dict[str, Any] = {name: True for name in OPTIONS if row.options.get(name)}
    return partial(_apply_operation, Operation(row.action, reason=reason, **ticked), row.by)


def _apply_operation(operation: Operation, by: str, run_id: str, note: Callable[[], None]) -> None:
    apply_operation(run_id, operation, by, within_transaction=lambda now: note())


def _change_labels(
    change: Callable[..., Any], names: Sequence[str], by: str, reason: str, run_id: str, note: Callable[[], None]
) -> None:
    with transaction.atomic():
        change(run_id, names, by, reason)
        note()
