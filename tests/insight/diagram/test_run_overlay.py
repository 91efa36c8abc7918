"""States of a run in the diagram of its definition."""

import pytest

from conductor_app.insight.definitions.diagram import StepMark, StepMarks, diagram, marks_of_run
from conductor_app.models import Run, WorkflowDefinition
from tests.insight.scenarios import claim_and_report, start_run_of, step

SWITCH = step(
    "route",
    "SWITCH",
    evaluatorType="value-param",
    expression="way",
    inputParameters={"way": "${workflow.input.way}"},
    decisionCases={"air": [step("fly")], "land": [step("drive")]},
)
LOOP = step("count", "DO_WHILE", loopCondition="$.count['iteration'] < 3", loopOver=[step("again")])
BRANCH_TASK = {"name": "part", "type": "SIMPLE"}
DYNAMIC_FORK = step(
    "each",
    "FORK_JOIN_DYNAMIC",
    dynamicForkTasksParam="parts",
    dynamicForkTasksInputParamName="inputs",
    inputParameters={
        "parts": [{**BRANCH_TASK, "taskReferenceName": f"part{number}"} for number in range(4)],
        "inputs": {},
    },
)


def draw_run(run: Run):
    return diagram(WorkflowDefinition.objects.get(name=run.name).document, marks_of_run(run))


def find_box(drawn, ref: str):
    return next(node for node in drawn.nodes if node.ref == ref)


@pytest.fixture(autouse=True)
def database(clock, db):
    """Give every test a database and a clock."""


def test_the_executed_path_is_distinguished_from_the_others():
    drawn = draw_run(start_run_of(SWITCH, step("end"), input={"way": "air"}))

    assert [node.ref for node in drawn.nodes if node.is_faint] == ["drive", "end"]
    assert {label.text: label.is_faint for label in drawn.labels} == {"air": False, "land": True, "otherwise": True}


def test_an_empty_case_is_marked_as_executed_if_no_other_was():
    drawn = draw_run(start_run_of(SWITCH, step("end"), input={"way": "water"}))

    assert {label.text: label.is_faint for label in drawn.labels} == {"air": True, "land": True, "otherwise": False}
    assert not find_box(drawn, "end").is_faint


def test_a_box_displays_the_status_of_its_step():
    run = start_run_of(step("charge"), step("ship"))
    claim_and_report("charge")

    drawn = draw_run(run)

    assert find_box(drawn, "charge").status_text == "Completed" and find_box(drawn, "ship").status == "ACTIVE"
    assert find_box(drawn, "charge").label == "charge, SIMPLE, Completed"


def test_a_loop_displays_its_iteration_and_its_steps_their_executions():
    run = start_run_of(LOOP)
    claim_and_report("again")
    claim_and_report("again")

    drawn = draw_run(run)

    assert find_box(drawn, "count").note == "3/3 iterations"
    assert find_box(drawn, "again").mark.count == 3
    assert find_box(drawn, "again").status == "ACTIVE", "the box must have the status of the newest task"


def test_a_fork_displays_the_number_of_completed_branches():
    run = start_run_of(
        step("fork", "FORK_JOIN", forkTasks=[[step("one")], [step("two")]]), step("join", "JOIN", joinOn=["one", "two"])
    )
    claim_and_report("two")

    assert find_box(draw_run(run), "fork").note == "1 of 2 done"


def test_branches_of_a_dynamic_fork_are_counted_by_status():
    run = start_run_of(DYNAMIC_FORK, step("all", "JOIN"))
    claim_and_report("part")
    claim_and_report("part", "FAILED", reason="broken")

    fork_box = next(node for node in draw_run(run).nodes if node.caption == "4 branches")

    assert "1 completed" in fork_box.note and "1 failed" in fork_box.note
    assert fork_box.status == "FAILED"


def test_two_queries_are_enough(django_assert_num_queries):
    run = start_run_of(DYNAMIC_FORK, step("all", "JOIN"))

    with django_assert_num_queries(2):
        marks_of_run(run)


def test_given_tasks_can_be_drawn_in_a_diagram():
    class ReplayedTask:
        ref, status, iteration = "a", "FAILED", 0

    assert StepMarks.from_tasks([ReplayedTask, ReplayedTask]).get("a") == StepMark("FAILED", 2)


def test_a_plan_can_label_the_future_of_a_step():
    drawn = diagram({"tasks": [step("a")]}, StepMarks({"a": StepMark("COMPLETED", status_text="will run again")}))

    assert drawn.nodes[0].status_text == "will run again"


def test_of_many_branches_the_failed_ones_are_drawn():
    branches = [[step(f"b{number}")] for number in range(100)]
    marks = {f"b{number}": StepMark("COMPLETED") for number in range(100)} | {"b77": StepMark("FAILED")}

    drawn = diagram(
        {"tasks": [step("fork", "FORK_JOIN", forkTasks=branches)]}, StepMarks({"fork": StepMark("COMPLETED"), **marks})
    )

    assert "b77" in [node.ref for node in drawn.nodes]
