"""Labels on runs: given at a start, put on and taken off later, whatever the run is doing."""

from collections.abc import Iterable

from django.db import transaction

from .. import clock
from ..core.errors import Invalid, NotFound
from ..models import AuditEntry, Run, RunLabel
from ..models.labels import LONGEST_LABEL
from ..store.rows import strip_nul

MOST_LABELS = 20


def clean_labels(labels: Iterable[str]) -> list[str]:
    """The labels without blanks around them, each once. Raises Invalid where one cannot be, or there are too many."""
    found = list(dict.fromkeys(strip_nul(label).strip() for label in labels))
    for label in found:
        if not label or len(label) > LONGEST_LABEL or "," in label or not label.isprintable():
            raise Invalid(f"A label has 1 to {LONGEST_LABEL} characters and no comma: {label[:80]!r} is none.")
    _refuse_too_many(len(found))
    return found


def save_labels(run_id: str, labels: Iterable[str]) -> None:
    """Write the labels of a run that is being created, in the transaction of its creation."""
    RunLabel.objects.bulk_create(RunLabel(run_id=run_id, name=label) for label in labels)


def add_labels(run_id: str, labels: Iterable[str], by: str, reason: str = "") -> list[str]:
    """Put labels on a run; those that are new to it. Raises NotFound, Invalid."""
    wanted = clean_labels(labels)
    with transaction.atomic():
        known = _lock_labels(run_id)
        fresh = [label for label in wanted if label not in known]
        _refuse_too_many(len(known) + len(fresh))
        save_labels(run_id, fresh)
        _record_change(run_id, "add labels", by, reason, fresh)
    return fresh


def remove_labels(run_id: str, labels: Iterable[str], by: str, reason: str = "") -> list[str]:
    """Take labels off a run; those that it had. Raises NotFound."""
    with transaction.atomic():
        known = _lock_labels(run_id)
        gone = [label for label in dict.fromkeys(labels) if label in known]
        RunLabel.objects.filter(run_id=run_id, name__in=gone).delete()
        _record_change(run_id, "remove labels", by, reason, gone)
    return gone


def _lock_labels(run_id: str) -> set[str]:
    """The labels of a run, whose row is locked: two who add at once must not exceed the number together."""
    if Run.objects.select_for_update().filter(pk=run_id).values("pk").first() is None:
        raise NotFound(f"No such workflow found by id: {run_id}")
    return set(RunLabel.objects.filter(run_id=run_id).values_list("name", flat=True))


def _refuse_too_many(count: int) -> None:
    if count > MOST_LABELS:
        raise Invalid(f"A run has {MOST_LABELS} labels at most.")


def _record_change(run_id: str, action: str, by: str, reason: str, labels: list[str]) -> None:
    if labels:
        facts = {"labels": labels}
        AuditEntry.objects.create(
            at=clock.now(), actor=by, action=action, object_type="run", object_id=run_id, reason=reason, facts=facts
        )
