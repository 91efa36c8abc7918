"""SWITCH: the choice of one of several cases (execution §8.3)."""

import pytest

from conductor_app.core.data_requests import ScriptResult
from tests.builders import noop, plan, step, switch
from tests.core.simulated_run import RunInMemory

CASES = {"a": [step("one")], "b": [], "true": [step("yes")], "1": [step("first")], "null": [step("nothing")]}


def start_run(value, **fields) -> RunInMemory:
    return RunInMemory(plan(switch("way", CASES, [step("other")], **fields), step("after")), {"way": value})


@pytest.mark.parametrize(
    ("value", "reached"),
    [
        pytest.param("a", "one", id="matching case"),
        pytest.param("b", "after", id="empty case without the default"),
        pytest.param("z", "other", id="missing case with a default"),
        pytest.param(True, "yes", id="boolean as text"),
        pytest.param(1, "first", id="number as text"),
        pytest.param(None, "nothing", id="null as text"),
    ],
)
def test_control_enters_the_selected_case(value, reached):
    assert [ref for ref in start_run(value).statuses if ref != "way"] == [reached]


def test_the_step_after_the_switch_follows_the_case():
    assert start_run("a").completes("one").statuses == {"way": "COMPLETED", "one": "COMPLETED", "after": "SCHEDULED"}


def test_its_output_names_the_selected_case():
    attempt = start_run("a").task("way").attempt

    assert attempt.input == {"way": "a", "case": "a", "hasChildren": "true"}
    assert attempt.output == {"evaluationResult": ["a"], "selectedCase": "a"}


def test_a_case_without_steps_has_no_children():
    assert start_run("b").task("way").attempt.input == {"way": "b", "case": "b"}


def test_without_a_default_case_the_next_step_follows_immediately():
    steps = plan(switch("way", {"a": [step("one")]}), noop("after"))

    assert RunInMemory(steps, {"way": "z"}).status == "COMPLETED"


def test_cases_can_contain_switches():
    inner = switch("inner", {"x": [step("deep")]})
    run = RunInMemory(plan(switch("way", {"a": [inner, step("last")]}), step("after")), {"way": "a", "inner": "x"})

    assert run.completes("deep", "last").statuses["after"] == "SCHEDULED"


@pytest.mark.parametrize(("answer", "case"), [("a", "a"), (1.0, "1"), (True, "true"), (None, "null")])
def test_a_script_may_choose(answer, case):
    scripted = {"evaluatorType": "javascript", "expression": "choose($.way)"}
    chosen = RunInMemory(plan(switch("way", CASES, **scripted)), {"way": 0}, scripts={"choose($.way)": answer})

    assert chosen.task("way").attempt.output["selectedCase"] == case


@pytest.mark.parametrize(("answer", "case"), [("a", "a"), (1, "1"), (1.0, "1.0"), (True, "true"), (None, "null")])
def test_a_script_in_python_chooses_by_its_value_as_conductor_prints_it(answer, case):
    scripted = {"evaluatorType": "python", "expression": "return way"}
    chosen = RunInMemory(plan(switch("way", CASES, **scripted)), {"way": 0}, scripts={"return way": answer})

    assert chosen.task("way").attempt.output["selectedCase"] == case


@pytest.mark.parametrize("optional", [False, True])
def test_a_script_that_fails_fails_the_switch(optional):
    scripted = {"evaluatorType": "javascript", "expression": "boom", "optional": optional}
    broken = ScriptResult(error="boom is not defined")
    run = RunInMemory(plan(switch("way", CASES, **scripted), step("after")), scripts={"boom": broken})

    if optional:
        assert run.statuses == {"way": "COMPLETED_WITH_ERRORS", "after": "SCHEDULED"}
    else:
        assert (run.status, run.task("way").attempt.reason) == ("FAILED", "boom is not defined")


def test_an_unknown_language_is_a_reason_to_fail():
    run = RunInMemory(plan(switch("way", CASES, evaluatorType="cobol")))

    assert run.status == "FAILED"
    assert "cobol" in run.snapshot.reason
    assert "Use javascript, graaljs, python or value-param" in run.snapshot.reason
