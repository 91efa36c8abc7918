"""Rules on workflows: a failure has a new cause, a resolved cause came back, or a queue has no workers.

A rule compares what it finds with what it found at its last check. It fires for what is new, once, and its incident
ends when nothing is left of what it fired for.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ..core.alerts import MINUTE_MS, NEW_CAUSE, UNPOLLED_QUEUE
from ..core.states import REGRESSED, UNHANDLED
from ..failures.models import FailureGroup
from ..runs.models import Attempt
from ..tasks.queries.queue_states import list_queues, queues_without_workers
from .models import Alert

MAX_FOUND, MAX_NAMED = 500, 3
NOTHING_FOUND: dict[str, list[str]] = {"found": [], "fired": []}
UNPOLLED_MINUTES = 5
"""The time for which a task must be pending before a queue without workers is announced."""
NOUNS = {
    "new_cause": ("new cause of failures", "new causes of failures"),
    "returned_cause": ("cause came back", "causes came back"),
    "unpolled_queue": ("queue without workers", "queues without workers"),
}


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """What a rule found now, by key; what of it is new; and whether something is left that the rule fired for."""

    found: Mapping[str, str]
    new: tuple[str, ...]
    fired: tuple[str, ...]

    @property
    def is_open(self) -> bool:
        """Return True if something is left that the rule has fired for."""
        return bool(self.fired)

    def sentence(self, kind: str) -> str:
        """Describe what is new."""
        names = [self.found[key] for key in self.new[:MAX_NAMED]]
        rest = f" and {len(self.new) - MAX_NAMED} more" if len(self.new) > MAX_NAMED else ""
        noun = NOUNS[kind][len(self.new) != 1]
        return f"{len(self.new)} {noun}: {'; '.join(names)}{rest}"

    def document(self) -> dict[str, list[str]]:
        """Return what the next check compares with."""
        return {"found": sorted(self.found), "fired": sorted({*self.fired, *self.new})}


def check_rule(alert: Alert, now: int) -> RuleCheck:
    """Return what a rule finds. At its first check, which is that of its creation, nothing is new."""
    found = _unpolled_queues(alert.workflow, now) if alert.kind == UNPOLLED_QUEUE else _causes(alert)
    seen = alert.seen or {"found": sorted(found), "fired": []}
    new = tuple(key for key in found if key not in seen["found"])
    return RuleCheck(found, new, tuple(key for key in seen["fired"] if key in found))


def _causes(alert: Alert) -> dict[str, str]:
    state = UNHANDLED if alert.kind == NEW_CAUSE else REGRESSED
    groups = FailureGroup.objects.not_merged().filter(state=state)
    if alert.workflow:
        groups = groups.filter(definition=alert.workflow)
    return {str(group.pk): str(group) for group in groups.order_by("-last_at")[:MAX_FOUND]}


def _unpolled_queues(workflow: str, now: int) -> dict[str, str]:
    before = now - UNPOLLED_MINUTES * MINUTE_MS
    unpolled = [each for each in queues_without_workers(list_queues(), now) if (each.oldest_at or now) <= before]
    names = {each.name for each in unpolled}
    if workflow:
        pending = Attempt.objects.pending().of_runs().filter(queue__in=names, run__name=workflow)
        names &= set(pending.order_by().values_list("queue", flat=True).distinct())
    counts = {each.name: each.counted for each in unpolled}
    return {name: f"{name} ({counts[name]} pending)" for name in sorted(names)[:MAX_FOUND]}
