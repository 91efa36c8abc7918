"""DECISION: the deprecated form of SWITCH (execution §8.4)."""

import pytest

from conductor_app.core.data_requests import ScriptResult
from tests.builders import decision, plan, step
from tests.core.simulated_run import RunInMemory

CASES = {"a": [step("one")], "b": [], "1": [step("first")], "null": [step("nothing")]}


def start_run(value, **fields) -> RunInMemory:
    return RunInMemory(plan(decision("way", CASES, [step("other")], **fields), step("after")), {"way": value})


@pytest.mark.parametrize(
    ("value", "reached"),
    [
        pytest.param("a", "one", id="matching case"),
        pytest.param("b", "other", id="empty case with a default"),
        pytest.param("z", "other", id="missing case with a default"),
        pytest.param(1, "first", id="number as text"),
        pytest.param(None, "nothing", id="null as text"),
    ],
)
def test_control_enters_the_selected_case(value, reached):
    assert [ref for ref in start_run(value).statuses if ref != "way"] == [reached]


def test_the_step_after_the_decision_follows_the_case():
    assert start_run("a").completes("one").statuses == {"way": "COMPLETED", "one": "COMPLETED", "after": "SCHEDULED"}


def test_without_a_default_case_the_next_step_follows_immediately():
    assert RunInMemory(plan(decision("way", CASES), step("after")), {"way": "z"}).waiting == ["after"]


def test_its_output_is_only_the_case():
    attempt = start_run("a").task("way").attempt

    assert attempt.input == {"case": "a", "hasChildren": "true"}
    assert attempt.output == {"caseOutput": ["a"]}


def test_a_script_may_choose():
    scripted = plan(decision("way", CASES, caseExpression="choose($.way)"))

    assert RunInMemory(scripted, {"way": 0}, scripts={"choose($.way)": 1.0}).waiting == ["first"]


def test_a_script_that_fails_fails_the_run():
    scripts = {"boom": ScriptResult(error="boom is not defined")}
    run = RunInMemory(plan(decision("way", CASES, caseExpression="boom"), step("after")), scripts=scripts)

    assert run.status == "FAILED"
    assert "boom is not defined" in run.snapshot.reason
