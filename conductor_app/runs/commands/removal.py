"""Commands that remove runs, alone or with their descendants, and on retention policies."""

from collections.abc import Iterator
from typing import Any

from django.db import transaction
from django.db.models import F

from ...access import audit
from ...core.errors import Invalid, NotFound
from ...db.size import size_in_bytes
from ...utils import clock
from ..models import DailyStorage, RetentionPolicy, Run
from ..queries.retention import removable_runs, retention_policies
from .lifecycle import remove_run, terminate_run

GENERATION = 500
"""Number of runs whose children are read in one query."""


def terminate_and_remove(
    run_id: str, by: str, reason: str = "", *, archive: bool = True, cascade: bool = False
) -> None:
    """Terminate a run and then remove it, in two transactions: if the second one fails, the run stays terminated.

    Raises:
        NotFound: when there is no such run.
        Conflict: when the run is not open.
    """
    terminate_run(run_id, by, reason)
    remove_with_descendants(run_id, by, reason, archive=archive, cascade=cascade)


def remove_with_descendants(
    run_id: str, by: str, reason: str = "", *, archive: bool = True, cascade: bool = False
) -> None:
    """Remove a run. `cascade`: remove its descendants before it, each in its own transaction, youngest first.

    Without `cascade` its children stay. Open children are terminated if the run is open too; otherwise they continue
    without a parent.

    Raises:
        NotFound: when there is no such run.
        Invalid: when `archive` is set and the run is open.
    """
    is_open = Run.objects.open().filter(pk=run_id).exists()
    if cascade and not (is_open and archive):
        why = reason or f"Removed together with workflow {run_id}."
        if is_open:
            terminate_run(run_id, by, why)
        for id in reversed(descendants(run_id)):
            remove_run(id, by, why, archive=False)
    remove_run(run_id, by, reason, archive=archive)


def descendants(run_id: str) -> list[str]:
    """Return the ids of all descendants of a run, parents before children."""
    found: list[str] = []
    parents = [run_id]
    while parents:
        some, parents = parents[:GENERATION], parents[GENERATION:]
        children = list(Run.objects.filter(parent_id__in=some).order_by("id").values_list("id", flat=True))
        found += children
        parents += children
    return found


MAX_DAYS = 36_500
DAY_MS, NOTED_MS = 86_400_000, 400 * 86_400_000
MAX_KEPT = 10_000


def runs_to_remove(limit: int) -> Iterator[str]:
    """Yield the ids of up to `limit` runs whose retention period is over."""
    now, known = clock.now(), retention_policies()
    for policy in known:
        found = list(removable_runs(policy, known, now).values_list("pk", flat=True)[:limit])
        yield from found
        limit -= len(found)
        if limit <= 0:
            return


def record_day(removed: int) -> None:
    """Record the size of the database today, and add to the number of removed runs."""
    now = clock.now()
    day_at = now - now % DAY_MS
    DailyStorage.objects.filter(day_at__lt=now - NOTED_MS).delete()
    DailyStorage.objects.get_or_create(day_at=day_at)
    DailyStorage.objects.filter(day_at=day_at).update(bytes=size_in_bytes(), removed=F("removed") + removed)


def save_policy(definition: str, days: int, failed_days: int, keep_last: int, by: str, reason: str = "") -> None:
    """Save the retention policy of a definition, or of all definitions without one (an empty name).

    `days`, `failed_days`: retention of completed and failed runs; 0 keeps them forever. `keep_last`: number of newest
    runs that are kept in any case.

    Raises:
        Invalid: when a value is out of its range.
    """
    definition = definition.strip()
    if len(definition) > 255 or "\0" in definition:
        raise Invalid(f"There is no definition {definition[:80]!r}.")
    if not (0 <= days <= MAX_DAYS and 0 <= failed_days <= MAX_DAYS and 0 <= keep_last <= MAX_KEPT):
        raise Invalid(f"Days must be 0 (keep forever) to {MAX_DAYS}, and the number of kept runs 0 to {MAX_KEPT}.")
    facts = {"days": days, "failed_days": failed_days, "keep_last": keep_last}
    with transaction.atomic():
        was = RetentionPolicy.objects.filter(definition=definition).values(*facts).first()
        RetentionPolicy.objects.update_or_create(
            definition=definition, defaults={**facts, "changed_at": clock.now(), "by": by[:255]}
        )
        _record_change(definition, by, "save", reason, {"before": was, "after": facts})


def delete_policy(definition: str, by: str, reason: str = "") -> None:
    """Delete the retention policy of a definition. The policy for all others applies to its runs then.

    Raises:
        NotFound: when there is no such policy.
    """
    with transaction.atomic():
        if not RetentionPolicy.objects.filter(definition=definition).delete()[0]:
            raise NotFound(f"There is no retention policy for {definition or 'all others'}.")
        _record_change(definition, by, "remove", reason, {})


def _record_change(definition: str, by: str, action: str, reason: str, facts: dict[str, Any]) -> None:
    audit.record("retention policy", definition or "all others", action, by, reason=reason, facts=facts)
