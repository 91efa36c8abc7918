"""Provenance of inputs: the values that an attempt received, although its sources have changed since."""

import pytest

from conductor_app.definitions.store import parsed_definition
from conductor_app.runs.models import Attempt
from conductor_app.tasks.queries.input_origins import input_origins
from tests.builders import set_variable, simple, step_of, sub_workflow
from tests.scenario import claim_and_report, define_workflow, start_run_of

pytestmark = pytest.mark.django_db


def all_origins(run, ref, iteration_path=""):
    attempts = Attempt.objects.select_related("task", "run")
    attempt = attempts.get(run=run, task__ref=ref, task__iteration_path=iteration_path)
    definition = parsed_definition(attempt.run.resolved_definition_id)
    return input_origins(attempt, definition.step(ref))


def origins_of(run, ref, iteration_path=""):
    return {each.parameter: each for each in all_origins(run, ref, iteration_path)}


@pytest.fixture
def pages(clock):
    """A run whose loop has ended after three iterations."""
    inputs = {"page": "${pages.output.iteration}", "label": "page ${pages.output.iteration} of ${workflow.input.book}"}
    inputs |= {"text": "${read.output.text}", "previous": "${check.output.verdict}"}
    body = [simple("read"), simple("check", inputParameters=inputs)]
    loop = step_of("DO_WHILE", "pages", loopCondition="$.pages['iteration'] < 3", loopOver=body)
    run = start_run_of(loop, input={"book": "Emma"})
    for number in (1, 2, 3):
        claim_and_report("read", output={"text": f"text {number}"})
        clock.advance(seconds=1)
        claim_and_report("check", output={"verdict": f"verdict {number}"})
    return run


@pytest.mark.parametrize("number", [1, 2, 3])
def test_each_iteration_shows_the_values_that_it_received(pages, number):
    origins = origins_of(pages, "check", str(number))

    assert origins["page"].value == number
    assert origins["text"].value == f"text {number}"


def test_a_value_within_a_text_shows_the_text_if_its_source_has_changed(pages):
    given = [each for each in all_origins(pages, "check", "2") if each.parameter == "label"]

    assert [(each.expression, each.value) for each in given] == [
        ("${pages.output.iteration}", "page 2 of Emma"),
        ("${workflow.input.book}", "Emma"),
    ]


def test_a_value_that_appeared_later_is_reported_as_missing_at_that_time(clock):
    setter = set_variable("set", total=7)
    run = start_run_of(simple("ship", inputParameters={"total": "${workflow.variables.total}"}), setter, simple("bill"))
    claim_and_report("ship")

    (origin,) = origins_of(run, "ship").values()

    assert origin.value is None and origin.is_suspicious
    assert origin.hint == "it had no value when the task was scheduled"


def test_the_input_of_a_sub_workflow_is_shown_from_its_sources(clock):
    define_workflow("payment", simple("charge"))
    sub = sub_workflow("pay", "payment", version=1, inputParameters={"amount": "${pick.output.amount}"})
    run = start_run_of(simple("pick"), sub)
    claim_and_report("pick", output={"amount": 12})

    assert origins_of(run, "pay")["amount"].value == 12
