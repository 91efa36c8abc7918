"""Steps with scripts, evaluated by real helper processes."""

import pytest

from conductor_app.scripts import pool
from tests.builders import decision, inline, jq, lambda_, loop, step, switch
from tests.scenario import Scenario

ORDERS = {"orders": [{"id": "b", "total": 5}, {"id": "a", "total": 7}]}


def test_scripts_of_every_kind_feed_one_another(clock):
    scenario = Scenario(
        clock,
        jq("totals", ".orders[] | .total", inputs={"orders": "${workflow.input.orders}"}),
        lambda_("sum", "return $.all.reduce((a, b) => a + b) // twelve", inputs={"all": "${totals.output.resultList}"}),
        inline("half", "$.sum / 2", inputs={"sum": "${sum.output.result}"}),
        decision("large", {"yes": [step("check")]}, caseExpression="$.large > 5 ? 'yes' : 'no'")
        | {"inputParameters": {"large": "${half.output.result}"}},
        input=ORDERS,
    )

    assert scenario.task("totals").output == {"result": 5, "resultList": [5, 7]}
    assert scenario.task("sum").output == {"result": 12}
    assert scenario.task("large").output == {"caseOutput": ["yes"]}
    assert scenario.is_waiting_for("check")


def test_a_program_reads_keys_in_document_order(clock):
    scenario = Scenario(clock, jq("keys", ".given | keys_unsorted", inputs={"given": {"b": 1, "a": 2}}))

    assert scenario.output["result"] == ["b", "a"]


def test_a_program_that_never_ends_is_stopped_and_fails_its_task(clock, monkeypatch):
    monkeypatch.setattr(pool, "EVALUATION_SECONDS", 0.2)
    scenario = Scenario(clock, jq("stuck", "def f: f; f"))

    assert scenario.status == "FAILED"
    assert scenario.task("stuck").output["error"] == "The script ran longer than 0.2 s and was stopped."


def python(ref, expression, **inputs):
    """Return an INLINE step in Python."""
    return inline(ref, expression, inputs={"evaluatorType": "python", **inputs})


NUMBERS = {
    "whole": 5,
    "part": 5.0,
    "big": 2**70,
    "tiny": 1e-7,
    "text": "é😀\u2028",
    "none": None,
    "deep": [{"a": [True]}],
}


def test_values_pass_through_a_script_in_python_as_they_are(clock):
    values = {**NUMBERS, "again": "${same.output.result}"}
    scenario = Scenario(
        clock, python("same", "return values", values=NUMBERS), python("again", "return values", values=values)
    )

    assert scenario.status == "COMPLETED"
    for task, expected in [("same", NUMBERS), ("again", {**NUMBERS, "again": NUMBERS})]:
        result = scenario.task(task).output["result"]
        assert result == expected
        assert [type(value) for value in result.values()] == [type(value) for value in expected.values()]


def test_a_python_script_reads_its_inputs_as_variables_and_returns_a_value(clock):
    program = """
total = 0
for order in orders:
    total += order['total']
return {'total': total, 'first': min(order['id'] for order in orders), 'language': evaluatorType}
"""
    scenario = Scenario(clock, python("sum", program, orders="${workflow.input.orders}"), input=ORDERS)

    assert scenario.task("sum").output == {"result": {"total": 12, "first": "a", "language": "python"}}


def test_a_python_script_without_a_return_evaluates_to_null(clock):
    assert Scenario(clock, python("sum", "a + 1", a=1)).task("sum").output == {"result": None}


def test_a_script_in_python_that_fails_fails_its_task_for_good_and_names_the_line(clock):
    scenario = Scenario(clock, python("sum", "b = a\nreturn b + nothing", a=1))

    assert scenario.status == "FAILED"
    assert scenario.task("sum").status == "FAILED_FOR_GOOD"
    assert scenario.task("sum").output == {"error": "NameError: name 'nothing' is not defined (line 2)"}


def test_a_script_in_python_that_never_ends_is_stopped_and_fails_its_task(clock, monkeypatch):
    monkeypatch.setattr(pool, "EVALUATION_SECONDS", 0.2)
    scenario = Scenario(clock, python("stuck", "while True: pass"))

    assert scenario.task("stuck").status == "FAILED"
    assert scenario.task("stuck").output["error"] == "The script ran longer than 0.2 s and was stopped."


@pytest.mark.parametrize(
    ("expression", "case"),
    [
        ("return 'large' if total > 5 else 'small'", "large"),
        ("return total > 5", "true"),
        ("return None", "null"),
        ("return 1", "1"),
        ("return 1.0", "1.0"),
        ("total", "null"),
    ],
)
def test_a_script_in_python_chooses_the_case_as_its_value_is_printed(clock, expression, case):
    route = switch("route", {case: [step("chosen")]}, evaluatorType="python", expression=expression)
    scenario = Scenario(clock, route | {"inputParameters": {"total": 7}})

    assert scenario.task("route").output == {"evaluationResult": [case], "selectedCase": case}
    assert scenario.is_waiting_for("chosen")


def test_a_script_in_python_that_fails_fails_its_switch(clock):
    scenario = Scenario(
        clock, switch("route", {"a": [step("chosen")]}, evaluatorType="python", expression="return 1 / 0")
    )

    assert scenario.status == "FAILED"
    assert scenario.task("route").reason == "ZeroDivisionError: division by zero (line 1)"


def test_a_loop_may_have_its_condition_in_python(clock):
    condition = "return turns['iteration'] < most and not (inner['result'] == 3)"
    turns = loop("turns", python("inner", "return 1"), loopCondition=condition, evaluatorType="python")
    scenario = Scenario(clock, turns | {"inputParameters": {"most": 3}})

    assert scenario.status == "COMPLETED"
    assert scenario.task("turns").output["iteration"] == 3


def test_a_loop_whose_python_condition_raises_fails_permanently(clock):
    turns = loop("turns", python("inner", "return 1"), loopCondition="return inner.size", evaluatorType="python")
    scenario = Scenario(clock, turns)

    assert scenario.status == "FAILED"
    reason = "The loop condition of turns failed: AttributeError: 'dict' object has no attribute 'size' (line 1)"
    assert scenario.task("turns").reason == reason


def test_a_loop_that_names_another_language_is_read_as_javascript(clock):
    turns = loop("turns", python("inner", "return 1"), times=2, evaluatorType="value-param")

    assert Scenario(clock, turns).task("turns").output["iteration"] == 2
