"""Commands on the labels of runs, which are set at the start and can change in every status."""

from collections.abc import Iterable

from django.db import transaction

from ...core.errors import Invalid, NotFound
from ...models import Run, RunLabel
from ...models.labels import MAX_LABEL_LENGTH
from ...store.rows import strip_nul
from .. import audit

MAX_LABELS = 20


def clean_labels(labels: Iterable[str]) -> list[str]:
    """Return the labels without surrounding spaces and duplicates.

    Raises:
        Invalid: when a label is invalid, or there are too many.
    """
    found = list(dict.fromkeys(strip_nul(label).strip() for label in labels))
    for label in found:
        if not label or len(label) > MAX_LABEL_LENGTH or "," in label or not label.isprintable():
            raise Invalid(
                f"A label must have 1 to {MAX_LABEL_LENGTH} printable characters, no comma (got {label[:80]!r})."
            )
    _refuse_too_many(len(found))
    return found


def save_labels(run_id: str, labels: Iterable[str]) -> None:
    """Save the labels of a new run, in the transaction that creates it."""
    RunLabel.objects.bulk_create(RunLabel(run_id=run_id, name=label) for label in labels)


def add_labels(run_id: str, labels: Iterable[str], by: str, reason: str = "") -> list[str]:
    """Add labels to a run. Returns the labels that it did not have before.

    Raises:
        NotFound: when there is no such run.
        Invalid: when a label is invalid, or the run would have too many.
    """
    wanted = clean_labels(labels)
    with transaction.atomic():
        known = _lock_labels(run_id)
        added = [label for label in wanted if label not in known]
        _refuse_too_many(len(known) + len(added))
        save_labels(run_id, added)
        _record_change(run_id, "add labels", by, reason, added)
    return added


def remove_labels(run_id: str, labels: Iterable[str], by: str, reason: str = "") -> list[str]:
    """Remove labels from a run. Returns the labels that it had.

    Raises:
        NotFound: when there is no such run.
    """
    with transaction.atomic():
        known = _lock_labels(run_id)
        removed = [label for label in dict.fromkeys(labels) if label in known]
        RunLabel.objects.filter(run_id=run_id, name__in=removed).delete()
        _record_change(run_id, "remove labels", by, reason, removed)
    return removed


def _lock_labels(run_id: str) -> set[str]:
    """Lock a run and return its labels. The lock keeps concurrent requests from exceeding the limit together.

    Raises:
        NotFound: when there is no such run.
    """
    if Run.objects.select_for_update().filter(pk=run_id).values("pk").first() is None:
        raise NotFound(f"No such workflow found by id: {run_id}")
    return set(RunLabel.objects.filter(run_id=run_id).values_list("name", flat=True))


def _refuse_too_many(count: int) -> None:
    if count > MAX_LABELS:
        raise Invalid(f"A run can have at most {MAX_LABELS} labels.")


def _record_change(run_id: str, action: str, by: str, reason: str, labels: list[str]) -> None:
    if labels:
        facts = {"labels": labels}
        audit.record("run", run_id, action, by, reason=reason, facts=facts)
