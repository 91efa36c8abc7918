"""When its turn comes: how many stand before an attempt in the order of handing out, and how fast the queue moves."""

from dataclasses import dataclass

from django.db.models import Min, Q, QuerySet, Sum
from django.utils.translation import gettext as _

from ..models import Attempt, MinuteCount
from .durations import MINUTE, format_decimal, format_duration

LOOKED_BACK_MS = 5 * MINUTE
MOST_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """Its place among those that could be handed out now, and what a queue of that speed makes of it.

    `ahead`: at most MOST_COUNTED are counted. `rate`: claims per second; None if there were none lately.
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
        return self._sentence_template() % {
            "place": self.place,
            "rate": format_rate(self.rate or 0),
            "span": format_duration(self.eta_ms or 0),
        }

    def _sentence_template(self) -> str:
        if self.rate is None and self.is_capped:
            return _("Number %(place)s in its queue or further back; nothing was handed out in the last five minutes.")
        if self.rate is None:
            return _("Number %(place)s in its queue; nothing was handed out in the last five minutes.")
        if self.is_capped:
            return _("Number %(place)s in its queue or further back, which hands out %(rate)s: in about %(span)s.")
        return _("Number %(place)s in its queue, which hands out %(rate)s: in about %(span)s.")


def queue_position(attempt: Attempt, now: int) -> QueuePosition | None:
    """The place of an attempt that waits in a queue; None for any other."""
    if attempt.status != "PENDING" or not attempt.queue:
        return None
    return QueuePosition(attempts_ahead(attempt, now).order_by()[:MOST_COUNTED].count(), queue_rate(attempt.queue, now))


def attempts_ahead(attempt: Attempt, now: int) -> QuerySet[Attempt]:
    """What is handed out before it, if nothing comes in between: in the order of the claim."""
    visible_at = max(attempt.visible_at, now)
    same = Q(priority=attempt.priority)
    earlier = Q(priority__gt=attempt.priority, visible_at__lte=visible_at)
    earlier |= same & Q(visible_at__lt=attempt.visible_at) | same & Q(visible_at=attempt.visible_at, id__lt=attempt.pk)
    rows = Attempt.objects.pending(attempt.queue).filter(earlier)
    return rows.order_by("-priority", "visible_at", "id")


def queue_rate(queue: str, now: int) -> float | None:
    """Tasks that the queue has handed out a second, lately."""
    return queue_rates([queue], now).get(queue)


def queue_rates(queues: list[str], now: int, field: str = "started") -> dict[str, float]:
    """The same of several queues, those that have moved at all; `field`: what is counted.

    A queue that has begun to move within the time that is looked back at is measured from then on, over a minute at
    least: what it did not do before it had anything to do says nothing of its speed.
    """
    since = now - LOOKED_BACK_MS
    since -= since % MINUTE
    rows = MinuteCount.objects.filter(kind=MinuteCount.QUEUE, name__in=queues, at__gte=since, **{f"{field}__gt": 0})
    counted = rows.order_by().values_list("name").annotate(Sum(field), Min("at"))
    return {name: count * 1000 / max(now - first_at, MINUTE) for name, count, first_at in counted}


def format_rate(rate: float) -> str:
    """A rate in the unit in which it is more than one."""
    if rate >= 1:
        return _("%(rate)s a second") % {"rate": format_decimal(rate)}
    if rate * 60 >= 1:
        return _("%(rate)s a minute") % {"rate": format_decimal(rate * 60)}
    return _("%(rate)s an hour") % {"rate": format_decimal(rate * 3600)}
