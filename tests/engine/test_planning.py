"""The plan of an operation says what then becomes of each task, and warns of what the outside would see twice."""

import pytest

from conductor_app.core import task_impact
from conductor_app.core.errors import Conflict, NotFound, RequestRefused, RevisionChanged
from conductor_app.engine.runs.operations import Operation, apply_operation
from conductor_app.engine.runs.planning import OperationPlan, plan_operation
from conductor_app.models import Attempt, AuditEntry, Run, Task
from tests.builders import definition, dynamic_fork, fork, loop, policy, step, sub_workflow, switch
from tests.engine.chance import RandomWorkers
from tests.engine.test_preview import everything
from tests.story import ACTOR, Story, register_definitions, run_commit_hooks
from tests.tries import seeds

pytestmark = pytest.mark.django_db


def told(planned: OperationPlan, run_id: str = "") -> dict[str, str]:
    """The fate of each task of one run, by its name."""
    [run] = [run for run in planned.runs if run.run_id == (run_id or planned.target)]
    return {str(fate.key): fate.name + (", later" if fate.is_later else "") for fate in run.impacts}


def do(run_id: str, operation: Operation, **more) -> None:
    with run_commit_hooks():
        apply_operation(run_id, operation, ACTOR, **more)


def forked(clock) -> Story:
    """Two turns of a loop around a fork; the run failed in the second, after one branch had gone on."""
    body = fork([step("a"), step("b")], [step("c")])
    story = Story(clock, step("first"), loop("l", *body, step("d"), times=3), step("last"))
    story.worker("first").completes()
    for _ in range(2):
        for name in ("a", "c", "b"):
            story.worker(name).completes()
        story.worker("d").completes() if story.is_waiting_for("d__1") else story.worker("d").fails()
    assert story.status == "FAILED"
    return story


def test_a_plan_of_a_rerun_in_a_fork_in_a_loop_lists_exactly_the_repeated_tasks(clock):
    story = forked(clock)

    planned = plan_operation(story.id, Operation("rerun", attempt_id=story.task("a__2").id))

    again = {name for name, fate in told(planned).items() if fate.startswith("again")}
    assert again == {"l", "a__2", "b__2", "join__2", "d__2"}
    assert told(planned)["a__2"] == "again"
    assert told(planned)["b__2"] == told(planned)["d__2"] == "again, later"
    assert {told(planned)[name] for name in ("first", "a__1", "d__1", "c__2", "fork_join__2")} == {"reused"}


def test_then_it_is_done(clock):
    story = forked(clock)
    operation = Operation("rerun", attempt_id=story.task("a__2").id, reason="the data was wrong")
    kept = {name: story.task(name).id for name in ("first", "a__1", "c__2")}
    planned = plan_operation(story.id, operation)

    do(story.id, operation, revision=planned.revision)

    assert story.is_waiting_for("a__2")
    assert "b__2" not in story.statuses
    assert {name: story.task(name).id for name in kept} == kept
    assert AuditEntry.objects.get(object_id=story.id, action="rerun").reason == "the data was wrong"


def test_a_plan_does_not_change_any_row(clock):
    story = forked(clock)
    before = everything()

    plan_operation(story.id, Operation("restart", latest=True))

    assert everything() == before


def test_a_retry_reuses_completed_tasks(clock):
    story = Story(clock, step("a"), *fork([step("b")], [step("c")]))
    story.worker("a").completes()
    story.worker("b").fails()

    planned = plan_operation(story.id, Operation("retry"))

    assert told(planned) == {"a": "reused", "fork_join": "reused", "b": "again", "c": "again", "join": "again"}
    assert planned.counts == {"again": 3, "reused": 2}


def test_a_task_that_an_end_would_stop_is_cancelled(clock):
    story = Story(clock, *fork([step("a")], [sub_workflow("s", definition(step("x"), name="leaf"))]))
    child = story.child("s")

    planned = plan_operation(story.id, Operation("terminate"))

    assert told(planned)["a"] == told(planned)["s"] == "cancelled"
    assert told(planned, child.id) == {"x": "cancelled"}


def test_a_skipped_task_is_new_in_the_plan(clock):
    story = Story(clock, step("a"), step("b"))

    planned = plan_operation(story.id, Operation("skip", ref="b"))

    assert told(planned) == {"a": "goes on", "b": "new"}


def test_a_task_with_effects_outside_is_warned_of_when_it_has_run(clock):
    charge = step("charge", policy=policy() | {"sideEffects": "external"})
    refund = step("refund", policy=policy() | {"sideEffects": "external"})
    story = Story(clock, step("a"), charge, step("b"), refund)
    for name in ("a", "charge"):
        story.worker(name).completes()
    story.worker("b").fails()

    from_start = plan_operation(story.id, Operation("restart"))
    retried = plan_operation(story.id, Operation("retry"))

    assert [str(fate.key) for _, fate in from_start.external] == ["charge"]
    assert retried.external == []


def test_a_plan_warns_of_external_effects_in_a_restarted_child(clock):
    charge = step("charge", policy=policy() | {"sideEffects": "external"})
    leaf = definition(charge, step("x"), name="leaf")
    middle = definition(sub_workflow("below", "leaf"), name="middle")
    story = Story(clock, sub_workflow("s", "middle"), step("z"), others=[leaf, middle])
    old = story.child("s").child("below")
    story.worker("charge").completes()
    story.worker("x").completes()
    story.worker("z").fails()

    planned = plan_operation(story.id, Operation("rerun", attempt_id=story.task("s").id))

    assert [(run.run_id, run.is_replaced, str(fate.key)) for run, fate in planned.external] == [
        (old.id, True, "charge")
    ]
    assert [run.definition for run in planned.runs if run.is_new] == ["middle", "leaf"]


def test_a_plan_of_a_retry_in_a_child_shows_its_resumed_parents(clock):
    story = Story(clock, sub_workflow("s", "leaf"), others=[definition(step("x"), name="leaf")])
    story.worker("x").fails()
    child = story.child("s")

    planned = plan_operation(story.id, Operation("retry", resume_children=True))

    assert planned.target == child.id
    assert told(planned, child.id) == {"x": "again"}
    assert told(planned, story.id) == {"s": "resumed"}


def test_a_confirmation_is_refused_after_the_run_has_changed(clock):
    story = Story(clock, step("a"))
    story.worker("a").fails()
    planned = plan_operation(story.id, Operation("retry"))
    story.retry()
    story.worker("a").fails()

    with pytest.raises(RevisionChanged, match="has changed"):
        do(story.id, Operation("retry"), revision=planned.revision)

    assert story.status == "FAILED"


def test_a_restart_by_another_version_is_planned_and_done_by_that_version(clock):
    story = Story(clock, step("a"))
    story.worker("a").fails()
    register_definitions(definition(step("a"), step("b"), version=2), definition(step("c"), version=3))

    by_second = Operation("restart", version=2)
    assert {run.version for run in plan_operation(story.id, by_second).runs} == {2}
    do(story.id, by_second)

    assert story.row.version == 2
    assert story.is_waiting_for("a")
    assert plan_operation(Story(clock, step("z"), name="y").id, Operation("pause")).counts == {"goes on": 1}


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
    story = Story(clock, step("a"))

    with pytest.raises(error):
        plan_operation(story.id, operation)


def test_the_branches_of_a_dynamic_fork_run_again_with_their_fork(clock):
    steps = [step("a"), *dynamic_fork(inputs={"forkTaskInputs": [1, 2], "forkTaskName": "pay"}), step("z")]
    story = Story(clock, *steps, tasks=[policy("pay")])
    story.worker("a").completes()
    for _ in range(2):
        story.worker("pay").completes()
    story.worker("z").fails()

    planned = plan_operation(story.id, Operation("rerun", attempt_id=story.task("a").id))

    assert set(told(planned).values()) == {"again", "again, later"}


def rows(run_ids) -> dict[tuple[str, str], tuple]:
    """Every task of these runs, as its rows say."""
    found = {}
    for task in Task.objects.filter(run_id__in=run_ids):
        attempt = Attempt.objects.get(pk=task.attempt_id)
        found[task.run_id, str(task)] = (task.pk, attempt.pk, task.status, attempt.ended_at)
    return found


def happened(old: tuple | None, new: tuple | None, run: Run) -> set[str]:
    """What the rows before and after say of one task."""
    if old is None:
        return {task_impact.NEW}
    if new is None:
        return {task_impact.AGAIN, task_impact.DROPPED} if run.ended_at is None else {task_impact.DROPPED}
    if old[:2] != new[:2]:
        return {task_impact.AGAIN}
    if old[2] == "ACTIVE":
        return {task_impact.CANCELLED} if new[2] == "CANCELED" else {task_impact.GOES_ON}
    return {task_impact.REUSED} if old == new else {task_impact.AGAIN, task_impact.RESUMED}


@pytest.mark.parametrize("seed", seeds(0, 12))
def test_every_task_has_the_planned_impact(clock, seed):
    chance = RandomWorkers(clock, seed)
    chance.live(steps=chance.random.choice((5, 15, 30)))
    for _ in range(3):
        id = chance.story.id
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
        said = {
            (run.run_id, str(fate.key)): fate.name
            for run in planned.runs
            if not run.is_replaced
            for fate in run.impacts
        }
        assert said.keys() == before.keys() | after.keys()
        for place, fate in said.items():
            assert fate in happened(before.get(place), after.get(place), runs[place[0]]), place
        chance.finish()


def test_a_switch_in_a_plan_follows_the_new_input(clock):
    story = Story(clock, switch("way", {"x": [step("b")], "y": [step("c")]}), input={"way": "x"})
    story.worker("b").fails()

    planned = plan_operation(story.id, Operation("rerun", input={"way": "y"}))

    assert told(planned) == {"way": "again", "b": "dropped", "c": "new"}
