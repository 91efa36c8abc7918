"""The plan of an operation states its effect on each task, and warns of effects that other systems would see twice."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.core import task_impact
from conductor_app.core.errors import Conflict, NotFound, RequestRefused, RevisionChanged
from conductor_app.runs.commands.plans import Operation, OperationPlan, apply_operation, plan_operation
from conductor_app.runs.models import Attempt, Run, Task
from tests.builders import definition, dynamic_fork, fork, loop, policy, step, sub_workflow, switch
from tests.hypothesis_profile import seeds
from tests.runs.random_workers import RandomWorkers
from tests.runs.test_preview import everything
from tests.scenario import ACTOR, Scenario, register_definitions, run_commit_hooks

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


def planned_effects(planned: OperationPlan, run_id: str = "") -> dict[str, str]:
    """Return the planned effect on each task of one run, by name."""
    [run] = [run for run in planned.runs if run.run_id == (run_id or planned.target)]
    return {str(effect.key): effect.name + (", later" if effect.is_later else "") for effect in run.impacts}


def do(run_id: str, operation: Operation, **more) -> None:
    with run_commit_hooks():
        apply_operation(run_id, operation, ACTOR, **more)


def forked(clock) -> Scenario:
    """Return a run that failed in the second iteration of a loop around a fork, after one branch had continued."""
    body = fork([step("a"), step("b")], [step("c")])
    scenario = Scenario(clock, step("first"), loop("l", *body, step("d"), times=3), step("last"))
    scenario.worker("first").completes()
    for _ in range(2):
        for name in ("a", "c", "b"):
            scenario.worker(name).completes()
        scenario.worker("d").completes() if scenario.is_waiting_for("d__1") else scenario.worker("d").fails()
    assert scenario.status == "FAILED"
    return scenario


def test_a_plan_of_a_rerun_in_a_fork_in_a_loop_lists_exactly_the_repeated_tasks(clock):
    scenario = forked(clock)

    planned = plan_operation(scenario.id, Operation("rerun", attempt_id=scenario.task("a__2").id))

    again = {name for name, effect in planned_effects(planned).items() if effect.startswith("again")}
    assert again == {"l", "a__2", "b__2", "join__2", "d__2"}
    assert planned_effects(planned)["a__2"] == "again"
    assert planned_effects(planned)["b__2"] == planned_effects(planned)["d__2"] == "again, later"
    assert {planned_effects(planned)[name] for name in ("first", "a__1", "d__1", "c__2", "fork_join__2")} == {"reused"}


def test_then_it_is_done(clock):
    scenario = forked(clock)
    operation = Operation("rerun", attempt_id=scenario.task("a__2").id, reason="the data was wrong")
    kept = {name: scenario.task(name).id for name in ("first", "a__1", "c__2")}
    planned = plan_operation(scenario.id, operation)

    do(scenario.id, operation, revision=planned.revision)

    assert scenario.is_waiting_for("a__2")
    assert "b__2" not in scenario.statuses
    assert {name: scenario.task(name).id for name in kept} == kept
    assert AuditEntry.objects.get(object_id=scenario.id, action="rerun").reason == "the data was wrong"


def test_a_rerun_records_the_removed_attempt_and_the_changes_of_the_inputs_in_the_audit_log(clock):
    inputs = {"n": "${workflow.input.n}", "gone": 1, "text": "a"}
    scenario = Scenario(clock, step("a", inputs=inputs), input={"n": 1})
    scenario.worker("a").fails("no van")
    attempt = scenario.task("a").id
    edited = {"n": 2, "text": "b" * 5_000, "new": {"x": None}}

    do(scenario.id, Operation("rerun", attempt_id=attempt, task_input=edited, input={"n": 3}))

    facts = AuditEntry.objects.get(object_id=scenario.id, action="rerun").facts
    assert facts == {
        "task": "a",
        "attempt": attempt,
        "status": "FAILED",
        "failure": "no van",
        "before": {"task input.n": 1, "task input.gone": 1, "task input.text": "a", "input.n": 1},
        "after": {
            "task input.n": 2,
            "task input.text": '"' + "b" * 499 + "…",
            "task input.new": {"x": None},
            "input.n": 3,
        },
    }


def test_a_rerun_records_at_most_twenty_changes(clock):
    scenario = Scenario(clock, step("a"), input={})
    scenario.worker("a").fails()

    scenario.rerun(input={f"n{index}": index for index in range(30)})

    facts = AuditEntry.objects.get(object_id=scenario.id, action="rerun").facts
    assert len(facts["after"]) == 21 and facts["after"]["input, more changes"] == 10


def test_the_audit_log_of_a_sub_workflow_does_not_show_the_input_of_its_parent(clock):
    scenario = Scenario(clock, sub_workflow("s", definition(step("x"), name="leaf")), input={"n": 1})
    child = scenario.child("s")
    attempt = Attempt.objects.get(run_id=child.id, task__ref="x").pk
    scenario.terminate()

    scenario.rerun_from(attempt, task_input={"y": 5}, input={"n": 2})

    facts = AuditEntry.objects.get(object_id=child.id, action="rerun").facts
    assert (facts["before"], facts["after"]) == ({}, {"task input.y": 5})
    assert facts["new input of"] == scenario.id


def test_a_plan_does_not_change_any_row(clock):
    scenario = forked(clock)
    before = everything()

    plan_operation(scenario.id, Operation("restart", latest=True))

    assert everything() == before


def test_a_retry_reuses_completed_tasks(clock):
    scenario = Scenario(clock, step("a"), *fork([step("b")], [step("c")]))
    scenario.worker("a").completes()
    scenario.worker("b").fails()

    planned = plan_operation(scenario.id, Operation("retry"))

    assert planned_effects(planned) == {
        "a": "reused",
        "fork_join": "reused",
        "b": "again",
        "c": "again",
        "join": "again",
    }
    assert planned.counts == {"again": 3, "reused": 2}


def test_a_task_that_an_end_would_stop_is_cancelled(clock):
    scenario = Scenario(clock, *fork([step("a")], [sub_workflow("s", definition(step("x"), name="leaf"))]))
    child = scenario.child("s")

    planned = plan_operation(scenario.id, Operation("terminate"))

    assert planned_effects(planned)["a"] == planned_effects(planned)["s"] == "cancelled"
    assert planned_effects(planned, child.id) == {"x": "cancelled"}


def test_a_skipped_task_is_new_in_the_plan(clock):
    scenario = Scenario(clock, step("a"), step("b"))

    planned = plan_operation(scenario.id, Operation("skip", ref="b"))

    assert planned_effects(planned) == {"a": "goes on", "b": "new"}


def test_a_task_with_effects_outside_is_warned_of_when_it_has_run(clock):
    charge = step("charge", policy=policy() | {"sideEffects": "external"})
    refund = step("refund", policy=policy() | {"sideEffects": "external"})
    scenario = Scenario(clock, step("a"), charge, step("b"), refund)
    for name in ("a", "charge"):
        scenario.worker(name).completes()
    scenario.worker("b").fails()

    from_start = plan_operation(scenario.id, Operation("restart"))
    retried = plan_operation(scenario.id, Operation("retry"))

    assert [str(effect.key) for _, effect in from_start.external] == ["charge"]
    assert retried.external == []


def test_a_plan_warns_of_external_effects_in_a_restarted_child(clock):
    charge = step("charge", policy=policy() | {"sideEffects": "external"})
    leaf = definition(charge, step("x"), name="leaf")
    middle = definition(sub_workflow("below", "leaf"), name="middle")
    scenario = Scenario(clock, sub_workflow("s", "middle"), step("z"), others=[leaf, middle])
    old = scenario.child("s").child("below")
    scenario.worker("charge").completes()
    scenario.worker("x").completes()
    scenario.worker("z").fails()

    planned = plan_operation(scenario.id, Operation("rerun", attempt_id=scenario.task("s").id))

    assert [(run.run_id, run.is_replaced, str(effect.key)) for run, effect in planned.external] == [
        (old.id, True, "charge")
    ]
    assert [run.definition for run in planned.runs if run.is_new] == ["middle", "leaf"]


def test_a_plan_of_a_retry_in_a_child_shows_its_resumed_parents(clock):
    scenario = Scenario(clock, sub_workflow("s", "leaf"), others=[definition(step("x"), name="leaf")])
    scenario.worker("x").fails()
    child = scenario.child("s")

    planned = plan_operation(scenario.id, Operation("retry", resume_children=True))

    assert planned.target == child.id
    assert planned_effects(planned, child.id) == {"x": "again"}
    assert planned_effects(planned, scenario.id) == {"s": "resumed"}


def test_a_confirmation_is_refused_after_the_run_has_changed(clock):
    scenario = Scenario(clock, step("a"))
    scenario.worker("a").fails()
    planned = plan_operation(scenario.id, Operation("retry"))
    scenario.retry()
    scenario.worker("a").fails()

    with pytest.raises(RevisionChanged, match="has changed"):
        do(scenario.id, Operation("retry"), revision=planned.revision)

    assert scenario.status == "FAILED"


def test_a_restart_by_another_version_is_planned_and_done_by_that_version(clock):
    scenario = Scenario(clock, step("a"))
    scenario.worker("a").fails()
    register_definitions(definition(step("a"), step("b"), version=2), definition(step("c"), version=3))

    by_second = Operation("restart", version=2)
    assert {run.version for run in plan_operation(scenario.id, by_second).runs} == {2}
    do(scenario.id, by_second)

    assert scenario.row.version == 2
    assert scenario.is_waiting_for("a")
    assert plan_operation(Scenario(clock, step("z"), name="y").id, Operation("pause")).counts == {"goes on": 1}


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (Operation("retry"), Conflict),
        (Operation("dance"), RequestRefused),
        (Operation("restart", version=9), NotFound),
        (Operation("rerun", attempt_id="nobody"), RequestRefused),
    ],
)
def test_an_impossible_operation_has_no_plan(clock, operation, error):
    scenario = Scenario(clock, step("a"))

    with pytest.raises(error):
        plan_operation(scenario.id, operation)


def test_the_branches_of_a_dynamic_fork_run_again_with_their_fork(clock):
    steps = [step("a"), *dynamic_fork(inputs={"forkTaskInputs": [1, 2], "forkTaskName": "pay"}), step("z")]
    scenario = Scenario(clock, *steps, tasks=[policy("pay")])
    scenario.worker("a").completes()
    for _ in range(2):
        scenario.worker("pay").completes()
    scenario.worker("z").fails()

    planned = plan_operation(scenario.id, Operation("rerun", attempt_id=scenario.task("a").id))

    assert set(planned_effects(planned).values()) == {"again", "again, later"}


def rows(run_ids) -> dict[tuple[str, str], tuple]:
    """Return every task of these runs as its rows state it."""
    found = {}
    for task in Task.objects.filter(run_id__in=run_ids):
        attempt = Attempt.objects.get(pk=task.attempt_id)
        found[task.run_id, str(task)] = (task.pk, attempt.pk, task.status, attempt.ended_at)
    return found


def effects_on_task(old: tuple | None, new: tuple | None, run: Run) -> set[str]:
    """Return the effects on one task, derived from the rows before and after."""
    if old is None:
        return {task_impact.NEW}
    if new is None:
        return {task_impact.AGAIN, task_impact.DROPPED} if run.ended_at is None else {task_impact.DROPPED}
    if old[:2] != new[:2]:
        return {task_impact.AGAIN}
    if old[2] == "ACTIVE":
        return {task_impact.CANCELLED} if new[2] == "CANCELED" else {task_impact.CONTINUES}
    return {task_impact.REUSED} if old == new else {task_impact.AGAIN, task_impact.RESUMED}


@pytest.mark.parametrize("seed", seeds(0, 12))
def test_every_task_has_the_planned_impact(clock, seed):
    chance = RandomWorkers(clock, seed)
    chance.live(steps=chance.random.choice((5, 15, 30)))
    for _ in range(3):
        id = chance.scenario.id
        task = chance.random.choice(list(Task.objects.filter(run_id=id).order_by("seq")) or [None])
        operation = chance.random.choice(
            (
                Operation("retry", resume_children=chance.random.random() < 0.5),
                Operation("rerun", attempt_id=task.attempt_id if task else ""),
                Operation("rerun"),
                Operation("restart"),
                Operation("terminate", reason="enough"),
                Operation("skip", ref=chance.random.choice(("w1", "w2", "n3", "s4"))),
            )
        )
        try:
            planned = plan_operation(id, operation)
        except RequestRefused as refused:
            with pytest.raises(type(refused)):
                do(id, operation)
            continue
        affected = [run.run_id for run in planned.runs if not run.is_replaced]
        before = rows(affected)

        do(id, operation, revision=planned.revision)

        after, runs = rows(affected), Run.objects.in_bulk(affected)
        announced = {
            (run.run_id, str(effect.key)): effect.name
            for run in planned.runs
            if not run.is_replaced
            for effect in run.impacts
        }
        assert announced.keys() == before.keys() | after.keys()
        for place, effect in announced.items():
            assert effect in effects_on_task(before.get(place), after.get(place), runs[place[0]]), place
        chance.finish()


def test_a_switch_in_a_plan_follows_the_new_input(clock):
    scenario = Scenario(clock, switch("way", {"x": [step("b")], "y": [step("c")]}), input={"way": "x"})
    scenario.worker("b").fails()

    planned = plan_operation(scenario.id, Operation("rerun", input={"way": "y"}))

    assert planned_effects(planned) == {"way": "again", "b": "dropped", "c": "new"}
