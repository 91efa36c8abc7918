"""What alerts measure, and a back-test of an alert over the last seven days.

An alert on runs counts those of its view in a window. A slice registers what else alerts can measure, such as budgets.
A rule on workflows (a failure has a new cause, a resolved cause came back, a queue has no workers) compares what it
finds with what it found at its last check. It fires for what is new, once, and its incident ends when nothing is left
of what it fired for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..access.authentication import Actor, current_actor, current_user_id
from ..access.permissions import READ, WORKFLOW_DEF
from ..access.visibility import may
from ..bulk import selections
from ..core.alerts import (
    AGE,
    BUDGET,
    MINUTE_MS,
    NEW_CAUSE,
    SHARE,
    UNPOLLED_QUEUE,
    AlertRule,
    find_alert_times,
    measure_at,
)
from ..core.errors import Invalid
from ..core.failure_grouping import informative_line
from ..core.states import REGRESSED, RUN, UNHANDLED
from ..definitions.models import WorkflowDefinition
from ..explanations.cause import failure_reasons
from ..failures.models import FailureGroup
from ..failures.queries import has_failed_run
from ..runs.models import Attempt, Run
from ..tasks.queries.queue_states import list_queues, queues_without_workers
from ..utils import process_state
from ..utils.formatting import DAY, MINUTE, LazyText
from .models import Alert, AlertFiring, AlertTarget, SavedView


@dataclass(frozen=True, slots=True)
class SubjectMeasure:
    """A measured percentage, and a sentence about it."""

    percent: int = 0
    sentence: str = "there is nothing to measure"


class AlertSubject:
    """A subject of alerts of one kind. An alert refers to one object of the subject, or to all of them.

    This class is the subject of a kind that this server does not have: it has no objects, and no alert on it fires.
    """

    permission = ""
    """The permission to see its objects."""
    noun: str | LazyText = ""
    label: str | LazyText = ""
    """The condition in the form of an alert."""
    page = "views"
    """The page that the link in a notification leads to."""

    def exists(self, reference: Mapping[str, str]) -> bool:
        """Return True if there is the object that an alert refers to."""
        return False

    def describe(self, reference: Mapping[str, str] | None) -> str:
        """Return the name of an object, or that of all objects."""
        return " ".join(filter(None, reference.values())) if reference else ""

    def choices(self) -> list[tuple[int, str]]:
        """Return the objects with their ids in the form of an alert."""
        return []

    def find(self, id: int) -> dict[str, str]:
        """Return what refers to the object with an id from the form."""
        raise Invalid(_("This server has no such subject of alerts."))

    def measure(self, alert: Alert, since: int, now: int) -> SubjectMeasure:
        """Return the highest percentage among the objects of an alert. `since`: the beginning of its window."""
        return SubjectMeasure()

    def past_percents(self, alert: Alert, moments: Sequence[int]) -> list[int]:
        """Return the highest percentage at each of these times."""
        return [0] * len(moments)


_subjects: process_state.Wiring[Mapping[str, AlertSubject]] = process_state.wiring({})


def register_subject(kind: str, subject: AlertSubject) -> None:
    """Register the subject of a kind of alerts."""
    _subjects.value = {**_subjects.value, kind: subject}


def subject_of(kind: str) -> AlertSubject:
    return _subjects.value.get(kind) or AlertSubject()


def registered_subjects() -> Mapping[str, AlertSubject]:
    """Return the subjects by the kinds of their alerts."""
    return _subjects.value


VIEW_PERMISSION, CHANGE_PERMISSION = "conductor.view_run", "conductor.change_run"
BACK_MS = 7 * DAY
MAX_CHECKS = 50_000
FAILED_STATUSES = ("FAILED", "TIMED_OUT")
MAX_NOTIFICATIONS = 30
STEP_MS = 30 * MINUTE
MAX_PEAKS = 200
"""Firings whose values are measured in addition to the steps."""
Counted = tuple[QuerySet[Run], str]
KIND_LABELS = {
    "slack": gettext_lazy("Slack"),
    "teams": gettext_lazy("Microsoft Teams"),
    "pagerduty": gettext_lazy("PagerDuty"),
    "webhook": gettext_lazy("Webhook"),
    "email": gettext_lazy("Email"),
}


@dataclass(frozen=True, slots=True)
class Measure:
    """Whether an alert's condition is met, and a sentence about what was measured."""

    is_met: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class BackTest:
    """The last seven days of an alert: the measured value every half hour, and when the alert would have fired.

    `firings`: pairs of time and number of hits. `limit`: the threshold in the unit of the values.
    """

    begin: int
    end: int
    points: Sequence[tuple[int, float]]
    firings: Sequence[tuple[int, int]]
    limit: int


def rule_of(alert: Alert) -> AlertRule:
    """Return the condition of an alert as a value of the core."""
    return AlertRule(alert.kind, alert.threshold, alert.window_minutes * MINUTE, alert.repeat_minutes * MINUTE)


def measure_alert(alert: Alert, now: int) -> Measure:
    """Return whether the condition of an alert is met."""
    rule = rule_of(alert)
    if alert.kind == BUDGET:
        found = subject_of(alert.kind).measure(alert, now - rule.window_ms, now)
        return Measure(rule.is_met(found.percent, 0), found.sentence)
    hits, total = count_alert(alert, now)
    return Measure(rule.is_met(hits, total), rule.sentence(hits, total))


def count_alert(alert: Alert, now: int) -> tuple[int, int]:
    """Return how many runs of the view and how many runs in all fall into the window, each up to MAX_CHECKS.

    For an alert about the age of open runs, the total is 0.
    """
    if alert.kind == AGE:
        old = selections.selected_runs(alert.selection).filter(created_at__lte=now - rule_of(alert).age_ms)
        return old.filter(status__in=sorted(RUN.open)).order_by()[:MAX_CHECKS].count(), 0
    after = now - alert.window_minutes * MINUTE
    hits, total = _selected_and_all(alert)
    return _count_runs(hits, after, now), _count_runs(total, after, now) if total is not None else 0


def newest_failure(alert: Alert, now: int) -> str:
    """Return the failed task and the error of the newest failed run in the window of an alert, or an empty text."""
    if alert.kind in (AGE, BUDGET):
        return ""
    rows, column = _selected_and_all(alert)[0]
    after = now - rule_of(alert).window_ms
    failed = rows.filter(status__in=FAILED_STATUSES, **{f"{column}__gt": after, f"{column}__lte": now})
    run = failed.order_by(f"-{column}").only("reason", "failed_attempt_id").first()
    if run is None:
        return ""
    task, reason = failure_reasons([run]).get(run.pk, ("", informative_line(run.reason)))
    return f"{task}: {reason}" if task else reason


def back_test(alert: Alert, now: int) -> BackTest:
    """Apply the condition of an alert to the last seven days."""
    since, rule = now - BACK_MS, rule_of(alert)
    if alert.kind == BUDGET:
        return _back_test_of_subject(alert, rule, since, now)
    hits, total = _past_times(alert, since, now)
    firings = find_alert_times(rule, hits, total, since, now)
    # A short peak between two steps is measured where the alert would have fired.
    moments = sorted({*range(since, now, STEP_MS), now, *(at for at, _ in firings[:MAX_PEAKS])})
    points = list(zip(moments, measure_at(rule, hits, total, moments), strict=True))
    return BackTest(since, now, points, firings, rule.limit)


def _back_test_of_subject(alert: Alert, rule: AlertRule, since: int, now: int) -> BackTest:
    moments = [*range(since, now, STEP_MS), now]
    points = list(zip(moments, subject_of(alert.kind).past_percents(alert, moments), strict=True))
    firings: list[tuple[int, int]] = []
    for at, percent in points:
        pauses = bool(firings) and at - firings[-1][0] < rule.repeat_ms
        if rule.is_met(percent, 0) and not pauses:
            firings.append((at, percent))
    return BackTest(since, now, points, firings, rule.limit)


def _past_times(alert: Alert, since: int, now: int) -> tuple[list[int], list[int]]:
    if alert.kind == AGE:
        return _overage_times(alert, since, now)
    hits, total = _selected_and_all(alert)
    after = since - alert.window_minutes * MINUTE
    return _run_times(hits, after, now), _run_times(total, after, now) if total is not None else []


def _overage_times(alert: Alert, since: int, now: int) -> tuple[list[int], list[int]]:
    """Return when runs exceeded the age and when those runs ended, regardless of their current status."""
    age = rule_of(alert).age_ms
    rest = {name: value for name, value in alert.selection.items() if name != "status"}
    runs = selections.selected_runs(rest).filter(created_at__gt=since - age - BACK_MS, created_at__lte=now - age)
    spans = list(runs.order_by("-created_at").values_list("created_at", "ended_at")[:MAX_CHECKS])
    too_old = [(at + age, end) for at, end in spans if end is None or end > at + age]
    return sorted(at for at, _ in too_old), sorted(end for _, end in too_old if end is not None)


def _selected_and_all(alert: Alert) -> tuple[Counted, Counted | None]:
    selection = alert.selection
    column = counted_moment(selection)
    if alert.kind != SHARE:
        return (selections.selected_runs(selection), column), None
    # The total counts the same runs in any final status.
    rest = {name: value for name, value in selection.items() if name != "status"}
    return (selections.selected_runs(selection), column), (selections.selected_runs(rest), column)


def counted_moment(selection: dict) -> str:
    """Return the column that dates a run: its end if the selection holds only ended runs, otherwise its start."""
    statuses = set(selection.get("status") or ())
    return "ended_at" if statuses and statuses <= RUN.final else "created_at"


def _count_runs(runs: Counted, after: int, until: int) -> int:
    rows, column = runs
    return rows.filter(**{f"{column}__gt": after, f"{column}__lte": until}).order_by()[:MAX_CHECKS].count()


def _run_times(runs: Counted, after: int, until: int) -> list[int]:
    rows, column = runs
    within = rows.filter(**{f"{column}__gt": after, f"{column}__lte": until}).order_by(f"-{column}")
    return sorted(within.values_list(column, flat=True)[:MAX_CHECKS])


def notifications_to(target: AlertTarget) -> list[AlertFiring]:
    """Return the newest notifications of a target, newest first: of its alerts, and tests.

    The index has the alerts, which are few, and the times.
    """
    of_target = AlertFiring.objects.filter(target=target)
    rows = list(of_target.filter(alert__isnull=True).order_by("-at")[:MAX_NOTIFICATIONS])
    rows += of_target.filter(alert__in=target.alerts.all()).order_by("-at")[:MAX_NOTIFICATIONS]
    return sorted(rows, key=lambda row: (row.at, row.pk), reverse=True)[:MAX_NOTIFICATIONS]


def kind_label(kind: str) -> str:
    """Return the label of a kind, or the kind itself if this server no longer supports it."""
    return str(KIND_LABELS.get(kind, kind))


def visible_views(request: HttpRequest) -> QuerySet[SavedView]:
    """Return the views that the user may see: their own and shared ones."""
    shared = SavedView.objects.filter(is_shared=True)
    if not request.user.has_perm(VIEW_PERMISSION):
        shared = shared_views_of(current_actor())
    return (own_views(request.user.get_username()) | shared).order_by("name", "pk")


def shared_views_of(actor: Actor | None) -> QuerySet[SavedView]:
    """Return the shared views that an actor may see.

    To those who see some runs only, a view is shared if it selects the runs of one workflow that they see: its name and
    its other filters are texts of people.
    """
    shared = SavedView.objects.filter(is_shared=True)
    return SavedView.objects.filter(pk__in=[view.pk for view in shared if actor and _is_of_workflow_of(actor, view)])


def audited_views(actor: Actor) -> QuerySet[SavedView]:
    """Return the views whose entries in the audit log an actor may see: its own and shared ones."""
    return shared_views_of(actor) | SavedView.objects.exclude(owner_id=0).filter(owner_id=actor.user_id or 0)


def audited_alerts(actor: Actor) -> QuerySet[Alert]:
    """Return the alerts that an actor may see, with their entries in the audit log: those of workflows that it sees."""
    names = Alert.objects.exclude(workflow="").values_list("workflow", flat=True).distinct()
    seen = [name for name in names if actor.permissions.allows(READ, WORKFLOW_DEF, name)]
    is_of_seen = Q(view__in=shared_views_of(actor).values("pk")) | Q(workflow__in=seen)
    return Alert.objects.exclude(kind=BUDGET).filter(is_of_seen)


def visible_alerts(request: HttpRequest) -> QuerySet[Alert]:
    """Return the alerts that the user may see."""
    actor = None if request.user.has_perm(VIEW_PERMISSION) else current_actor()
    return Alert.objects.all() if actor is None else audited_alerts(actor)


def may_change_rules(user: User | AnonymousUser, workflow: str) -> bool:
    """Return True if a user may turn the rules of a workflow on and off: who sees and operates its runs.

    The rules of all workflows (an empty name), and alerts on views, require the permission on all runs.
    """
    if user.has_perm(CHANGE_PERMISSION) or not workflow:
        return user.has_perm(CHANGE_PERMISSION)
    row = WorkflowDefinition.objects.filter(name=workflow).only("name").first()
    return row is not None and may(user, VIEW_PERMISSION, row) and may(user, CHANGE_PERMISSION, row)


def own_views(by: str) -> QuerySet[SavedView]:
    """Return the views of the current actor, whose name is `by`. Those of a former user with this name do not count."""
    is_of_name, user_id = Q(owner_id=None, owner=by), current_user_id()
    return SavedView.objects.filter(is_of_name | Q(owner_id=user_id) if user_id else is_of_name)


def is_own_view(view: SavedView, by: str) -> bool:
    """Return True if a view belongs to the current actor, whose name is `by`."""
    return view.owner == by if view.owner_id is None else bool(view.owner_id) and view.owner_id == current_user_id()


def views_without_user(owner: str) -> QuerySet[SavedView]:
    """Return the views that belong to no user, with the name of their owner."""
    return SavedView.objects.filter(Q(owner_id=0) | Q(owner_id=None), owner=owner)


def _is_of_workflow_of(actor: Actor, view: SavedView) -> bool:
    definition = view.selection.get("definition")
    return isinstance(definition, str) and actor.permissions.allows(READ, WORKFLOW_DEF, definition)


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
    found = _unpolled_queues(alert.workflow, now) if alert.kind == UNPOLLED_QUEUE else _causes(alert, now)
    seen = alert.seen or {"found": sorted(found), "fired": []}
    new = tuple(key for key in found if key not in seen["found"])
    return RuleCheck(found, new, tuple(key for key in seen["fired"] if key in found))


def _causes(alert: Alert, now: int) -> dict[str, str]:
    """Return the causes that have failed a run. One found earlier stays, even if its runs were repaired."""
    state = UNHANDLED if alert.kind == NEW_CAUSE else REGRESSED
    failed = has_failed_run(now - DAY) | Q(pk__in=alert.seen["found"]) if alert.seen else has_failed_run(0)
    groups = FailureGroup.objects.not_merged().filter(failed, state=state)
    if alert.workflow:
        groups = groups.filter(definition=alert.workflow)
    return {str(group.pk): str(group) for group in groups.order_by("-last_at")[:MAX_FOUND]}


def _unpolled_queues(workflow: str, now: int) -> dict[str, str]:
    before = now - UNPOLLED_MINUTES * MINUTE_MS
    unpolled = [each for each in queues_without_workers(list_queues(), now) if (each.oldest_at or now) <= before]
    counts = {each.name: each.counted for each in unpolled}
    if workflow:
        pending = Attempt.objects.pending().of_runs().filter(queue__in=counts, run__name=workflow)
        counts = dict(pending.order_by().values_list("queue").annotate(Count("pk")))
    return {name: f"{name} ({counts[name]} pending)" for name in sorted(counts)[:MAX_FOUND]}
