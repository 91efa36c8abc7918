"""The JavaScript that is evaluated in this process, and its limits. `tests/scripts` compares it with QuickJS."""

import pytest

from conductor_app.core.expressions import NeedsQuickJS, evaluate_in_process
from conductor_app.core.expressions.javascript import MAX_LENGTH
from tests.scripts.documented_scripts import DOCUMENTED, INPUTS


@pytest.mark.parametrize("source", DOCUMENTED)
def test_a_script_in_a_documented_form_is_evaluated_in_this_process(source):
    value = evaluate_in_process(source, INPUTS)

    assert value == DOCUMENTED[source]
    assert type(value) is type(DOCUMENTED[source])


NEEDS_QUICKJS = {
    "a loop": "while ($.value) { }",
    "a call": "Math.abs($.value)",
    "a method": "$.status.toLowerCase()",
    "a method of Java": "$.orders.size() + $.size",
    "a recursion": "function e() { return e(); } e();",
    "a recursion through another function": "function a() { return b(); } function b() { return a(); } a();",
    "a call before the declaration": "e(); function e() { return 1; }",
    "an assignment to the inputs": "$.value = 1",
    "an assignment to a constant": "const x = 1; x = 2;",
    "a name before its declaration": "x; var x = 1;",
    "a name of an ended block": "if ($.value) { var x = 1; } x",
    "a hidden name": "var x = 1; { let x = 2; } x",
    "an unknown name": "value + 1",
    "a member of undefined": "$.missing.length",
    "an inherited property": "$.toString",
    "a prototype": "({ __proto__: $.value })",
    "a return outside of a function": "return 1",
    "a return before a line break": "(function () { return\n 1 })()",
    "a missing semicolon": "var a = 1 a",
    "a call after a line break": "var a = $\n(function () { return 1 })()",
    "an octal number": "010",
    "a regular expression": "/a/",
    "a template text": "`a`",
    "an escape of a character": "'\\x41'",
    "a letter of another alphabet in a name": "var é = 1; é",
    "mixed operators": "$.a ?? $.b || $.c",
    "a comma": "1, 2",
    "an HTML comment": "$.value <!-- $.value",
    "a reserved word": "(function if() { return 1 })()",
    "a reserved name of a variable": "var $ = 1; $",
    "strict mode": "'use strict'; 1",
    "an unclosed text": "'a",
    "an object compared with itself": "$.orders == $.orders",
    "an object as a text": "'' + $.orders",
    "a negative zero": "-0",
    "a product that is a negative zero": "0 * -1",
    "NaN": "+$.missing",
    "infinity": "1 / 0",
    "a sum beyond the safe integers": "9007199254740991 + 1",
    "a small number as a text": "'' + 0.00001",
    "an object with array indexes": "$.loopTask",
    "a text compared with others than ASCII": "'é' < 'f'",
    "a number with spaces": "' 5 ' == 5",
}


@pytest.mark.parametrize("source", NEEDS_QUICKJS.values(), ids=NEEDS_QUICKJS)
def test_other_scripts_are_left_to_quickjs(source):
    with pytest.raises(NeedsQuickJS):
        evaluate_in_process(source, INPUTS)


LARGE = {
    "a long script": f"'{'x' * MAX_LENGTH}'",
    "deep brackets": "(" * 300 + "1" + ")" * 300,
    "deep negations": "!" * 900 + "1",
    "deep conditions": "if (1) " * 100 + "1",
    "deep choices": "1 ? " * 150 + "1" + " : 0" * 150,
    "deep arrays": "[" * 300 + "]" * 300,
    "a text that doubles": "var a = $.name + $.name; " + "".join(
        f"var a{number + 1} = a{number or ''} + a{number or ''}; " for number in range(25)
    ),
    "an array that doubles": "var a = [1, 1]; "
    + "".join(f"var a{number + 1} = [a{number or ''}, a{number or ''}]; " for number in range(25))
    + "a25",
}  # fmt: skip


@pytest.mark.parametrize("source", LARGE.values(), ids=LARGE)
def test_the_work_of_a_script_is_bounded(source):
    with pytest.raises(NeedsQuickJS):
        evaluate_in_process(source, INPUTS)


def test_a_long_chain_of_operators_is_evaluated():
    assert evaluate_in_process("+".join(["1"] * 500), {}) == 500
    assert evaluate_in_process("||".join(["0"] * 333), {}) == 0


@pytest.mark.parametrize("value", [2**53, 1e300, -0.0, float("inf"), "\ud800", "é" * 10_001, object()])
def test_an_input_without_a_certain_value_is_left_to_quickjs(value):
    with pytest.raises(NeedsQuickJS):
        evaluate_in_process("$.value === 1", {"value": value})

    assert evaluate_in_process("$.other", {"value": value, "other": 1}) == 1


@pytest.mark.parametrize("value", [["x" * 1_000_001], [[]] * 10_001, {"x" * 1_000_001: 1}, {"0": 1}, {"__proto__": 1}])
def test_a_large_or_reordered_result_is_left_to_quickjs(value):
    with pytest.raises(NeedsQuickJS):
        evaluate_in_process("$.value", {"value": value})


def test_a_result_deeper_than_fifty_levels_is_left_to_quickjs():
    value: list = []
    for _ in range(51):
        value = [value]

    with pytest.raises(NeedsQuickJS):
        evaluate_in_process("$.value", {"value": value})


def test_a_result_is_a_copy_of_the_inputs():
    inputs = {"list": [{"n": 5.0}]}

    result = evaluate_in_process("$.list", inputs)

    assert (result, type(result[0]["n"])) == ([{"n": 5}], int)
    assert inputs["list"] is not result
    assert type(inputs["list"][0]["n"]) is float
