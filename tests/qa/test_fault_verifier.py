"""The verifier accepts a good history, and each rule finds the violation that it is about."""

from collections.abc import Callable
from typing import Any

import pytest

from qa.faults import verifier
from qa.faults.final_state import FinalState
from qa.faults.verifier import Evidence, Period, latest_end

NOW = 1_000_000.0
"""The start of the good history in seconds."""


def task(id: str, ref: str, kind: str, begins: float, ends: float, **more: Any) -> dict[str, Any]:
    return {
        "taskId": id,
        "referenceTaskName": ref,
        "taskType": kind,
        "status": "COMPLETED",
        "retryCount": 0,
        "pollCount": 1,
        "startTime": (NOW + begins) * 1000,
        "updateTime": (NOW + begins) * 1000,
        "endTime": (NOW + ends) * 1000,
        "outputData": {},
        **more,
    }


def run(id: str, *tasks: dict[str, Any], ends: float = 6.0, **more: Any) -> dict[str, Any]:
    times = {"startTime": NOW * 1000, "endTime": (NOW + ends) * 1000}
    return {"workflowId": id, "status": "COMPLETED", "tasks": [*tasks], **times, **more}


def event(kind: str, at: float, **facts: Any) -> dict[str, Any]:
    return {"kind": kind, "at": NOW + at, "sent": NOW + at - 0.01, **facts}


def report(at: float, token: str, outcome: str = "COMPLETED", task: str = "pick", status: int = 200) -> dict[str, Any]:
    return event("report", at, task=task, token=token, outcome=outcome, status=status)


def fault(injected: float, recovered: float, skew: float = 0.0, has_recovered: bool = True) -> dict[str, Any]:
    times = {"injected": NOW + injected, "healed": NOW + recovered - 1, "recovered": NOW + recovered}
    return event("fault", recovered, name="cut", subject="web", skew=skew, has_recovered=has_recovered, **times)


def lease(at: float, holder: str, revision: int) -> dict[str, Any]:
    return {"name": "beat", "at": NOW + at, "holder": holder, "revision": revision}


@pytest.fixture
def evidence() -> Evidence:
    """Return a history without a violation: one order, with a worker's task, a timer and a sub-workflow."""
    order = run(
        "order",
        task("pick", "pick", "SIMPLE", 0.1, 0.2, outputData={"token": "one"}),
        task("wait", "wait", "WAIT", 0.2, 2.5),
        task("sub", "child", "SUB_WORKFLOW", 2.5, 5.0, subWorkflowId="child"),
    )
    events = [
        event("start", 0.0, key="k", status=200, body="order"),
        event("claim", 0.1, task="pick", worker="w"),
        report(0.2, "one"),
        event("notified", 6.0, run="order", status="COMPLETED"),
        event("notified", 5.5, run="order", status="CALLED"),
    ]
    state = FinalState(
        orders={"k": [order]},
        echoes={"k": [run("echo")]},
        children={"child": run("child", task("rest", "rest", "WAIT", 2.6, 4.7))},
        counts={verifier.ORDER: 1, verifier.CHILD: 1, verifier.ECHO: 1, verifier.TICK: 1},
        slots=[{"scheduledTime": 1, "state": "EXECUTED", "workflowId": "tick"}],
        leases=[lease(0.0, "a", 1), lease(0.5, "a", 2), lease(2.6, "b", 3)],
    )
    return Evidence(events, state)


def order_of(evidence: Evidence) -> dict[str, Any]:
    return evidence.state.orders["k"][0]


def rules_broken(evidence: Evidence) -> set[str]:
    return {violation.rule for violation in verifier.verify(evidence)}


def test_a_good_history_has_no_violation(evidence):
    assert verifier.verify(evidence) == []


def lose_run(evidence):
    evidence.state.orders["k"] = []


def double_run(evidence):
    evidence.state.orders["k"].append(run("other"))


def add_unknown_run(evidence):
    evidence.state.counts[verifier.ORDER] = 2


def lose_report(evidence):
    order_of(evidence)["tasks"][0] |= {"outputData": {"token": "two"}}
    evidence.events.append(report(0.5, "two"))


def lose_report_until_the_lease_ends(evidence):
    order_of(evidence)["tasks"][0] |= {"status": "TIMED_OUT", "endTime": (NOW + 5) * 1000, "outputData": {}}


def invent_result(evidence):
    order_of(evidence)["tasks"][0]["outputData"] = {"token": "unknown"}


def lose_attempt(evidence):
    del order_of(evidence)["tasks"][0]


def complete_twice(evidence):
    order_of(evidence)["tasks"].append(task("pick2", "pick", "SIMPLE", 0.3, 0.4, retryCount=1))


def repeat_attempt_number(evidence):
    order_of(evidence)["tasks"].append(task("pick2", "pick", "SIMPLE", 0.3, 0.4, status="FAILED"))


def give_to_two_workers(evidence):
    evidence.events.append(event("claim", 0.15, task="pick", worker="v"))


def give_away_task_of_reply(evidence):
    evidence.events[1]["with_report"] = True
    order_of(evidence)["tasks"][0]["workerId"] = "v"


def claim_twice(evidence):
    order_of(evidence)["tasks"][0]["pollCount"] = 2


def end_lease_early(evidence):
    order_of(evidence)["tasks"][0] |= {"status": "TIMED_OUT", "endTime": (NOW + 0.15) * 1000}


def leave_run_open(evidence):
    order_of(evidence)["status"] = "RUNNING"


def fail_run(evidence):
    order_of(evidence)["status"] = "FAILED"


def take_long(evidence):
    order_of(evidence)["endTime"] = (NOW + verifier.RUN_SECONDS + 1) * 1000


def fire_late(evidence):
    order_of(evidence)["tasks"][1]["endTime"] = (NOW + 3.3) * 1000


def fire_early(evidence):
    order_of(evidence)["tasks"][1]["endTime"] = (NOW + 2.1) * 1000


def fire_late_after_recovery(evidence):
    evidence.events.append(fault(1.0, 5.0))
    order_of(evidence)["tasks"][1]["endTime"] = (NOW + 6.1) * 1000


def start_no_event_run(evidence):
    evidence.state.echoes, evidence.state.counts[verifier.ECHO] = {}, 0


def start_two_event_runs(evidence):
    evidence.state.echoes["k"].append(run("echo2"))
    evidence.state.counts[verifier.ECHO] = 2


def start_two_children(evidence):
    evidence.state.counts[verifier.CHILD] = 2


def send_no_message(evidence):
    evidence.events[:] = [each for each in evidence.events if each.get("status") != "COMPLETED"]


def execute_slot_twice(evidence):
    evidence.state.slots.append(evidence.state.slots[0])
    evidence.state.counts[verifier.TICK] = 2


def fail_slot(evidence):
    evidence.state.slots.append({"scheduledTime": 2, "state": "FAILED", "reason": "disk"})


def start_unknown_tick(evidence):
    evidence.state.counts[verifier.TICK] = 2


def lead_twice(evidence):
    evidence.state.leases.append(lease(2.7, "a", 4))


def skip_revision(evidence):
    evidence.state.leases.append(lease(3.1, "b", 5))


def reply_500(evidence):
    evidence.events += [fault(0.0, 3.0), event("poll", 2.0, status=500, body={"retryable": False})]


def reply_503_without_fault(evidence):
    evidence.events.append(event("poll", 2.0, status=503, body={"retryable": True}))


def reply_503_without_retryable(evidence):
    evidence.events += [fault(0.0, 3.0), event("poll", 2.0, status=503, body="Service Unavailable")]


def reply_404(evidence):
    evidence.events += [fault(0.0, 3.0), event("report", 2.0, status=404, task="pick", token="x", outcome="FAILED")]


def not_recover(evidence):
    evidence.events.append(fault(0.0, 50.0, has_recovered=False))


BAD: list[tuple[Callable[[Evidence], None], str]] = [
    (lose_run, "each acknowledged start exists once"),
    (double_run, "each acknowledged start exists once"),
    (add_unknown_run, "each acknowledged start exists once"),
    (lose_report, "each acknowledged report exists once"),
    (lose_report_until_the_lease_ends, "each acknowledged report exists once"),
    (invent_result, "each acknowledged report exists once"),
    (lose_attempt, "each acknowledged report exists once"),
    (complete_twice, "a late report changes nothing"),
    (repeat_attempt_number, "a late report changes nothing"),
    (give_to_two_workers, "one worker holds an attempt"),
    (claim_twice, "one worker holds an attempt"),
    (give_away_task_of_reply, "a task that update-v2 has claimed for a worker is held by that worker only"),
    (end_lease_early, "a lease lasts until its end"),
    (leave_run_open, "no run is stuck"),
    (fail_run, "no run is stuck"),
    (take_long, "no run is stuck"),
    (fire_late, "timers fire within 1 s"),
    (fire_early, "timers fire within 1 s"),
    (fire_late_after_recovery, "timers fire within 1 s"),
    (start_no_event_run, "each effect happens once"),
    (start_two_event_runs, "each effect happens once"),
    (start_two_children, "each effect happens once"),
    (send_no_message, "each effect happens once"),
    (execute_slot_twice, "each slot starts one run"),
    (fail_slot, "each slot starts one run"),
    (start_unknown_tick, "each slot starts one run"),
    (lead_twice, "one beat leads at a time"),
    (skip_revision, "one beat leads at a time"),
    (reply_500, "errors are retryable"),
    (reply_503_without_fault, "errors are retryable"),
    (reply_503_without_retryable, "errors are retryable"),
    (reply_404, "errors are retryable"),
    (not_recover, "the server recovers"),
]


@pytest.mark.parametrize(("spoil", "rule"), BAD, ids=[spoil.__name__ for spoil, _ in BAD])
def test_a_bad_history_breaks_its_rule(evidence, spoil, rule):
    spoil(evidence)

    assert rule in rules_broken(evidence)


def test_a_report_after_the_end_of_the_lease_may_have_no_effect(evidence):
    order_of(evidence)["tasks"][0] |= {"status": "TIMED_OUT", "endTime": (NOW + 5) * 1000, "outputData": {}}
    evidence.events[2] = report(4.9, "one")

    assert rules_broken(evidence) == set()


def test_a_worker_may_claim_an_attempt_again_that_it_returned(evidence):
    order_of(evidence)["tasks"][0]["pollCount"] = 2
    evidence.events[2:2] = [report(0.12, "half", "IN_PROGRESS"), event("claim", 0.15, task="pick", worker="v")]

    assert rules_broken(evidence) == set()


def test_an_error_during_a_fault_is_allowed(evidence):
    evidence.events += [fault(1.0, 3.0), event("poll", 2.0, status=503, body={"retryable": True})]

    assert rules_broken(evidence) == set()


def test_a_timer_may_fire_a_second_after_the_recovery(evidence):
    evidence.events.append(fault(1.0, 5.0))
    order_of(evidence)["tasks"][1]["endTime"] = (NOW + 5.9) * 1000

    assert rules_broken(evidence) == set()


def test_a_timer_may_be_wrong_by_the_step_of_a_clock(evidence):
    evidence.events.append(fault(1.0, 3.0, skew=1.5))
    order_of(evidence)["tasks"][1]["endTime"] = (NOW + 1.0) * 1000

    assert rules_broken(evidence) == set()


def test_an_overloaded_machine_delays_timers_by_its_load(evidence):
    evidence.events += [event("overload", at, starts=NOW + at - 1, ends=NOW + at, load=4.0) for at in range(1, 5)]
    order_of(evidence)["tasks"][1]["endTime"] = (NOW + 5.0) * 1000

    assert rules_broken(evidence) == set()


@pytest.mark.parametrize(
    ("periods", "latest"),
    [
        ([], 11.0),
        ([Period(0.0, 9.0)], 11.0),
        ([Period(8.0, 12.0)], 13.0),
        ([Period(10.9, 12.0)], 13.0),
        ([Period(8.0, 12.0), Period(12.9, 15.0)], 16.0),
        ([Period(8.0, 12.0), Period(13.1, 15.0)], 13.0),
    ],
)
def test_the_time_of_a_timer_is_extended_by_the_faults_that_prevent_it(periods, latest):
    assert latest_end(periods, 10.0) == latest
