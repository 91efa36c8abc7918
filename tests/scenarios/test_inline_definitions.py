"""Inline definitions of child runs: the child resolves their expressions, wherever they occur (execution §8.10)."""

from random import Random
from typing import Any

import pytest

from conductor_app.runs.models import Run
from tests.builders import (
    Document,
    definition,
    dynamic_fork,
    fork,
    loop,
    set_variable,
    step,
    sub_workflow,
    switch,
)
from tests.hypothesis_profile import seeds
from tests.scenario import RunView, Scenario

PARENT_INPUT = {"q": "the parent's", "n": 7, "s": "left"}
CHILD_INPUT = {"q": "the child's", "s": "right"}
SOURCES = (
    "${workflow.input.q}",
    "${workflow.input.n}",
    "before ${workflow.input.q} after",
    "${workflow.variables.v}",
    "${before.output.by}",
    "${workflow.workflowType}",
    "${workflow.parentWorkflowId}",
)
DYNAMIC = {"dynamicForkTasksParam": "tasks", "dynamicForkTasksInputParamName": "inputs"}


def in_a_step(child: Document) -> list[Document]:
    return [child]


def in_a_loop(child: Document) -> list[Document]:
    return [loop("l", child, times=2)]


def in_a_fork(child: Document) -> list[Document]:
    return fork([child], [step("beside", "work")])


def in_a_dynamic_fork(child: Document) -> list[Document]:
    """Return a dynamic fork whose list of tasks is written in its inputs."""
    written = {"tasks": [child], "inputs": {"s": {}}}
    return dynamic_fork("fan", "joined", written, **DYNAMIC)


def in_another_child(child: Document) -> list[Document]:
    return [sub_workflow("outer", definition(child, name="outer"), inputs=CHILD_INPUT)]


PLACES = (in_a_step, in_a_loop, in_a_fork, in_a_dynamic_fork, in_another_child)


def drawn_child(random: Random, depth: int = 0) -> Document:
    """Return a random definition whose expressions read its own input, variables and tasks, by names that its parent
    also uses.
    """
    sources = list(SOURCES)
    steps: list[Document | list[Document]] = [step("before", "work")]
    for number in range(random.randint(1, 3)):
        ref = f"t{number}"
        inputs = {name: random.choice(sources) for name in "abc"[: random.randint(1, 3)]}
        inputs["deep"] = [{"in": random.choice(sources)}]
        kinds = ["work", "work", "variable", "switch"] + ["child"] * (depth < 1)
        match random.choice(kinds):
            case "work":
                steps.append(step(ref, "work", inputs=inputs))
                sources.append(f"${{{ref}.output.by}}")
            case "variable":
                steps.append(set_variable(ref, v=random.choice(sources)))
            case "switch":
                left, right = ([step(f"{ref}_{way}", "work", inputs=inputs)] for way in ("left", "right"))
                steps.append(switch(ref, {"left": left}, right, inputs={"s": "${workflow.input.s}"}))
            case _:
                inner = {**drawn_child(random, depth + 1), "name": f"inner_{ref}"}
                steps.append(sub_workflow(ref, inner, inputs=inputs))
    output = {name: random.choice(sources) for name in ("first", "second")}
    return definition(*steps, name="child", outputParameters=output, variables={"v": "the child's variable"})


def results_of(scenario: Scenario) -> list[Any]:
    """Complete all tasks. Return the results of the parent and all its descendants, without their ids."""
    for _ in range(40):
        if scenario.status != "RUNNING":
            break
        if scenario.worker("work").polls():
            held = scenario.worker("work").held
            scenario.worker("work").completes(by=f"{held.run.name}.{held.task.ref}")
    return [facts(RunView(scenario.id))]


def facts(run: RunView) -> list[Any]:
    tasks = [run.task(str(task)) for task in dict(run.statuses)]
    return [
        run.row.name,
        run.status,
        without_ids(run.output),
        [[name, status] for name, status in run.statuses.items()],
        [without_ids(task.input) for task in tasks if not task.child_id and task.task.type == "SIMPLE"],
        [facts(RunView(task.child_id)) for task in tasks if task.child_id],
    ]


def without_ids(value: Any) -> str:
    """Return a payload as text with the names of runs in place of their ids."""
    text = repr(value)
    for id, name in Run.objects.values_list("id", "name"):
        text = text.replace(id, f"a run of {name}")
    return text


def story_of(clock, place, child: Document, written: Document | None) -> Scenario:
    """Return a parent with the child by name or inline; all parents are registered under the same name."""
    s = sub_workflow("s", written or "child", inputs=CHILD_INPUT)
    return Scenario(
        clock,
        set_variable("seen", v="the parent's variable"),
        step("before", "work"),
        *place(s),
        others=[] if written else [child],
        input=PARENT_INPUT,
        variables={"v": "the parent's"},
    )


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("seed", seeds(0, 10))
def test_an_inline_child_behaves_like_a_named_child(clock, place, seed):
    child = drawn_child(Random(f"{place.__name__} {seed}"))

    by_name = results_of(story_of(clock, place, child, None))
    Run.objects.all().delete()
    in_place = results_of(story_of(clock, place, child, child))

    assert in_place == by_name
    assert by_name[0][1] == "COMPLETED"


def test_a_child_definition_given_by_an_expression_is_resolved_once(clock):
    child = definition(
        step("x", "work", inputs={"q": "${workflow.input.q}"}), name="given", outputParameters={"by": "${x.output.by}"}
    )
    s = sub_workflow("s", param={"workflowDefinition": "${workflow.input.plan}"}, inputs=CHILD_INPUT)

    scenario = Scenario(clock, s, input={**PARENT_INPUT, "plan": child})

    assert scenario.child("s").task("x").input == {"q": "the child's"}
    scenario.worker("work").completes(by="w")
    assert scenario.task("s").output["by"] == "w"


def test_tasks_of_a_dynamic_fork_can_contain_inline_definitions(clock):
    child = definition(step("x", "work", inputs={"q": "${workflow.input.q}"}), name="given")
    task = sub_workflow("s", child, inputs=CHILD_INPUT)

    scenario = Scenario(clock, *dynamic_fork(), input={**PARENT_INPUT, "tasks": [task], "inputs": {"s": {}}})

    assert scenario.child("s").task("x").input == {"q": "the child's"}


def test_other_members_of_the_sub_workflow_param_are_resolved(clock):
    child = definition(step("x", "work"), name="given")
    param = {"workflowDefinition": child, "priority": "${workflow.input.n}"}

    scenario = Scenario(clock, sub_workflow("s", param=param), input=PARENT_INPUT)

    assert scenario.child("s").row.priority == 7
    assert scenario.task("s").input["priority"] == 7


def test_the_input_of_a_task_records_how_its_child_was_started(clock):
    child = definition(step("x", "work"), name="child")
    given = {"taskToDomain": {"work": "blue"}, "priority": 3, "idempotencyKey": "k", "idempotencyStrategy": "FAIL"}
    scenario = Scenario(
        clock,
        *fork(
            [sub_workflow("named", param={"name": "child", **given}, inputs={"a": 1})],
            [sub_workflow("inline", child)],
        ),
        others=[child],
    )

    assert scenario.task("named").input == {
        "subWorkflowName": "child",
        "subWorkflowVersion": 1,
        "subWorkflowDefinition": None,
        "subWorkflowTaskToDomain": {"work": "blue"},
        "priority": 3,
        "idempotencyKey": "k",
        "idempotencyStrategy": "FAIL",
        "workflowInput": {"a": 1},
    }
    shown = scenario.task("inline").input
    assert (shown["subWorkflowVersion"], shown["subWorkflowDefinition"]) == (None, child)
    assert scenario.child("named").row.input == {"a": 1}
    assert scenario.child("inline").row.input == {"_systemMetadata": {"dynamic": True}}


@pytest.mark.parametrize(("given", "kind"), [("text", "a string"), ("", "a string"), (5, "a number"), ([], "an array")])
def test_a_definition_that_resolves_to_no_object_fails_the_task(clock, given, kind):
    named = definition(step("x", "work"), name="child")
    s = sub_workflow("s", param={"name": "child", "workflowDefinition": "${workflow.input.plan}"})

    scenario = Scenario(clock, s, others=[named], input={"plan": given})

    assert (scenario.status, Run.objects.count()) == ("FAILED", 1)
    assert (
        f"must be a workflow definition (a JSON object), but ${{workflow.input.plan}} is {kind}."
        in scenario.task("s").reason
    )


def test_a_definition_that_resolves_to_null_starts_the_workflow_of_that_name(clock):
    named = definition(step("x", "work"), name="child")
    s = sub_workflow("s", param={"name": "child", "workflowDefinition": "${workflow.input.plan}"})

    scenario = Scenario(clock, s, others=[named])

    assert scenario.child("s").row.name == "child"
    assert scenario.task("s").input["subWorkflowVersion"] == 1


def test_a_task_has_the_name_of_its_inline_definition_or_of_its_parameter(clock):
    child = definition(step("x", "work"), name="child")
    given = sub_workflow("given", param={"name": "other", "workflowDefinition": "${workflow.input.plan}"})
    written = sub_workflow("written", child, param={"name": "other"})

    scenario = Scenario(clock, *fork([given], [written]), input={"plan": child})

    assert scenario.task("given").input["subWorkflowName"] == "other"
    assert scenario.task("written").input["subWorkflowName"] == "child"
    assert scenario.child("given").row.name == scenario.child("written").row.name == "child"


def test_expressions_of_an_inline_child_in_a_dynamic_fork_stay_unresolved_at_any_depth(clock):
    child = definition(step("x", "work", inputs={"q": "${workflow.input.q}"}), name="given")
    inner = dynamic_fork("inner", "ends", {"tasks": [sub_workflow("s", child, inputs=CHILD_INPUT)], "inputs": {}})
    middle = definition(*inner, name="middle")
    outer = loop("l", sub_workflow("m", middle, inputs={"q": "${workflow.input.q}"}), times=1)

    scenario = Scenario(clock, *dynamic_fork("fan", "joined", {"tasks": [outer], "inputs": {}}), input=PARENT_INPUT)

    m = RunView(scenario.child("m__1").id)
    assert m.row.input["q"] == "the parent's"
    assert m.child("s").task("x").input == {"q": "the child's"}


def test_a_retry_starts_an_inline_child_with_its_own_expressions(clock):
    child = definition(step("x", "work", inputs={"q": "${workflow.input.q}"}), name="given")
    scenario = Scenario(clock, sub_workflow("s", child, inputs=CHILD_INPUT), input=PARENT_INPUT)
    scenario.worker("work").fail_terminally()
    assert scenario.status == "FAILED"

    scenario.retry()

    assert scenario.child("s").task("x").input == {"q": "the child's"}
