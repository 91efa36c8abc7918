"""A run as of one of its revisions: told from history as it was."""

import random

import pytest

from conductor_app.insight.runs.history_replay import replay_history, run_at_revision
from conductor_app.models import HistoryEntry, Task
from tests.builders import fork, loop, policy, step, step_without_policy
from tests.scenario import Scenario


def created(task, status="PENDING", **more):
    return {"effect": "CreateTask", "task": task, "type": "SIMPLE", "status": status, **more}


def moved(kind, task, event):
    return {"effect": kind, "task": task, "event": event}


def told(*decisions):
    past = replay_history(enumerate(decisions, 1))
    return past.status, {task.key: task.status for task in past.tasks}


def test_tasks_appear_and_end():
    first = [created("a")]
    second = [moved("MoveAttempt", "a", "complete"), moved("ResolveTask", "a", "complete"), created("b")]

    assert told(first) == ("RUNNING", {"a": "ACTIVE"})
    assert told(first, second) == ("RUNNING", {"a": "COMPLETED", "b": "ACTIVE"})
    assert told(first, second, [{"effect": "MoveRun", "event": "pause"}])[0] == "PAUSED"


def test_a_task_that_ended_at_once_or_was_skipped_has_its_status():
    assert told([created("a", "COMPLETED"), created("b", "COMPLETED", becomes="SKIPPED")])[1] == {
        "a": "COMPLETED",
        "b": "SKIPPED",
    }


def test_reverted_and_deleted_tasks_are_removed():
    body = [created(key) for key in ("a", "x__1", "y__1__2", "x__2", "x__11")]

    assert list(told(body, [{"effect": "TakeBack", "count": 1, "tasks": ["a"]}])[1]) == [
        "x__1", "y__1__2", "x__2", "x__11",
    ]  # fmt: skip
    assert list(told(body, [{"effect": "ForgetTasks", "loop": "l", "iteration": 1}])[1]) == ["a", "x__2", "x__11"]


def test_unstored_history_lines_are_counted():
    past = replay_history(
        [(1, [created("a"), {"effect": "…", "more": 800}]), (2, [{"effect": "TakeBack", "count": 60}])]
    )

    assert past.unknown == 860


@pytest.mark.parametrize("lines", [None, [], [{}], [{"effect": "MoveAttempt"}], [{"effect": "TakeBack", "count": "x"}]])
def test_empty_history_lines_are_ignored(lines):
    assert told(lines) == ("RUNNING", {})


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(4))
def test_the_newest_revision_is_the_run_as_it_is(clock, seed):
    chance = random.Random(seed)
    work = policy(retries=1, delay_seconds=0)
    scenario = Scenario(
        clock,
        fork([step("a", policy=work)], [step_without_policy("b")]),
        loop("again", step_without_policy("c"), times=2),
        step_without_policy("d"),
        tasks=[],
    )
    for _ in range(12):
        worker = scenario.worker(chance.choice("abcd"))
        if worker.held is None and not worker.polls():
            continue
        worker.completes() if chance.random() < 0.8 else worker.fails()
        if scenario.status == "FAILED":
            scenario.retry()
    scenario.pause() if scenario.status == "RUNNING" else None

    revisions = HistoryEntry.objects.filter(run_id=scenario.id).count()
    past = run_at_revision(scenario.id, revisions)

    assert past.status == scenario.status
    assert {task.key: task.status for task in past.tasks} == {
        str(task): task.status for task in Task.objects.filter(run_id=scenario.id)
    }
