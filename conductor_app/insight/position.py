"""When its turn comes: how many stand before an attempt in the order of handing out, and how fast the queue moves."""

from dataclasses import dataclass

from django.db.models import Min, Q, QuerySet, Sum
from django.utils.translation import gettext as _

from ..models import Attempt, MinuteCount
from .durations import MINUTE, decimal, span

LOOKED_BACK_MS = 5 * MINUTE
MOST_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Position:
    """Its place among those that could be handed out now, and what a queue of that speed makes of it.

    `ahead`: no more than MOST_COUNTED are counted. `rate`: of handing out, a second; None where nothing was lately.
    """

    ahead: int
    rate: float | None

    @property
    def is_capped(self) -> bool:
        return self.ahead >= MOST_COUNTED

    @property
    def place(self) -> str:
        return f"{MOST_COUNTED:,}+" if self.is_capped else f"{self.ahead + 1:,}"

    @property
    def eta_ms(self) -> int | None:
        """How long it still waits at that speed."""
        return round((self.ahead + 1) / self.rate * 1000) if self.rate else None

    @property
    def sentence(self) -> str:
        return self._said() % {
            "place": self.place,
            "rate": per_time(self.rate or 0),
            "span": span(self.eta_ms or 0),
        }

    def _said(self) -> str:
        if self.rate is None and self.is_capped:
            return _("Number %(place)s in its queue or further back; nothing was handed out in the last five minutes.")
        if self.rate is None:
            return _("Number %(place)s in its queue; nothing was handed out in the last five minutes.")
        if self.is_capped:
            return _("Number %(place)s in its queue or further back, which hands out %(rate)s: in about %(span)s.")
        return _("Number %(place)s in its queue, which hands out %(rate)s: in about %(span)s.")


def position(attempt: Attempt, now: int) -> Position | None:
    """The place of an attempt that waits in a queue; None for any other."""
    if attempt.status != "PENDING" or not attempt.queue:
        return None
    return Position(before(attempt, now).order_by()[:MOST_COUNTED].count(), rate(attempt.queue, now))


def before(attempt: Attempt, now: int) -> QuerySet[Attempt]:
    """What is handed out before it, if nothing comes in between: in the order of the claim."""
    visible_at = max(attempt.visible_at, now)
    same = Q(priority=attempt.priority)
    earlier = Q(priority__gt=attempt.priority, visible_at__lte=visible_at)
    earlier |= same & Q(visible_at__lt=attempt.visible_at) | same & Q(visible_at=attempt.visible_at, id__lt=attempt.pk)
    rows = Attempt.objects.pending(attempt.queue).filter(earlier)
    return rows.order_by("-priority", "visible_at", "id")


def rate(queue: str, now: int) -> float | None:
    """Tasks that the queue has handed out a second, lately."""
    return rates([queue], now).get(queue)


def rates(queues: list[str], now: int, field: str = "started") -> dict[str, float]:
    """The same of several queues, those that have moved at all; `field`: what is counted.

    A queue that has begun to move within the time that is looked back at is measured from then on, over a minute at
    least: what it did not do before it had anything to do says nothing of its speed.
    """
    since = now - LOOKED_BACK_MS
    since -= since % MINUTE
    rows = MinuteCount.objects.filter(kind=MinuteCount.QUEUE, name__in=queues, at__gte=since, **{f"{field}__gt": 0})
    counted = rows.order_by().values_list("name").annotate(Sum(field), Min("at"))
    return {name: count * 1000 / max(now - first_at, MINUTE) for name, count, first_at in counted}


def per_time(rate: float) -> str:
    """A rate in the unit in which it is more than one."""
    if rate >= 1:
        return _("%(rate)s a second") % {"rate": decimal(rate)}
    if rate * 60 >= 1:
        return _("%(rate)s a minute") % {"rate": decimal(rate * 60)}
    return _("%(rate)s an hour") % {"rate": decimal(rate * 3600)}
