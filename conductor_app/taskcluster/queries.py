"""Standalone tasks in Taskcluster's format, why they wait, their queues and workers, and the progress of task groups.

API replies and Pulse messages share the documents. The functions accept core values and rows alike: both have the same
attribute names. The tasks of a group come the most urgent ones first, with its first failure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from django.db.models import Case, Count, F, IntegerField, Max, Min, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce, Concat, Left, StrIndex
from django.db.models.lookups import Exact
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ..core.errors import NotFound
from ..db.statements import read_snapshot
from ..runs.models import Attempt, PulseMessage
from ..tasks.models import Queue, Worker
from ..tasks.queries.queues import queue_position
from ..tasks.queries.waiting import closed_gates, load_wait_facts, verdicts_on
from .core.decisions import attempt_state
from .models import Dependency, StandaloneTask, StandaloneTaskQuerySet

PRIORITIES = {
    "highest": 7, "very-high": 6, "high": 5, "medium": 4, "low": 3, "very-low": 2, "lowest": 1,
}  # fmt: skip
NAMES_OF_PRIORITIES = {number: name for name, number in PRIORITIES.items()}


@lru_cache(maxsize=10_000)
def format_timestamp(ms: int) -> str:
    """Format epoch milliseconds as RFC 3339 in UTC, with exactly three decimals."""
    seconds, rest = divmod(ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()}.{rest:03d}Z"


def displayed_state(task_status: str, attempt_status: str | None) -> str:
    """Return the status of the last attempt while the task is active, because it is more specific."""
    return attempt_status if task_status == "ACTIVE" and attempt_status else task_status


def queue_facts(queue: str) -> dict[str, str]:
    """Return the three identifiers of a queue."""
    provisioner_id, _, worker_type = queue.partition("/")
    return {"provisionerId": provisioner_id, "workerType": worker_type, "taskQueueId": queue}


def worker_facts(worker: str) -> dict[str, str]:
    """Return the two identifiers of a worker, or an empty mapping without a worker."""
    group, _, id = worker.partition("/")
    return {"workerGroup": group, "workerId": id} if worker else {}


def status_document(standalone: Any) -> dict[str, Any]:
    """Return the status of a task with its runs."""
    runs = [run_document(attempt) for attempt in standalone.attempts]
    return {
        "taskId": standalone.id,
        **queue_facts(standalone.queue),
        "schedulerId": standalone.scheduler_id,
        "projectId": standalone.project_id,
        "taskGroupId": standalone.group_id,
        "priority": NAMES_OF_PRIORITIES[standalone.priority],
        "deadline": format_timestamp(standalone.deadline_at),
        "expires": format_timestamp(standalone.expires_at),
        "retriesLeft": standalone.retries_left,
        "state": runs[-1]["state"] if runs else "unscheduled",
        "runs": runs,
    }


def run_document(attempt: Any) -> dict[str, Any]:
    """Return an attempt as one of Taskcluster's runs."""
    document = {
        "runId": attempt.number,
        "state": attempt_state(attempt),
        "reasonCreated": attempt.cause,
        "scheduled": format_timestamp(attempt.scheduled_at),
        **worker_facts(attempt.worker),
    }
    if attempt.started_at is not None:
        document["started"] = format_timestamp(attempt.started_at)
    if attempt.lease_ends_at is not None:
        document["takenUntil"] = format_timestamp(attempt.lease_ends_at)
    if attempt.ended_at is not None:
        document |= {"reasonResolved": attempt.reason, "resolved": format_timestamp(attempt.ended_at)}
    return document


def group_document(group: Any) -> dict[str, Any]:
    """Return a task group."""
    document = {
        "taskGroupId": group.id,
        "schedulerId": group.scheduler_id,
        "expires": format_timestamp(group.expires_at),
    }
    return document | ({"sealed": format_timestamp(group.sealed_at)} if group.sealed_at is not None else {})


MAX_NAMED = 200


@dataclass(frozen=True, slots=True)
class RequiredTaskView:
    """One dependency. `is_hopeless`: the required task ended in a way that does not satisfy the dependency."""

    id: str
    name: str
    status: str
    is_satisfied: bool
    is_hopeless: bool = False


def requirements_of(standalone: StandaloneTask) -> list[RequiredTaskView]:
    """Return the dependencies of a task, unsatisfied ones first, without the task itself."""
    edges = Dependency.objects.filter(task_id=standalone.pk).exclude(required_id=standalone.pk)
    rows = list(edges.order_by("is_satisfied", "required_id").values_list("required_id", "is_satisfied")[:MAX_NAMED])
    facts = {id: (name, state) for id, name, state in _names_and_states([id for id, _met in rows])}
    found = []
    for id, is_satisfied in rows:
        name, status = facts.get(id, ("", ""))
        is_hopeless = not is_satisfied and (not status or status in ("FAILED", "TIMED_OUT", "CANCELED"))
        found.append(RequiredTaskView(id, name or id, status, is_satisfied, is_hopeless))
    return found


def dependents_of(task_id: str) -> list[RequiredTaskView]:
    """Return the tasks that depend on a task."""
    edges = dict(
        Dependency.objects.filter(required_id=task_id)
        .exclude(task_id=task_id)
        .order_by("task_id")
        .values_list("task_id", "is_satisfied")[:MAX_NAMED]
    )
    return [RequiredTaskView(id, name or id, state, edges[id]) for id, name, state in _names_and_states(list(edges))]


def _names_and_states(ids: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the id, the name and the state of tasks, in the order of their ids."""
    last = Attempt.objects.filter(pk=OuterRef("task__attempt_id")).values("status")[:1]
    rows = StandaloneTask.objects.filter(pk__in=ids).order_by("pk").annotate(last_status=Subquery(last))
    for id, name, status, last_status in rows.values_list("pk", "task__name", "task__status", "last_status"):
        yield id, name, displayed_state(status, last_status)


def waits_for_schedule(task_id: str) -> bool:
    """Return True if the task depends on itself, so that a client must schedule it."""
    return Dependency.objects.filter(task_id=task_id, required_id=task_id).exists()


def explain_wait(standalone: StandaloneTask, needed: list[RequiredTaskView], now: int) -> list[str]:
    """Return why a task is waiting, as sentences, most important first. Names are in backticks.

    Empty if the task is not waiting.
    """
    if standalone.task.status == "BLOCKED":
        return [*_late(standalone, now), *_blocked_sentence(standalone, needed)]
    last = standalone.attempts[-1] if standalone.attempts else None
    if last is None or last.status != "PENDING":
        return []
    return [*_late(standalone, now), *_in_its_queue(standalone, last, now)]


def _late(standalone: StandaloneTask, now: int) -> list[str]:
    return [_("The deadline has passed. The task is about to be resolved.")] if standalone.deadline_at < now else []


def _blocked_sentence(standalone: StandaloneTask, needed: list[RequiredTaskView]) -> list[str]:
    left = [each for each in needed if not each.is_satisfied]
    hopeless = next((each for each in left if each.is_hopeless), None)
    sentences = []
    if hopeless is not None:
        sentences.append(
            _("Dependency `%(name)s` did not succeed. Rerun it, or schedule this task manually.")
            % {"name": hopeless.name}
        )
    if left:
        first = ngettext("Waiting for `%(name)s`.", "Waiting for %(count)s tasks, including `%(name)s`.", len(left))
        sentences.append(first % {"name": left[0].name, "count": len(left)})
    if waits_for_schedule(standalone.pk):
        sentences.append(_("The task depends on itself and must be scheduled manually."))
    return sentences or [_("Waiting to be scheduled.")]


def _in_its_queue(standalone: StandaloneTask, attempt: Attempt, now: int) -> list[str]:
    facts = load_wait_facts([attempt], now).get(attempt.pk)
    closed = closed_gates(verdicts_on(attempt, now, facts))
    is_polled = all(verdict.gate != "polled" for verdict in closed)
    place = queue_position(attempt, now, facts.gates if facts else None, is_polled=is_polled)
    return [
        *(verdict.sentence for verdict in closed),
        *_quarantine(standalone.queue, now),
        *([place.sentence] if place else []),
    ]


def _quarantine(queue: str, now: int) -> list[str]:
    counted = Worker.objects.filter(queue=queue, expires_at__gt=now).aggregate(
        all=Count("pk"), shut=Count("pk", filter=Q(quarantine_until__gt=now))
    )
    if not counted["all"] or counted["shut"] < counted["all"]:
        return []
    sentence = ngettext(
        "The only worker of queue `%(queue)s` is quarantined.",
        "All %(count)s workers of queue `%(queue)s` are quarantined.",
        counted["all"],
    )
    return [sentence % {"queue": queue, "count": counted["all"]}]


MAX_SHOWN = 200
"""Pulse messages that a page shows."""
RECENT = 20
"""Attempts that a worker page shows."""


def standalone_attempts(status: str, queues: Iterable[str]) -> QuerySet[Attempt]:
    """Return the attempts of standalone tasks in a status."""
    return Attempt.objects.defer_payloads().filter(run__isnull=True, status=status, queue__in=list(queues))


def pending_attempts(queues: Iterable[str], now: int) -> QuerySet[Attempt]:
    """Return the pending attempts whose deadline has not passed."""
    return standalone_attempts("PENDING", queues).filter(ends_at__gt=now)


@read_snapshot()
def queue_counts(queues: Sequence[str], now: int) -> list[tuple[str, int, int]]:
    """Return the number of pending and of claimed attempts of each queue."""
    waiting, out = (
        dict(rows.order_by().values_list("queue").annotate(Count("pk")))
        for rows in (pending_attempts(queues, now), standalone_attempts("LEASED", queues))
    )
    return [(queue, waiting.get(queue, 0), out.get(queue, 0)) for queue in queues]


def oldest_first(rows: QuerySet[Attempt], moment: str, after: Sequence, count: int) -> list[Attempt]:
    """Return `count` attempts with their tasks, ordered by a time column, after a position."""
    if after:
        rows = rows.filter(Q(**{f"{moment}__gt": after[0]}) | Q(**{moment: after[0], "id__gt": after[1]}))
    return list(rows.order_by(moment, "id").select_related("task__standalone")[:count])


def queues_of(provisioner: str) -> QuerySet[Queue]:
    """Return the queues of a provisioner. Their names start with its name and a slash."""
    prefix = f"{provisioner}/"
    # Not `startswith`: it ignores case on SQLite.
    return Queue.objects.filter(Exact(Left("name", len(prefix)), prefix))


def provisioners(after: Sequence[str] = (), only: str = "") -> QuerySet:
    """Return (name, expires_at, last_active_at) of each provisioner, derived from its queues: there is no table."""
    rows = queues_of(only) if only else Queue.objects.all()
    named = rows.annotate(provisioner=Left("name", StrIndex("name", Value("/")) - 1))
    if after:
        named = named.filter(provisioner__gt=after[0])
    grouped = named.values("provisioner").annotate(Max("expires_at"), Max("last_active_at"))
    return grouped.order_by("provisioner").values_list("provisioner", "expires_at__max", "last_active_at__max")


def find_queue(name: str) -> Queue:
    return Queue.objects.filter(pk=name).first() or _not_found(f"Task queue {name} does not exist.")


def workers(queue: str, now: int) -> QuerySet[Worker]:
    """Return the workers of a queue, each with the id of its `latest` attempt.

    An expired worker is included only while it is quarantined.
    """
    attempts = Attempt.objects.filter(run__isnull=True, queue=OuterRef("queue"), worker=OuterRef("full_name"))
    latest = attempts.exclude(worker="").order_by("-claimed_at", "-id").values("id")[:1]
    seen = Worker.objects.filter(Q(expires_at__gt=now) | Q(quarantine_until__gt=now), queue=queue)
    named = seen.annotate(full_name=Concat("group", Value("/"), "name"))
    return named.annotate(latest=Subquery(latest))  # type: ignore[no-redef]  # the model declares it


def find_worker(queue: str, group: str, name: str, now: int) -> Worker:
    find_queue(queue)
    found = workers(queue, now).filter(group=group, name=name).first()
    return found or _not_found(f"Worker {group}/{name} of {queue} does not exist.")


def recent_attempts(worker: Worker) -> list[tuple[str, int]]:
    """Return task id and number of the attempts that a worker claimed last, newest at the end."""
    rows = Attempt.objects.filter(run__isnull=True, queue=worker.queue, worker=str(worker)).exclude(worker="")
    return list(rows.order_by("-claimed_at", "-id").values_list("task_id", "number")[:RECENT])[::-1]


def latest_of(found: Iterable[Worker]) -> dict[str, Attempt]:
    """Return the latest attempts of workers, by attempt id."""
    return Attempt.objects.only("task_id", "number").in_bulk([each.latest for each in found if each.latest])


def group_rows(group_id: str) -> StandaloneTaskQuerySet:
    """Return the tasks of a group with their attempts."""
    return StandaloneTask.objects.filter(group_id=group_id).with_attempts()


def messages_of(task_id: str) -> list[PulseMessage]:
    """Return the Pulse messages about a task, oldest first."""
    return list(PulseMessage.objects.filter(task_id=task_id).order_by("id").only("name", "sent_at", "key")[:MAX_SHOWN])


def _not_found(message: str):
    raise NotFound(message)


URGENCY = ("FAILED", "TIMED_OUT", "CANCELED", "LEASED", "PENDING", "BLOCKED", "COMPLETED")
"""States by urgency, most urgent first."""
ENDED_BADLY = ("FAILED", "TIMED_OUT", "CANCELED")


def tasks_of_group(group_id: str, state: str = "", name_part: str = "") -> StandaloneTaskQuerySet:
    """Return the tasks of a group, the most urgent ones first, each with its `state` as pages show it."""
    last = Attempt.objects.filter(pk=OuterRef("task__attempt_id")).values("status")[:1]
    shown = Case(When(task__status="ACTIVE", then=Coalesce(Subquery(last), F("task__status"))), default="task__status")
    rows = StandaloneTask.objects.filter(group_id=group_id).annotate(state=shown)
    if state:
        rows = rows.filter(state=state)
    if name_part:
        rows = rows.filter(task__name__icontains=name_part)
    places = [When(state=name, then=Value(place)) for place, name in enumerate(URGENCY)]
    urgency = Case(*places, default=Value(len(URGENCY)), output_field=IntegerField())
    return rows.order_by(urgency, "task__name", "pk")


def first_failure(group_id: str) -> tuple[str, str] | None:
    """Return the name and the reason of the task of a group that failed first, or None."""
    last = Attempt.objects.filter(task__standalone__group_id=group_id, task__attempt_id=F("pk"), ended_at__isnull=False)
    bad = last.filter(task__status__in=ENDED_BADLY).order_by("ended_at", "task_id")
    row = bad.values_list("task_id", "task__name", "task__status", "reason").first()
    return (row[1] or row[0], row[3] or row[2].lower()) if row else None


def group_times(group_id: str) -> dict[str, Any]:
    """Return `began_at` and `ended_at` of a group, in milliseconds; None before its first attempt or end."""
    attempts = Attempt.objects.filter(task__standalone__group_id=group_id)
    return attempts.aggregate(began_at=Min("scheduled_at"), ended_at=Max("ended_at"))


def open_deadlines(group_id: str) -> dict[str, Any]:
    """Return the `first` and the `last` deadline of the open tasks of a group, or None for both."""
    left = StandaloneTask.objects.filter(group_id=group_id, task__status__in=("BLOCKED", "ACTIVE"))
    return left.aggregate(first=Min("deadline_at"), last=Max("deadline_at"))


MAX_DETAILED = 5_000
"""Tasks of a list of groups that are counted by state. Larger groups show only their number of resolved tasks."""


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """Number of tasks of a group, of resolved tasks, and, if counted, of tasks by state."""

    total: int = 0
    resolved: int = 0
    states: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_resolved(self) -> bool:
        return self.resolved == self.total

    @property
    def failed(self) -> int:
        return sum(self.states.get(state, 0) for state in ENDED_BADLY)

    @property
    def share(self) -> int:
        """Return the percentage of resolved tasks, rounded down, so that 100 means all."""
        return 100 * self.resolved // self.total if self.total else 0

    @property
    def parts(self) -> list[tuple[str, int]]:
        """Return the states that occur with their counts, failures first."""
        return [(state, self.states[state]) for state in URGENCY if self.states.get(state)]


def group_progress(group_id: str) -> GroupProgress:
    """Return the progress of one group, with counts by state."""
    states = _count_states([group_id]).get(group_id, {})
    resolved = sum(count for state, count in states.items() if state in ("COMPLETED", *ENDED_BADLY))
    return GroupProgress(sum(states.values()), resolved, states)


def groups_progress(group_ids: Iterable[str]) -> dict[str, GroupProgress]:
    """Return the progress of several groups. Only small groups have counts by state, which keeps the list fast."""
    own = StandaloneTask.objects.filter(group_id__in=list(group_ids)).order_by().values_list("group_id")
    counted = own.annotate(total=Count("pk"))
    totals = dict(counted)
    unresolved = dict(counted.filter(ever_resolved=False))
    states = _count_states(_small_groups(totals))
    return {id: GroupProgress(total, total - unresolved.get(id, 0), states.get(id, {})) for id, total in totals.items()}


def _small_groups(totals: Mapping[str, int]) -> list[str]:
    """Return the smallest groups whose tasks together are at most MAX_DETAILED."""
    chosen, left = [], MAX_DETAILED
    for id, total in sorted(totals.items(), key=lambda each: each[1]):
        left -= total
        if left < 0:
            break
        chosen.append(id)
    return chosen


def _count_states(group_ids: Iterable[str]) -> dict[str, dict[str, int]]:
    own = StandaloneTask.objects.filter(group_id__in=list(group_ids)).order_by()
    found: dict[str, dict[str, int]] = {}
    for id, status, count in own.values_list("group_id", "task__status").annotate(count=Count("pk")):
        found.setdefault(id, {})[status] = count
    # An active task is either pending or in progress. Its attempt says which.
    leased = own.filter(Q(task__status="ACTIVE", task__attempts__status="LEASED")).values_list("group_id")
    with_workers = dict(leased.annotate(count=Count("pk")))
    for id, states in found.items():
        active, out = states.pop("ACTIVE", 0), with_workers.get(id, 0)
        states |= {"PENDING": active - out, "LEASED": out}
    return found
