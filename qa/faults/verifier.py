"""The verification of a history: pure functions over the recorded events and the final state.

Each rule yields the violations that it finds. A fault is an event `fault` with the moments at which it was injected,
healed and recovered from; `stall` is a period in which the machine itself stood still, and `overload` a second in which
each core had `load` runnable threads.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from .definitions import CHILD, ECHO, LEASE_SECONDS, ORDER, TICK, WAIT_SECONDS
from .final_state import Document, FinalState
from .history import Event
from .http_client import OK

TIMER_SECONDS = 1.0
"""The time in which a timer must fire after it is due, or after the recovery from a fault."""
RECOVERY_SECONDS = 40.0
RUN_SECONDS = 60.0
"""The maximum duration of a run outside of faults. Workers that die and tasks that fail cost it some leases."""
TAKEOVER_SECONDS = 1.9
"""The minimum time between the last renewal of a lease and its takeover by another process."""
ERROR_GRACE_SECONDS = 1.0
"""Requests that were sent before a fault may fail, and so may the first ones after the recovery."""


class Violation(NamedTuple):
    """A rule that does not hold."""

    rule: str
    subject: str
    detail: str


class Period(NamedTuple):
    """A period in seconds of the wall clock in which the server may be impaired.

    `skew`: the step of a clock. Times that processes recorded in the period are wrong by as much.
    """

    starts_at: float
    ends_at: float
    skew: float = 0.0

    def overlaps(self, start: float, end: float) -> bool:
        return self.starts_at <= end and self.ends_at >= start

    def affects_times(self, start: float, end: float) -> bool:
        """Return True if times that a process recorded may be of this period."""
        return self.overlaps(start - self.skew, end + self.skew)


@dataclass
class Evidence:
    """Everything that the rules look at."""

    events: Sequence[Event]
    state: FinalState
    expects_messages: bool = True

    def of(self, kind: str) -> list[Event]:
        return self._by_kind.get(kind, [])

    @cached_property
    def _by_kind(self) -> Mapping[str, list[Event]]:
        by_kind = defaultdict(list)
        for event in self.events:
            by_kind[event["kind"]].append(event)
        return by_kind

    @cached_property
    def periods(self) -> list[Period]:
        """The periods of faults, until the server has recovered, and of stalls."""
        faults = [Period(event["injected"], event["recovered"], event["skew"]) for event in self.of("fault")]
        stalls = [Period(event["starts"], event["ends"]) for event in self.of("stall")]
        return sorted([*faults, *stalls])

    def impaired_within(self, start: float, end: float) -> list[Period]:
        """Return the periods that overlap with an interval."""
        return [period for period in self.periods if period.overlaps(start, end)]

    def skew_around(self, start: float, end: float) -> float:
        """Return the sum of the steps of clocks that affect times in an interval."""
        return sum(period.skew for period in self.periods if period.affects_times(start, end))

    def load_within(self, start: float, end: float) -> float:
        """Return the largest number of runnable threads per core in an interval, 0 without overload."""
        seconds = range(int(start), int(end) + 2)
        return max((self._loads.get(second, 0.0) for second in seconds), default=0.0)

    @cached_property
    def _loads(self) -> Mapping[int, float]:
        return {int(event["ends"]): event["load"] for event in self.of("overload")}

    @cached_property
    def tasks(self) -> dict[str, Document]:
        """All attempts of orders and their sub-workflows, by id."""
        runs = [run for found in self.state.orders.values() for run in found]
        return {task["taskId"]: task for run in (*runs, *self.state.children.values()) for task in run["tasks"]}

    @cached_property
    def runs(self) -> list[Document]:
        return [run for found in self.state.orders.values() for run in found] + [*self.state.children.values()]


Rule = Callable[[Evidence], Iterator[Violation]]


def each_acknowledged_start_exists_once(evidence: Evidence) -> Iterator[Violation]:
    """An acknowledged start has exactly the run that was acknowledged. Without it there is at most one run."""
    rule = "each acknowledged start exists once"
    acknowledged = {event["key"]: event["body"] for event in evidence.of("start") if event["status"] == 200}
    for key in dict.fromkeys(event["key"] for event in evidence.of("start")):
        ids = [run["workflowId"] for run in evidence.state.orders.get(key, ())]
        if len(ids) > 1:
            yield Violation(rule, key, f"has {len(ids)} runs")
        elif key in acknowledged and ids != [acknowledged[key]]:
            yield Violation(rule, key, f"was acknowledged as {acknowledged[key]}, but has {ids}")
    found = sum(map(len, evidence.state.orders.values()))
    if evidence.state.counts.get(ORDER, found) != found:
        yield Violation(rule, ORDER, f"{evidence.state.counts[ORDER]} runs exist, {found} belong to a start")


def each_acknowledged_report_exists_once(evidence: Evidence) -> Iterator[Violation]:
    """An acknowledged result is the result of its attempt, unless the attempt had ended before the acknowledgment."""
    rule = "each acknowledged report exists once"
    by_task = defaultdict(list)
    for event in evidence.of("report"):
        by_task[event["task"]].append(event)
    for id, reports in by_task.items():
        task = evidence.tasks.get(id)
        if task is None:
            yield Violation(rule, id, "the reported attempt does not exist")
            continue
        sent = {report["token"] for report in reports}
        if task["status"] == "COMPLETED" and task["outputData"].get("token") not in sent:
            yield Violation(rule, id, "has a result that no worker reported")
        for report in reports:
            is_result = report["status"] in OK and report["outcome"] != "IN_PROGRESS"
            if is_result and not _took_effect(evidence, report, task, reports):
                yield Violation(
                    rule,
                    id,
                    f"{report['outcome']} was acknowledged at {report['at']:.3f}, but the attempt is {task['status']} "
                    f"since {task['endTime'] / 1000:.3f}",
                )


def _took_effect(evidence: Evidence, report: Event, task: Document, reports: Sequence[Event]) -> bool:
    """Return True if the report decided the attempt, or if the attempt had ended in another way before."""
    expected = {"COMPLETED": "COMPLETED", "FAILED": "FAILED"}[report["outcome"]]
    if task["status"] == expected and task["outputData"].get("token") == report["token"]:
        return True
    if task["status"] == "TIMED_OUT":
        # A report after the end of the lease is late, even if the sweep has not ended the attempt yet.
        lease_ends_at = (task["updateTime"] or task["startTime"]) / 1000 + LEASE_SECONDS
        ended_at = min(task["endTime"] / 1000, lease_ends_at)
        return ended_at <= report["at"] + evidence.skew_around(report["sent"], report["at"])
    earlier = (other for other in reports if other["token"] != report["token"] and other["sent"] <= report["at"])
    return any(task["outputData"].get("token") == other["token"] for other in earlier)


def a_late_report_changes_nothing(evidence: Evidence) -> Iterator[Violation]:
    """A task continues with the result of one attempt: all others have failed or lost their lease."""
    rule = "a late report changes nothing"
    for run in evidence.runs:
        completed = Counter(task["referenceTaskName"] for task in run["tasks"] if task["status"] == "COMPLETED")
        for ref, count in completed.items():
            if count > 1:
                yield Violation(rule, f"{run['workflowId']}/{ref}", f"{count} attempts completed")
        numbers = Counter((task["referenceTaskName"], task["retryCount"]) for task in run["tasks"])
        for (ref, number), count in numbers.items():
            if count > 1:
                yield Violation(rule, f"{run['workflowId']}/{ref}", f"attempt {number} exists {count} times")


def one_worker_holds_an_attempt(evidence: Evidence) -> Iterator[Violation]:
    """An attempt is claimed once, and again only after a worker has returned it. The next attempt follows its end."""
    rule = "one worker holds an attempt"
    returned: Counter[tuple[str, str]] = Counter()
    for event in evidence.of("report"):
        if event["outcome"] == "IN_PROGRESS":
            returned[event["task"], event["token"]] = 1
    returns = Counter(task for task, _ in returned)
    claims = defaultdict(list)
    for event in evidence.of("claim"):
        claims[event["task"]].append(event)
    for id, found in claims.items():
        if len(found) > 1 + returns[id]:
            yield Violation(rule, id, f"was given to workers {len(found)} times and returned {returns[id]} times")
        task = evidence.tasks.get(id)
        if task is not None and task.get("pollCount", 0) > 1 + returns[id]:
            yield Violation(rule, id, f"was claimed {task['pollCount']} times and returned {returns[id]} times")
    yield from _early_successors(evidence, claims)


def a_task_of_a_reply_is_held_by_its_worker(evidence: Evidence) -> Iterator[Violation]:
    """No other worker gets or ends an attempt that update-v2 has claimed for a worker, unless one has returned it."""
    rule = "a task that update-v2 has claimed for a worker is held by that worker only"
    returned = {event["task"] for event in evidence.of("report") if event["outcome"] == "IN_PROGRESS"}
    holders = defaultdict(set)
    for event in evidence.of("claim"):
        holders[event["task"]].add(event["worker"])
    for event in evidence.of("claim"):
        id, worker = event["task"], event["worker"]
        if event.get("with_report") and id not in returned:
            others = (holders[id] | {evidence.tasks.get(id, {}).get("workerId", worker)}) - {worker}
            if others:
                names = ", ".join(sorted(map(str, others)))
                yield Violation(rule, id, f"was claimed for {worker}, but {names} had it too")


def _early_successors(evidence: Evidence, claims: Mapping[str, Sequence[Event]]) -> Iterator[Violation]:
    """Yield the attempts that ended because of their lease before it was over."""
    rule = "a lease lasts until its end"
    for id in claims:
        task = evidence.tasks.get(id)
        if task is None or task["status"] != "TIMED_OUT":
            continue
        starts_at, ends_at = task["startTime"] / 1000, task["endTime"] / 1000
        skew = evidence.skew_around(starts_at, ends_at)
        if ends_at - starts_at < LEASE_SECONDS - skew - 0.001:
            yield Violation(rule, id, f"ended {ends_at - starts_at:.3f} s after its claim")


def no_run_is_stuck(evidence: Evidence) -> Iterator[Violation]:
    """Every run completes, within a bound that the periods of faults extend."""
    rule = "no run is stuck"
    for run in evidence.runs:
        if run["status"] != "COMPLETED":
            open_tasks = [
                f"{task['referenceTaskName']} {task['status']}"
                for task in run["tasks"]
                if task["status"] != "COMPLETED"
            ]
            yield Violation(rule, run["workflowId"], f"is {run['status']}: {', '.join(open_tasks[-3:])}")
            continue
        start, end = run["startTime"] / 1000, run["endTime"] / 1000
        impaired = sum(
            max(min(period.ends_at, end) - max(period.starts_at, start), 0.0) + 2 * period.skew
            for period in evidence.periods
            if period.affects_times(start, end)
        )
        if end - start - impaired > RUN_SECONDS:
            yield Violation(rule, run["workflowId"], f"took {end - start:.1f} s, {impaired:.1f} s of them in faults")


def timers_fire_in_time(evidence: Evidence) -> Iterator[Violation]:
    """A WAIT step ends at its time, and at most a second later, or a second after the recovery from a fault."""
    rule = "timers fire within 1 s"
    for task in ended_timers(evidence):
        due_at, ended_at = task["startTime"] / 1000 + WAIT_SECONDS, task["endTime"] / 1000
        must_end_at = latest_end(evidence.periods, due_at)
        # On a machine that other programs use, the server has a share of the cores and takes as much longer.
        slowdown = max(evidence.load_within(due_at - TIMER_SECONDS, must_end_at), 1.0)
        if ended_at > must_end_at + (slowdown - 1) * TIMER_SECONDS:
            yield Violation(rule, task["taskId"], f"was due at {due_at:.3f} and ended {ended_at - due_at:.3f} s later")
        if ended_at < due_at - evidence.skew_around(due_at - WAIT_SECONDS, due_at) - 0.001:
            yield Violation(rule, task["taskId"], f"ended {due_at - ended_at:.3f} s too early")


def ended_timers(evidence: Evidence) -> list[Document]:
    """Return the attempts at WAIT steps that have ended."""
    return [task for task in evidence.tasks.values() if task["taskType"] == "WAIT" and task["status"] == "COMPLETED"]


def lateness_beyond_bound(evidence: Evidence, task: Document) -> float:
    """Return the seconds by which a timer exceeds its bound, without an allowance for the load of the machine."""
    return task["endTime"] / 1000 - latest_end(evidence.periods, task["startTime"] / 1000 + WAIT_SECONDS)


def latest_end(periods: Sequence[Period], due_at: float) -> float:
    """Return the time by which a timer must have fired."""
    must_end_at = due_at + TIMER_SECONDS
    for period in periods:
        if period.affects_times(due_at - WAIT_SECONDS if period.skew else due_at, must_end_at):
            must_end_at = max(must_end_at, period.ends_at + 2 * period.skew + TIMER_SECONDS)
    return must_end_at


def effects_happen_once(evidence: Evidence) -> Iterator[Violation]:
    """A sub-workflow, the run of an event and the status message exist for each completed order: the runs once."""
    rule = "each effect happens once"
    notified = {event["run"] for event in evidence.of("notified") if event["status"] == "COMPLETED"}
    called = {event["run"] for event in evidence.of("notified") if event["status"] == "CALLED"}
    for key, runs in evidence.state.orders.items():
        for run in (run for run in runs if run["status"] == "COMPLETED"):
            echoes = evidence.state.echoes.get(key, ())
            if len(echoes) != 1:
                yield Violation(rule, key, f"its event started {len(echoes)} runs")
            for name, found in (("status message", notified), ("HTTP request", called)):
                if evidence.expects_messages and run["workflowId"] not in found:
                    yield Violation(rule, key, f"its {name} was not sent")
    for name, count in ((CHILD, len(evidence.state.children)), (ECHO, sum(map(len, evidence.state.echoes.values())))):
        if evidence.state.counts.get(name, count) != count:
            yield Violation(rule, name, f"{evidence.state.counts[name]} runs exist, {count} are expected")


def each_slot_starts_one_run(evidence: Evidence) -> Iterator[Violation]:
    """A slot of the schedule has one execution and one run."""
    rule = "each slot starts one run"
    for slot, count in Counter(each["scheduledTime"] for each in evidence.state.slots).items():
        if count > 1:
            yield Violation(rule, str(slot), f"was executed {count} times")
    for slot in evidence.state.slots:
        if slot["state"] == "FAILED":
            yield Violation(rule, str(slot["scheduledTime"]), f"failed: {slot.get('reason')}")
    executed = [slot for slot in evidence.state.slots if slot["state"] == "EXECUTED"]
    count = evidence.state.counts.get(TICK, len(executed))
    if count != len(executed):
        yield Violation(rule, TICK, f"{count} runs exist, {len(executed)} slots were executed")


def one_beat_leads(evidence: Evidence) -> Iterator[Violation]:
    """Another process takes the lease of beat only when it was released, or not renewed for some time."""
    rule = "one beat leads at a time"
    renewals = [lease for lease in evidence.state.leases if lease["name"] == "beat"]
    for before, after in pairwise(renewals):
        if after["holder"] == before["holder"] or not before["holder"] or not after["holder"]:
            continue
        if before["revision"] != 0 and after["at"] - before["at"] < TAKEOVER_SECONDS:
            yield Violation(
                rule, after["holder"], f"took over {after['at'] - before['at']:.2f} s after {before['holder']}"
            )
    for before, after in pairwise(renewals):
        if after["revision"] not in (0, before["revision"] + 1):
            yield Violation(rule, after["holder"], f"revision {after['revision']} follows {before['revision']}")


def errors_are_retryable(evidence: Evidence) -> Iterator[Violation]:
    """Requests fail only during faults, without a reply or with a 503 that is marked as retryable.

    A request also has no reply if its connection was opened before the fault.
    """
    rule = "errors are retryable"
    for kind in ("start", "poll", "report"):
        for event in evidence.of(kind):
            if event["status"] in (200, 204):
                continue
            subject, opened_at = f"{kind} at {event['at']:.3f}", event.get("connected") or event["sent"]
            if event["status"] not in (0, 503):
                yield Violation(rule, subject, f"{event['status']} {event.get('body')}"[:300])
            elif event["status"] == 503 and not _is_retryable(event.get("body")):
                yield Violation(rule, subject, f"503 without retryable: {event.get('body')}"[:300])
            elif not evidence.impaired_within(opened_at - ERROR_GRACE_SECONDS, event["at"] + ERROR_GRACE_SECONDS):
                yield Violation(rule, subject, f"{event['status']} without a fault: {event.get('body')}"[:300])


def _is_retryable(body: Any) -> bool:
    return isinstance(body, dict) and body.get("retryable") is True


def the_server_recovers(evidence: Evidence) -> Iterator[Violation]:
    """After each fault is healed, all processes work again within a bound."""
    for event in evidence.of("fault"):
        if not event["has_recovered"] or event["recovered"] - event["healed"] > RECOVERY_SECONDS:
            seconds = event["recovered"] - event["healed"]
            yield Violation("the server recovers", f"{event['name']} {event['subject']}", f"not within {seconds:.0f} s")


RULES: tuple[Rule, ...] = (
    each_acknowledged_start_exists_once,
    each_acknowledged_report_exists_once,
    a_late_report_changes_nothing,
    one_worker_holds_an_attempt,
    a_task_of_a_reply_is_held_by_its_worker,
    no_run_is_stuck,
    timers_fire_in_time,
    effects_happen_once,
    each_slot_starts_one_run,
    one_beat_leads,
    errors_are_retryable,
    the_server_recovers,
)


def verify(evidence: Evidence) -> list[Violation]:
    """Return the violations of all rules."""
    return [violation for rule in RULES for violation in rule(evidence)]
