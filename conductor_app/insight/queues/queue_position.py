"""Position of an attempt in its queue, and the dispatch rate of queues."""

from dataclasses import dataclass

from django.db.models import Min, Q, QuerySet, Sum
from django.utils.translation import gettext as _

from ...models import Attempt, MinuteCount
from ...models.gates import GateFacts
from ..durations import MINUTE, format_duration
from ..numbers import format_decimal
from .dispatch_estimates import cap_rate, earliest_dispatch_ms, estimate_dispatch_ms
from .gate_verdicts import gate_facts, is_queued

WINDOW_MS = 5 * MINUTE
MAX_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """Position of an attempt among those that can be claimed now.

    `ahead`: attempts before it, counted up to MAX_COUNTED. `rate`: claims per second, None without recent claims.
    `earliest_ms`: how long its gates keep it waiting, None if that is unknown. `eta_ms`: the estimated remaining wait,
    None if it is unknown.
    """

    ahead: int
    rate: float | None
    earliest_ms: int | None
    eta_ms: int | None

    @property
    def is_capped(self) -> bool:
        return self.ahead >= MAX_COUNTED

    @property
    def place(self) -> str:
        return f"{MAX_COUNTED:,}+" if self.is_capped else f"{self.ahead + 1:,}"

    @property
    def sentence(self) -> str:
        parts = [_("Position %(place)s") % {"place": self.place}]
        if self.rate is not None:
            parts.append(format_rate(self.rate))
        elif not self.earliest_ms:
            parts.append(_("no dispatches in the last five minutes"))
        if self.eta_ms is not None:
            parts.append(_("ETA ~%(span)s") % {"span": format_duration(self.eta_ms)})
        elif self.earliest_ms:
            parts.append(_("no earlier than in %(span)s") % {"span": format_duration(self.earliest_ms)})
        return " · ".join(parts)


def queue_position(
    attempt: Attempt, now: int, facts: GateFacts | None = None, *, is_polled: bool = True
) -> QueuePosition | None:
    """Return the position of a pending attempt, or None if it is not in a queue.

    `facts`: of the attempt, if they have been loaded. `is_polled`: False if no worker would claim it now.
    """
    if not is_queued(attempt):
        return None
    facts = facts or gate_facts(attempt, now)
    ahead = attempts_ahead(attempt, now).order_by()[:MAX_COUNTED].count()
    rate = cap_rate(queue_rate(attempt.queue, now), facts)
    eta = estimate_dispatch_ms(ahead + 1, rate, facts) if is_polled else None
    return QueuePosition(ahead, rate, earliest_dispatch_ms(ahead + 1, facts), eta)


def attempts_ahead(attempt: Attempt, now: int) -> QuerySet[Attempt]:
    """Return the attempts that workers claim before this one, in claim order."""
    visible_at = max(attempt.visible_at, now)
    same = Q(priority=attempt.priority)
    earlier = Q(priority__gt=attempt.priority, visible_at__lte=visible_at)
    earlier |= same & Q(visible_at__lt=attempt.visible_at) | same & Q(visible_at=attempt.visible_at, id__lt=attempt.pk)
    rows = Attempt.objects.pending(attempt.queue).filter(earlier)
    return rows.order_by("-priority", "visible_at", "id")


def queue_rate(queue: str, now: int) -> float | None:
    """Return the recent dispatch rate of a queue in attempts per second, or None if it dispatched nothing."""
    return queue_rates([queue], now).get(queue)


def queue_rates(queues: list[str], now: int, field: str = "started") -> dict[str, float]:
    """Return the recent rates of several queues, per second, without those that were inactive.

    `field`: the counter to measure. The rate covers the time since the first count, at least one minute: an empty
    queue before that does not reduce the rate.
    """
    since = now - WINDOW_MS
    since -= since % MINUTE
    rows = MinuteCount.objects.filter(kind=MinuteCount.QUEUE, name__in=queues, at__gte=since, **{f"{field}__gt": 0})
    counted = rows.order_by().values_list("name").annotate(Sum(field), Min("at"))
    return {name: count * 1000 / max(now - first_at, MINUTE) for name, count, first_at in counted}


def format_rate(rate: float) -> str:
    """Format a rate per second, minute or hour: the smallest unit in which it is at least 1."""
    if rate >= 1:
        return _("%(rate)s/s") % {"rate": format_decimal(rate)}
    if rate * 60 >= 1:
        return _("%(rate)s/min") % {"rate": format_decimal(rate * 60)}
    return _("%(rate)s/h") % {"rate": format_decimal(rate * 3600)}
