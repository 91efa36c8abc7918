"""Policies of how long finished runs are kept, and the removal of those that are kept no longer."""

from collections.abc import Iterator
from typing import Any

from django.db import transaction
from django.db.models import F

from .. import clock
from ..core.errors import Invalid, NotFound
from ..insight.database import size_in_bytes
from ..insight.retention import removable_runs, retention_policies
from ..models import AuditEntry, DailyStorage, RetentionPolicy

LONGEST_DAYS = 36_500
DAY_MS, NOTED_MS = 86_400_000, 400 * 86_400_000
MOST_KEPT = 10_000


def runs_to_remove(limit: int) -> Iterator[str]:
    """Runs that no policy keeps any longer, no more than so many."""
    now, known = clock.now(), retention_policies()
    for policy in known:
        found = list(removable_runs(policy, known, now).values_list("pk", flat=True)[:limit])
        yield from found
        limit -= len(found)
        if limit <= 0:
            return


def record_day(removed: int) -> None:
    """Keep how large the database is today, and how many runs more were removed."""
    now = clock.now()
    day_at = now - now % DAY_MS
    DailyStorage.objects.filter(day_at__lt=now - NOTED_MS).delete()
    DailyStorage.objects.get_or_create(day_at=day_at)
    DailyStorage.objects.filter(day_at=day_at).update(bytes=size_in_bytes(), removed=F("removed") + removed)


def save_policy(definition: str, days: int, failed_days: int, keep_last: int, by: str, reason: str = "") -> None:
    """Keep runs of a definition, or of all others (an empty name), for so long from now on."""
    definition = definition.strip()
    if len(definition) > 255 or "\0" in definition:
        raise Invalid("There is no definition of that name.")
    if not (0 <= days <= LONGEST_DAYS and 0 <= failed_days <= LONGEST_DAYS and 0 <= keep_last <= MOST_KEPT):
        raise Invalid(f"Runs are kept for 0 (for ever) to {LONGEST_DAYS} days, and {MOST_KEPT} of them at most.")
    facts = {"days": days, "failed_days": failed_days, "keep_last": keep_last}
    with transaction.atomic():
        was = RetentionPolicy.objects.filter(definition=definition).values(*facts).first()
        RetentionPolicy.objects.update_or_create(
            definition=definition, defaults={**facts, "changed_at": clock.now(), "by": by[:255]}
        )
        _record_change(definition, by, "save", reason, {"before": was, "after": facts})


def delete_policy(definition: str, by: str, reason: str = "") -> None:
    """Keep its runs as all others are kept. Raises NotFound."""
    with transaction.atomic():
        if not RetentionPolicy.objects.filter(definition=definition).delete()[0]:
            raise NotFound(f"There is no policy for {definition or 'all others'}.")
        _record_change(definition, by, "remove", reason, {})


def _record_change(definition: str, by: str, action: str, reason: str, facts: dict[str, Any]) -> None:
    AuditEntry.objects.create(
        at=clock.now(),
        actor=by,
        action=action,
        object_type="retention policy",
        object_id=definition or "all others",
        reason=reason,
        facts=facts,
    )
