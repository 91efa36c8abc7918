"""Reference names with two underscores, which also separate the iteration in the name of a task."""

import pytest

from conductor_app.core.definition import Key, possible_keys
from conductor_app.core.validation.checks import workflow_errors
from conductor_app.runs.store.loading import find_ended_task
from conductor_app.tasks.queries.tasks import find_task
from tests.builders import definition, each, fork, inline, loop, noop, set_variable, step
from tests.scenario import Scenario

REFERENCES = ["step__one", "__fork_1", "a__", "a__1", "__1", "a__1__2", "__"]


@pytest.mark.parametrize("ref", REFERENCES)
def test_a_step_runs_under_such_a_reference(clock, ref):
    scenario = Scenario(
        clock,
        loop("l", step(ref, "work"), times=2),
        inline("next", "$.x", inputs={"x": "${workflow.variables.x}"}),
    )
    scenario.worker("work").completes()
    assert scenario.reports(f"{ref}__2")

    assert (scenario.status, list(scenario.statuses)) == ("COMPLETED", ["l", f"{ref}__1", f"{ref}__2", "next"])
    assert find_task(scenario.row, f"{ref}__2").iteration_path == "2"
    assert find_ended_task([scenario.id], [f"{ref}__1"]).attempt_id == scenario.task(f"{ref}__1").id


@pytest.mark.parametrize("ref", REFERENCES)
def test_an_expression_reads_the_output_of_such_a_step(clock, ref):
    read = set_variable("v", x=f"${{{ref}.output.n}}")
    scenario = Scenario(clock, step(ref, "work"), read)

    scenario.worker("work").completes(n=7)

    assert scenario.row.variables == {"x": 7}


@pytest.mark.parametrize("ref", REFERENCES)
def test_operators_find_such_a_step(clock, ref):
    scenario = Scenario(clock, step("first", "work"), step(ref, "work"), step("last", "work"))

    scenario.skip(ref, output={"n": 1})
    scenario.jump("last")
    scenario.worker("work").completes()
    assert (scenario.status, scenario.statuses[ref]) == ("COMPLETED", "SKIPPED")

    scenario.rerun("last")
    assert scenario.is_waiting_for("last")


def test_a_loop_with_such_a_reference_counts_its_iterations(clock):
    scenario = Scenario(clock, loop("job__loop", step("job__body", "work"), times=2), noop("end"))

    scenario.worker("work").completes()
    scenario.worker("work").completes()

    assert (scenario.status, len(scenario.attempts("job__body__2"))) == ("COMPLETED", 1)


def test_a_fork_and_a_join_with_such_references_run(clock):
    steps = fork([step("a__1", "work")], [step("b__1", "work")], ref="__fork_1", join="__join_1")
    scenario = Scenario(clock, *steps)

    scenario.worker("work").completes(n=1)
    scenario.worker("work").completes(n=2)

    assert (scenario.status, scenario.output) == ("COMPLETED", {"a__1": {"n": 1}, "b__1": {"n": 2}})


AMBIGUOUS = {
    "an iteration": [loop("l", step("a"), times=2), step("a__1")],
    "a nested iteration": [loop("l", loop("m", step("a"), times=2), times=2), step("a__1__2")],
    "an iteration of the inner loop": [loop("l", loop("m", step("a"), times=2), step("a__2"), times=2)],
    "a loop inside": [loop("l", loop("m", step("a"), times=2), times=2), noop("m__3")],
    "an item": [each("e", step("a"), items=[1]), noop("e_item__1")],
    "the task of an item": [each("e", step("a"), items=[1]), noop("a__1__1")],
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_a_reference_that_is_the_name_of_another_steps_task_is_refused(case):
    [error] = workflow_errors(definition(*AMBIGUOUS[case]))

    assert "is also the name of the task of" in error.message


CLEAR = {
    "both in one loop": [loop("l", step("a"), step("a__1"), times=2)],
    "no loop": [step("a"), step("a__1")],
    "the other one is in the loop": [step("a"), loop("l", step("a__1"), times=2)],
    "another depth": [loop("l", loop("m", step("a"), times=2), times=2), step("a__1")],
    "no number": [loop("l", step("a"), times=2), step("a__x")],
}


@pytest.mark.parametrize("case", CLEAR)
def test_a_reference_that_no_task_of_another_step_can_have_is_accepted(case):
    assert workflow_errors(definition(*CLEAR[case])) == []


def test_the_name_of_a_task_stands_for_each_reference_that_it_can_have():
    assert list(possible_keys("a__1__2")) == [Key("a__1__2"), Key("a__1", (2,)), Key("a", (1, 2))]
    assert list(possible_keys("a__x")) == [Key("a__x")]
