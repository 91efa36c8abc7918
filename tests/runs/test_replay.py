"""Replay: a run as of one of its revisions, reconstructed from its history."""

import random

import pytest

from conductor_app.runs.models import HistoryEntry, Task
from conductor_app.runs.queries.history import replay_history, run_at_revision
from tests.builders import fork, loop, policy, step, step_without_policy
from tests.scenario import Scenario


def create_effect(task, status="PENDING", **more):
    return {"effect": "CreateTask", "task": task, "type": "SIMPLE", "status": status, **more}


def transition_effect(kind, task, event):
    return {"effect": kind, "task": task, "event": event}


def replay(*decisions):
    replayed = replay_history((number, number * 1000, lines) for number, lines in enumerate(decisions, 1))
    return replayed.status, {task.key: task.status for task in replayed.tasks}


def test_tasks_appear_and_end():
    first = [create_effect("a")]
    second = [
        transition_effect("TransitionAttempt", "a", "complete"),
        transition_effect("ResolveTask", "a", "complete"),
        create_effect("b"),
    ]

    assert replay(first) == ("RUNNING", {"a": "ACTIVE"})
    assert replay(first, second) == ("RUNNING", {"a": "COMPLETED", "b": "ACTIVE"})
    assert replay(first, second, [{"effect": "TransitionRun", "event": "pause"}])[0] == "PAUSED"


def test_a_task_that_ended_at_once_or_was_skipped_has_its_status():
    assert replay([create_effect("a", "COMPLETED"), create_effect("b", "COMPLETED", becomes="SKIPPED")])[1] == {
        "a": "COMPLETED",
        "b": "SKIPPED",
    }


def test_reverted_and_deleted_tasks_are_removed():
    body = [create_effect(key) for key in ("a", "x__1", "y__1__2", "x__2", "x__11")]

    assert list(replay(body, [{"effect": "DeleteTasks", "count": 1, "tasks": ["a"]}])[1]) == [
        "x__1", "y__1__2", "x__2", "x__11",
    ]  # fmt: skip
    assert list(replay(body, [{"effect": "PruneIteration", "loop": "l", "iteration": 1}])[1]) == [
        "a",
        "x__2",
        "x__11",
    ]


def test_unstored_history_lines_are_counted():
    replayed = replay_history(
        [(1, 0, [create_effect("a"), {"effect": "…", "more": 800}]), (2, 0, [{"effect": "DeleteTasks", "count": 60}])]
    )

    assert replayed.unknown == 860


@pytest.mark.parametrize(
    "lines", [None, [], [{}], [{"effect": "TransitionAttempt"}], [{"effect": "DeleteTasks", "count": "x"}]]
)
def test_empty_history_lines_are_ignored(lines):
    assert replay(lines) == ("RUNNING", {})


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(4))
def test_the_newest_revision_is_the_run_as_it_is(clock, seed):
    random_source = random.Random(seed)
    work = policy(retries=1, delay_seconds=0)
    scenario = Scenario(
        clock,
        fork([step("a", policy=work)], [step_without_policy("b")]),
        loop("again", step_without_policy("c"), times=2),
        step_without_policy("d"),
        tasks=[],
    )
    for _ in range(12):
        worker = scenario.worker(random_source.choice("abcd"))
        if worker.held is None and not worker.polls():
            continue
        worker.completes() if random_source.random() < 0.8 else worker.fails()
        if scenario.status == "FAILED":
            scenario.retry()
    scenario.pause() if scenario.status == "RUNNING" else None

    revisions = HistoryEntry.objects.filter(run_id=scenario.id).count()
    replayed = run_at_revision(scenario.id, revisions)

    assert replayed.status == scenario.status
    assert {task.key: task.status for task in replayed.tasks} == {
        str(task): task.status for task in Task.objects.filter(run_id=scenario.id)
    }
