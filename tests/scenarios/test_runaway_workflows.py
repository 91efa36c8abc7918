"""Workflows that would never end are stopped: by depth, tasks, iterations, history and open descendants."""

import pytest

from conductor_app.core import decide as decisions
from conductor_app.core.errors import MAX_REASON_LENGTH
from conductor_app.definitions import store as definitions
from conductor_app.runs.commands import change
from conductor_app.runs.models import HistoryEntry, Run
from tests.builders import definition, dynamic_fork, loop, set_variable, step, sub_workflow
from tests.scenario import RunView, Scenario


@pytest.fixture(autouse=True)
def fresh_definitions():
    """Clear the cache of parsed definitions, because a parsed definition keeps the limits that were set when it was
    parsed.
    """
    definitions.load_definition.cache_clear()
    yield
    definitions.load_definition.cache_clear()


def recursive_scenario(clock, **fields) -> Scenario:
    return Scenario(clock, sub_workflow("again", "order"), **fields)


def test_a_workflow_that_starts_itself_stops_at_the_maximum_depth(clock, settings):
    settings.CONDUCTOR_MAX_WORKFLOW_DEPTH = 30

    root = recursive_scenario(clock)
    root.later(1)

    deepest = Run.objects.order_by("-depth").first()
    assert (Run.objects.count(), deepest.depth, deepest.status) == (31, 30, "FAILED")
    assert "nested 30 levels deep, which is the maximum (MAX_WORKFLOW_DEPTH)" in deepest.reason
    assert set(Run.objects.values_list("status", flat=True)) == {"FAILED"}


def test_reasons_do_not_grow_with_the_depth(clock, settings):
    settings.CONDUCTOR_MAX_WORKFLOW_DEPTH = 30

    root = recursive_scenario(clock)
    root.later(1)

    assert max(len(reason) for reason in Run.objects.values_list("reason", flat=True)) < 3_000
    assert f"(see workflow {RunView(root.id).child('again').id})" in root.reason


def test_a_failure_workflow_that_fails_into_itself_stops_at_the_maximum_depth(clock, settings):
    settings.CONDUCTOR_MAX_WORKFLOW_DEPTH = 5
    failing = {"name": "end", "taskReferenceName": "end", "type": "TERMINATE"}
    failing["inputParameters"] = {"terminationStatus": "FAILED"}

    Scenario(clock, failing, failureWorkflow="order").later(1)

    assert Run.objects.count() == 6
    assert "maximum (MAX_WORKFLOW_DEPTH)" in Run.objects.get(depth=5).output["conductor.failure_workflow"]


def test_a_loop_without_end_stops_at_the_maximum_number_of_iterations(clock, settings):
    settings.CONDUCTOR_MAX_LOOP_ITERATIONS = 20

    scenario = Scenario(clock, loop("l", set_variable("v"), times=1_000))
    scenario.later(1)

    assert scenario.status == "FAILED"
    assert "The loop has run 20 iterations, which is the maximum (MAX_LOOP_ITERATIONS)." in scenario.reason


FORKS = {
    "elements": ({"forkTaskName": "s", "forkTaskInputs": "${workflow.input.l}"}, {}, lambda count: [*range(count)]),
    "steps": (
        {"l": "${workflow.input.l}", "i": {}},
        {"dynamicForkTasksParam": "l", "dynamicForkTasksInputParamName": "i"},
        lambda count: [step(f"s{number}") for number in range(count)],
    ),
    "deprecated": (
        {"l": "${workflow.input.l}"},
        {"dynamicForkJoinTasksParam": "l"},
        lambda count: {"dynamicTasks": [{"taskName": "s", "referenceName": f"s{number}"} for number in range(count)]},
    ),
}
"""The ways to name the branches of a dynamic fork: inputs, fields, and the value of the input `l`."""


@pytest.mark.parametrize(("inputs", "fields", "branches"), FORKS.values(), ids=FORKS)
def test_a_dynamic_fork_with_too_many_branches_fails_the_run(clock, settings, inputs, fields, branches):
    settings.CONDUCTOR_MAX_FORKED_TASKS = 5
    scenario = Scenario(clock, *dynamic_fork(inputs=inputs, **fields), input={"l": branches(6)})
    allowed = scenario.starts("order", {"l": branches(5)})

    assert scenario.status == "FAILED"
    assert scenario.reason == "The dynamic fork fan has 6 branches. The maximum is 5 (MAX_FORKED_TASKS)."
    assert (allowed.status, len(allowed.statuses)) == ("RUNNING", 7)


def test_many_loops_and_their_join_request_data_together(clock, monkeypatch):
    calls = []
    decide = change.apply_command
    monkeypatch.setattr(change, "apply_command", lambda *given: (calls.append(1), decide(*given))[1])
    monkeypatch.setattr(decisions, "MAX_EFFECTS", 80)
    loops = [loop(f"l{number}", set_variable(f"v{number}"), times=2) for number in range(40)]

    scenario = Scenario(clock, *dynamic_fork(), input={"tasks": loops, "inputs": {}})
    scenario.later(1)

    assert scenario.status == "COMPLETED"
    assert len(calls) < 20


def test_a_workflow_stops_at_the_maximum_number_of_tasks(clock, settings):
    settings.CONDUCTOR_MAX_TASKS_PER_WORKFLOW = 50

    scenario = Scenario(clock, loop("l", set_variable("v"), times=1_000))
    scenario.later(1)

    assert scenario.status == "FAILED"
    assert scenario.reason == "The workflow has created 50 tasks, which is the maximum (MAX_TASKS_PER_WORKFLOW)."


def test_a_workflow_stops_at_the_maximum_length_of_its_history(clock, settings):
    settings.CONDUCTOR_MAX_HISTORY_ENTRIES = 20

    scenario = Scenario(clock, step("work"))
    for n in range(30):
        if scenario.status == "RUNNING":
            scenario.worker("work").in_progress(n=n)

    assert scenario.status == "FAILED"
    assert scenario.reason == (
        "The history of the workflow has 20 entries, which is the maximum (MAX_HISTORY_ENTRIES). "
        "Start a new workflow for the remaining work."
    )
    assert HistoryEntry.objects.filter(run_id=scenario.id).count() <= 22


def test_an_entry_of_the_history_is_bounded(clock):
    many = {f"variable-{n}-{'x' * 100}": n for n in range(1_000)}
    scenario = Scenario(clock, set_variable("v", **many), step("work"))
    scenario.worker("work").fails("why " * 10_000)
    scenario.terminate("enough " * 10_000)

    assert len(scenario.reason) == MAX_REASON_LENGTH
    entries = list(HistoryEntry.objects.filter(run_id=scenario.id))
    assert max(len(str(entry.effects)) for entry in entries) < 20_000
    assert max(len(entry.reason) for entry in entries) == MAX_REASON_LENGTH


def test_limits_of_zero_are_off(clock, settings):
    settings.CONDUCTOR_MAX_LOOP_ITERATIONS = settings.CONDUCTOR_MAX_TASKS_PER_WORKFLOW = 0
    settings.CONDUCTOR_MAX_HISTORY_ENTRIES = 0

    scenario = Scenario(clock, loop("l", set_variable("v"), times=60))
    scenario.later(1)

    assert scenario.status == "COMPLETED"


def test_a_tree_with_too_many_open_runs_begins_no_more(clock, settings):
    settings.CONDUCTOR_MAX_OPEN_DESCENDANTS = 12
    twice = definition(
        {
            "name": "fork",
            "taskReferenceName": "fork",
            "type": "FORK_JOIN",
            "forkTasks": [[sub_workflow("left", "tree")], [sub_workflow("right", "tree")]],
        },
        {"name": "join", "taskReferenceName": "join", "type": "JOIN", "joinOn": ["left", "right"]},
        name="tree",
    )

    root = Scenario(clock, sub_workflow("top", "tree"), others=[twice])
    root.later(1)

    assert root.status in ("FAILED", "TERMINATED") and not Run.objects.filter(status="RUNNING").exists()
    assert Run.objects.filter(reason__contains="maximum (MAX_OPEN_DESCENDANTS)").exists()
