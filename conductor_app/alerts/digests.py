"""Digests by email: what they report about a day or a week, subscriptions, and the sweep that sends them."""

import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from django.contrib.auth.models import User
from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ..access.models import DigestSubscription
from ..core.errors import Invalid
from ..core.failure_grouping import informative_line
from ..core.states import FAILED, TIMED_OUT
from ..failures.models import FailureGroup
from ..human_tasks.waiting_queries import HumanTaskView, human_task_inbox
from ..runs.models import ALERT, PUBLISH, Run
from ..runs.store.due_rows import handle_each
from ..runs.store.outbox import send
from ..settings import conf
from ..utils import clock
from ..utils.formatting import DAY, format_duration

HOUR_OF_DAY = 7
"""The hour in the user's time zone at which digests are sent, weekly ones on Monday."""
PERMISSION = "conductor.view_run"
MAX_RUNS = 50_000
MAX_GROUPS = 500
MAX_LISTED = 10
"""Lines of one section."""


def subscribe(user: User, period: str, zone: str) -> None:
    """Send a digest to the user every day or every week. The same period keeps the time of the next one.

    Raises:
        Invalid: when the period is unknown, or the user has no email address.
    """
    if period not in DigestSubscription.PERIODS:
        raise Invalid(f"Unknown period {period[:20]!r}. Use one of: {', '.join(DigestSubscription.PERIODS)}.")
    if not user.email:
        raise Invalid("Your account has no email address. An administrator can add it.")
    values = {"period": period, "zone": zone}
    if not DigestSubscription.objects.filter(pk=user.pk, **values).exists():
        next_at = _next_time(period, zone, clock.now())
        DigestSubscription.objects.update_or_create(pk=user.pk, defaults={**values, "next_at": next_at})


def unsubscribe(user: User) -> None:
    """Send no digests to the user."""
    DigestSubscription.objects.filter(pk=user.pk).delete()


def subscribed_period(user: User) -> str:
    """Return the period of the user's digests, or "" if there are none."""
    return DigestSubscription.objects.filter(pk=user.pk).values_list("period", flat=True).first() or ""


def send_due_digests(limit: int) -> int:
    """Send up to `limit` due digests and return their number."""
    due = DigestSubscription.objects.filter(next_at__lte=clock.now()).order_by("next_at")
    return handle_each(list(due.values_list("pk", flat=True)[:limit]), _send_digest)


def _send_digest(user_id: int) -> None:
    """Send a digest if there is something to report. The update of `next_at` lets one process send it."""
    now = clock.now()
    row = DigestSubscription.objects.select_related("user").filter(pk=user_id, next_at__lte=now).first()
    if row is None:
        return
    with transaction.atomic():
        next_at = _next_time(row.period, row.zone, now)
        if not DigestSubscription.objects.filter(pk=user_id, next_at=row.next_at).update(next_at=next_at):
            return
        if row.user.is_active and row.user.email and row.user.has_perm(PERMISSION):
            _write_message(row, now)


def _write_message(row: DigestSubscription, now: int) -> None:
    is_weekly = row.period == DigestSubscription.WEEKLY
    digest = collect_digest(now - DAY * (7 if is_weekly else 1), now)
    if digest.is_empty:
        return
    with timezone.override(ZoneInfo(row.zone)):
        payload = {"sentence": digest_subject(digest), "body": digest_body(digest, is_weekly, now), "at": now}
    facts = {"sink": ALERT, "id": secrets.token_hex(16), "to": row.user.email, "payload": payload}
    send(PUBLISH, now, to=f"digest {row.pk}", facts=facts)


def _next_time(period: str, zone: str, now: int) -> int:
    local = datetime.fromtimestamp(now / 1000, UTC).astimezone(ZoneInfo(zone))
    at = local.replace(hour=HOUR_OF_DAY, minute=0, second=0, microsecond=0)
    while at <= local or (period == DigestSubscription.WEEKLY and at.weekday() != 0):
        at += timedelta(days=1)
    return round(at.timestamp() * 1000)


@dataclass(frozen=True, slots=True)
class NewFailureGroup:
    """A failure group whose first failure is in the period."""

    pk: int
    place: str
    message: str
    count: int


@dataclass(frozen=True, slots=True)
class Digest:
    """The contents of one digest. `failed`: failed runs per workflow, most first; `is_capped`: there are more."""

    failed: Sequence[tuple[str, int]]
    failed_count: int
    is_capped: bool
    groups: Sequence[NewFailureGroup]
    group_count: int
    overdue: Sequence[HumanTaskView]
    overdue_count: int

    @property
    def is_empty(self) -> bool:
        return not (self.failed_count or self.group_count or self.overdue_count)


def collect_digest(since: int, now: int) -> Digest:
    """Return the contents of the digest for a period. Each query is bounded."""
    ended = Run.objects.filter(ended_at__gt=since, ended_at__lte=now, status__in=(FAILED, TIMED_OUT))
    names = list(ended.order_by().values_list("name", flat=True)[:MAX_RUNS])
    groups = _new_groups(since, now)
    overdue = [each for each in human_task_inbox(now).task_views if each.is_overdue(now)]
    return Digest(
        failed=Counter(names).most_common(MAX_LISTED),
        failed_count=len(names),
        is_capped=len(names) == MAX_RUNS,
        groups=groups[:MAX_LISTED],
        group_count=len(groups),
        overdue=overdue[:MAX_LISTED],
        overdue_count=len(overdue),
    )


def _new_groups(since: int, now: int) -> list[NewFailureGroup]:
    # A new group also has its last failure in the period, which the index orders.
    rows = FailureGroup.objects.not_merged().filter(last_at__gt=since, first_at__gt=since, first_at__lte=now)
    found = [
        NewFailureGroup(
            row.pk,
            f"{row.definition} › {row.ref}" if row.ref else row.definition,
            informative_line(row.sample or row.message)[:200],
            row.count,
        )
        for row in rows.order_by("-last_at")[:MAX_GROUPS]
    ]
    return sorted(found, key=lambda group: -group.count)


def digest_subject(digest: Digest) -> str:
    """Return the subject: the three numbers."""
    parts = [
        ngettext("%(n)s failed run", "%(n)s failed runs", digest.failed_count) % {"n": _count(digest)},
        ngettext("%(n)s new failure group", "%(n)s new failure groups", digest.group_count) % {"n": digest.group_count},
        ngettext("%(n)s overdue human task", "%(n)s overdue human tasks", digest.overdue_count)
        % {"n": digest.overdue_count},
    ]
    return ", ".join(parts)


def digest_body(digest: Digest, is_weekly: bool, now: int) -> str:
    """Return the body of the email, with links if the server's public address is configured."""
    period = _("In the last seven days:") if is_weekly else _("In the last 24 hours:")
    sections = [f"{period} {digest_subject(digest)}."]
    sections += _section(_("Failed runs by workflow"), [f"{count:>6}  {name}" for name, count in digest.failed], "")
    groups = [f"{group.count:>6}  {group.place}: {group.message}" for group in digest.groups]
    sections += _section(_("New failure groups"), groups, _address("failures"))
    sections += _section(_("Overdue human tasks"), _overdue_lines(digest, now), _address("human_tasks"))
    sections.append(_unsubscribe_text())
    return "\n\n".join(sections) + "\n"


def _count(digest: Digest) -> str:
    return f"{digest.failed_count:,}+" if digest.is_capped else f"{digest.failed_count:,}"


def _section(title: str, lines: list[str], address: str) -> list[str]:
    if not lines:
        return []
    return ["\n".join([title, *lines, *([address] if address else [])])]


def _overdue_lines(digest: Digest, now: int) -> list[str]:
    lines = []
    for each in digest.overdue:
        span = format_duration(now - (each.assignment.due_at or now))
        late = _("overdue for %(span)s") % {"span": span}
        lines.append(f"  {each.title} ({each.attempt.run.name if each.attempt.run else ''}): {late}")
    return lines


def _unsubscribe_text() -> str:
    address = _address("preferences")
    text = _("To change or stop this email, open your preferences.")
    return f"{text} {address}".strip()


def _address(page: str) -> str:
    return f"{conf.public_url}{reverse(f'admin:{page}')}" if conf.public_url else ""
