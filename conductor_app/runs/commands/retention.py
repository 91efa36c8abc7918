"""Commands on retention policies, and the choice of the runs that a policy removes."""

from collections.abc import Iterator
from typing import Any

from django.db.models import F

from ...access import audit
from ...core.errors import Invalid, NotFound
from ...db.database import transaction
from ...db.size import size_in_bytes
from ...utils import clock
from ..models import DailyStorage, RetentionPolicy
from ..queries.retention import removable_runs, retention_policies

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


def save_policy(definition: str, days: int, failed_days: int, keep_last: int, by: str) -> None:
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
        _record_change(definition, by, "save", {"before": was, "after": facts})


def delete_policy(definition: str, by: str) -> None:
    """Delete the retention policy of a definition. The policy for all others applies to its runs then."""
    with transaction.atomic():
        if not RetentionPolicy.objects.filter(definition=definition).delete()[0]:
            raise NotFound(f"There is no retention policy for {definition or 'all others'}.")
        _record_change(definition, by, "remove", {})


def _record_change(definition: str, by: str, action: str, facts: dict[str, Any]) -> None:
    audit.record("retention policy", definition or "all others", action, by, facts=facts)
