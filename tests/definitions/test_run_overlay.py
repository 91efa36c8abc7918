"""States of a run in the diagram of its definition."""

import pytest

from conductor_app.core.decide import Report
from conductor_app.definitions.diagram.layout import diagram
from conductor_app.definitions.diagram.marks import IterationChoice, StepMark, StepMarks, parse_choice
from conductor_app.definitions.models import WorkflowDefinition
from conductor_app.runs.models import Attempt, Run
from conductor_app.runs.timeline.queries import iteration_filters, marks_of_run
from conductor_app.tasks.commands import reports as task_commands
from tests.builders import join, simple, step_of
from tests.scenario import claim_and_report, claim_next, define_task, start_run_of

SWITCH = step_of(
    "SWITCH",
    "route",
    evaluatorType="value-param",
    expression="way",
    inputParameters={"way": "${workflow.input.way}"},
    decisionCases={"air": [simple("fly")], "land": [simple("drive")]},
)
LOOP = step_of("DO_WHILE", "count", loopCondition="$.count['iteration'] < 3", loopOver=[simple("again")])
BRANCH_TASK = {"name": "part", "type": "SIMPLE"}
DYNAMIC_FORK = step_of(
    "FORK_JOIN_DYNAMIC",
    "each",
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
    drawn = draw_run(start_run_of(SWITCH, simple("end"), input={"way": "air"}))

    assert [node.ref for node in drawn.nodes if node.is_faint] == ["drive", "end"]
    assert {label.text: label.is_faint for label in drawn.labels} == {"air": False, "land": True, "otherwise": True}


def test_an_empty_case_is_marked_as_executed_if_no_other_was():
    drawn = draw_run(start_run_of(SWITCH, simple("end"), input={"way": "water"}))

    labels = {label.text: label.is_faint for label in drawn.labels}
    assert labels == {"air": True, "land": True, "otherwise: water": False}
    assert not find_box(drawn, "end").is_faint


def test_a_box_displays_the_status_of_its_step():
    run = start_run_of(simple("charge"), simple("ship"))
    claim_and_report("charge")

    drawn = draw_run(run)

    assert find_box(drawn, "charge").status_text == "Completed" and find_box(drawn, "ship").status == "ACTIVE"
    assert find_box(drawn, "charge").label == "charge, Worker task, Completed, w7"
    assert find_box(drawn, "charge").subtitle == "Worker task · w7"


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
        step_of("FORK_JOIN", "fork", forkTasks=[[simple("one")], [simple("two")]]),
        join("join", ["one", "two"]),
    )
    claim_and_report("two")

    assert find_box(draw_run(run), "fork").note == "1 of 2 branches done"


def test_branches_of_a_dynamic_fork_are_counted_by_status():
    run = start_run_of(DYNAMIC_FORK, step_of("JOIN", "all"))
    claim_and_report("part")
    claim_and_report("part", "FAILED", reason="broken")

    fork_box = next(node for node in draw_run(run).nodes if node.caption == "4 branches")

    assert list(fork_box.counts.items()) == [("FAILED", 1), ("CANCELED", 2), ("COMPLETED", 1)]
    assert fork_box.status == "FAILED"


def test_three_queries_are_enough(django_assert_num_queries):
    run = start_run_of(SWITCH, DYNAMIC_FORK, step_of("JOIN", "all"), input={"way": "water"})

    with django_assert_num_queries(3):
        marks_of_run(run)


def test_a_plan_can_label_the_future_of_a_step():
    drawn = diagram({"tasks": [simple("a")]}, StepMarks({"a": StepMark("COMPLETED", status_text="will run again")}))

    assert drawn.nodes[0].status_text == "will run again"
    assert drawn.nodes[0].subtitle == "Worker task · will run again"
    loop = diagram({"tasks": [LOOP]}, StepMarks({"count": StepMark("ACTIVE", status_text="continues")})).nodes[0]
    assert loop.subtitle == "max 3 iterations · continues"


def test_of_many_branches_the_failed_ones_are_drawn():
    branches = [[simple(f"b{number}")] for number in range(100)]
    marks = {f"b{number}": StepMark("COMPLETED") for number in range(100)} | {"b77": StepMark("FAILED")}

    drawn = diagram(
        {"tasks": [step_of("FORK_JOIN", "fork", forkTasks=branches)]},
        StepMarks({"fork": StepMark("COMPLETED"), **marks}),
    )

    assert "b77" in [node.ref for node in drawn.nodes]


def test_a_box_displays_duration_attempts_and_worker(clock):
    define_task("charge", retryCount=2, retryDelaySeconds=0)
    run = start_run_of(simple("charge"), simple("ship"))
    claim_and_report("charge", "FAILED", reason="card declined")
    claim_next("charge")
    clock.advance(seconds=1.2)
    [attempt] = Attempt.objects.leased("charge")
    task_commands.report_task(run.pk, attempt.pk, Report("COMPLETED"), "w7")

    box = find_box(draw_run(run), "charge")
    assert box.subtitle == "1.2 s · 2 attempts" and box.label.endswith("1.2 s, 2 attempts, w7")


def test_a_pending_task_is_distinguished_from_a_running_one():
    run = start_run_of(simple("charge"))

    assert find_box(draw_run(run), "charge").mark.queue_status == "PENDING"
    claim_next("charge")
    assert find_box(draw_run(run), "charge").mark.queue_status == "LEASED"


def test_the_value_that_decided_stands_at_the_line_of_its_case():
    taken = draw_run(start_run_of(SWITCH, input={"way": "air"}))

    assert [(label.text, label.is_decided) for label in taken.labels] == [
        ("air", True),
        ("land", False),
        ("otherwise", False),
    ]


NESTED = step_of(
    "DO_WHILE",
    "pages",
    loopCondition="$.pages['iteration'] < 3",
    loopOver=[
        step_of("DO_WHILE", "tries", loopCondition="$.tries['iteration'] < 2", loopOver=[simple("scan")]),
        simple("check"),
    ],
)


def draw_iterations(run: Run, text: str):
    document = WorkflowDefinition.objects.get(name=run.name).document
    choice = IterationChoice(parse_choice(text), lambda value: f"?{value}")
    return diagram(document, marks_of_run(run, iteration_filters(document, choice.chosen)), iterations=choice)


@pytest.fixture
def scanned() -> Run:
    """Start a run whose first page needed two scans; the second one is in its first scan."""
    run = start_run_of(NESTED)
    claim_and_report("scan")
    claim_and_report("scan", worker="w8")
    claim_and_report("check")
    return run


def test_a_chosen_iteration_has_the_tasks_of_that_iteration(scanned):
    assert find_box(draw_iterations(scanned, ""), "scan").status == "ACTIVE"

    first = draw_iterations(scanned, "pages:1,tries:1")
    assert (find_box(first, "scan").status, find_box(first, "scan").mark.worker) == ("COMPLETED", "w7")
    assert find_box(draw_iterations(scanned, "pages:1,tries:2"), "scan").mark.worker == "w8"
    assert find_box(draw_iterations(scanned, "pages:1"), "scan").mark.count == 2
    assert find_box(draw_iterations(scanned, "pages:2"), "check").is_faint


def test_loops_link_to_their_iterations(scanned):
    outer, inner = (frame.picker for frame in draw_iterations(scanned, "pages:1").frames)

    assert (outer.current, outer.total, outer.previous, outer.next, outer.all) == (1, 2, "", "?pages:2", "?")
    assert (inner.current, inner.total, inner.previous, inner.next, inner.all) == (None, 2, "?pages:1,tries:2", "", "")
    assert [frame.picker and frame.picker.previous for frame in draw_iterations(scanned, "").frames] == [
        "?pages:2",
        None,
    ]


@pytest.mark.parametrize("text", ["pages", "pages:0", "pages:x", ":3", "tries:1", "pages:99999999999", ",,", "other:2"])
def test_an_invalid_choice_of_iterations_is_ignored(scanned, text):
    assert find_box(draw_iterations(scanned, text), "scan").mark.count == 3


def test_an_item_of_a_for_each_can_be_chosen():
    each = step_of("FOR_EACH", "each", items="${workflow.input.items}", loopOver=[simple("send")])
    run = start_run_of(each, input={"items": ["a", "b"]})
    claim_and_report("send")

    assert find_box(draw_iterations(run, "each:1"), "send").status == "COMPLETED"
    assert find_box(draw_iterations(run, "each:2"), "send").status == "ACTIVE"


@pytest.mark.parametrize(
    ("outer", "choice"),
    [
        (step_of("FOR_EACH", "each", items="${workflow.input.items}", loopOver=[LOOP]), "each:1,count"),
        (step_of("TRY_CATCH", "safe", tryTasks=[LOOP], catchDefault=[simple("alarm")]), "count"),
    ],
    ids=lambda given: given if isinstance(given, str) else given["type"],
)
def test_iterations_of_a_loop_inside_another_step_can_be_chosen(outer, choice):
    run = start_run_of(outer, input={"items": ["a"]})
    claim_and_report("again")

    assert find_box(draw_iterations(run, f"{choice}:1"), "again").status == "COMPLETED"
    assert find_box(draw_iterations(run, f"{choice}:2"), "again").status == "ACTIVE"
    assert find_box(draw_iterations(run, f"{choice}:3"), "again").is_faint


def test_branches_of_a_dynamic_fork_belong_to_their_iteration():
    loop = step_of(
        "DO_WHILE", "rounds", loopCondition="$.rounds['iteration'] < 2", loopOver=[DYNAMIC_FORK, step_of("JOIN", "all")]
    )
    run = start_run_of(loop)
    for _branch in range(5):
        claim_and_report("part")

    counts = [
        next(node.counts for node in draw_iterations(run, f"rounds:{number}").nodes if node.caption == "4 branches")
        for number in (1, 2)
    ]
    assert counts == [{"COMPLETED": 4}, {"ACTIVE": 3, "COMPLETED": 1}]
