"""Stops at breakpoints survive a restart, are released once, expire, and cost nothing where there are none."""

import pytest

from conductor_app.core.errors import Conflict
from conductor_app.runs.commands import debugging
from conductor_app.runs.commands.debugging import BreakpointRequest, ContinueRequest
from conductor_app.runs.models import Attempt, HistoryEntry, Run
from conductor_app.runs.store import loading as store
from conductor_app.tasks.commands import queues
from conductor_app.tasks.pages.actions import task_actions
from conductor_app.tasks.queries.waiting import verdicts_on
from conductor_app.utils import fault_points
from tests.builders import step
from tests.runs.test_parallel import at_once
from tests.runs.test_statements import Counted
from tests.scenario import ACTOR, Scenario


def stopped(clock) -> Scenario:
    scenario = Scenario(clock, step("a"), step("b"))
    debugging.set_breakpoint(scenario.id, BreakpointRequest("b"), ACTOR)
    scenario.worker("a").completes()
    return scenario


def stopped_attempts(run_id: str) -> list[str]:
    return list((Run.objects.get(pk=run_id).debug or {}).get("stops", {}))


@pytest.mark.django_db
def test_a_stop_is_part_of_the_rows_so_a_restart_keeps_it(clock):
    scenario = stopped(clock)
    [id] = stopped_attempts(scenario.id)
    task = store.load_run(scenario.id).task_of_attempt(id)
    assert task is not None
    assert task.is_stopped
    assert scenario.worker("b").polls() == []


@pytest.mark.django_db
@pytest.mark.parametrize("go", [queues.skip_delay, queues.move_to_front])
def test_no_action_on_the_queue_passes_a_breakpoint(clock, go):
    scenario = stopped(clock)
    [id] = stopped_attempts(scenario.id)

    with pytest.raises(Conflict, match="stopped at a breakpoint"):
        go(id, "olga")

    attempt = Attempt.objects.select_related("task__run").get(pk=id)
    assert {"now", "front"} & {action.name for action in task_actions(attempt, clock.now(), lambda name: True)} == set()
    due = next(each for each in verdicts_on(attempt, clock.now()) if each.gate == "due")
    assert due.sentence == "The task has no time yet: it is held."
    assert scenario.worker("b").polls() == []


class Crash(BaseException):
    """The end of a process."""


@pytest.mark.django_db(transaction=True)
def test_a_crash_before_the_commit_keeps_the_stop_and_a_crash_after_it_the_release(clock):
    scenario = stopped(clock)
    [id] = stopped_attempts(scenario.id)

    def crash(point: str) -> None:
        raise Crash

    fault_points.set_handler(crash)
    try:
        with pytest.raises(Crash):
            debugging.continue_run(scenario.id, ContinueRequest(id), ACTOR)
    finally:
        fault_points.set_handler(None)
    assert stopped_attempts(scenario.id) == [id]

    debugging.continue_run(scenario.id, ContinueRequest(id), ACTOR)
    assert stopped_attempts(scenario.id) == []
    last = HistoryEntry.objects.filter(run_id=scenario.id).latest("revision")
    assert "ReleaseTask" in [line["effect"] for line in last.effects]


@pytest.mark.django_db(transaction=True)
def test_two_operators_who_continue_at_once_cause_one_continuation(clock):
    scenario = stopped(clock)
    [id] = stopped_attempts(scenario.id)

    def continue_once(number: int) -> str:
        try:
            debugging.continue_run(scenario.id, ContinueRequest(id), f"operator {number}")
        except Conflict:
            return "refused"
        return "continued"

    assert sorted(at_once(continue_once, 2)) == ["continued", "refused"]
    assert Attempt.objects.filter(run_id=scenario.id, name="b").count() == 1


@pytest.mark.django_db
def test_an_expired_stop_is_released_by_the_sweep_of_run_timers(clock):
    scenario = stopped(clock)
    scenario.later(61 * 60)
    assert stopped_attempts(scenario.id) == []
    assert scenario.worker("b").polls() == ["b"]


@pytest.mark.django_db
def test_a_run_without_breakpoints_and_one_whose_breakpoint_does_not_stop_cost_the_same_statements(clock):
    counts = []
    for has_breakpoint in (False, True):
        scenario = Scenario(clock, step("a"), step("b"))
        if has_breakpoint:
            debugging.set_breakpoint(scenario.id, BreakpointRequest("a", "failure"), ACTOR)
        scenario.worker("a").polls()
        with Counted() as counted:
            scenario.worker("a").completes()
        counts.append(counted.count)
    assert counts[0] == counts[1]
