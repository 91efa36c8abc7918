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
    "a statement": "var x = 1; x",
    "another condition": "if ($.value) { 'a'; } else { 'b'; }",
    "a condition with an open bracket": "if ($.value) || ($.count) { true; } else { false; }",
    "a function": "(function () { return $.value; })()",
    "a choice in brackets": "($.value == 5 ? 'one' : 'other')",
    "a choice with an open bracket": "$.value) || ($.count ? 1 : 2",
    "half of a choice": "$.value ? 1",
    "optional chaining": "$.a?.b",
    "a choice of what is not null": "$.a ?? $.b",
    "a call": "Math.abs($.value)",
    "a method": "$.status.toLowerCase()",
    "a method of Java": "$.orders.size() + $.size",
    "an assignment": "$.value = 1",
    "an unknown name": "value + 1",
    "a name of Python": "root.value",
    "a keyword of Python": "$.class",
    "a list": "[$.value]",
    "empty brackets": "true || ()",
    "two texts": "'a' 'b'",
    "a chain of comparisons": "1 < $.value < 9",
    "a decrement": "$.value--$.count",
    "a power": "$.value ** 2",
    "a comment": "$.value // 2",
    "a member of undefined": "$.missing.length",
    "an inherited property": "$.toString",
    "an octal number": "010",
    "a regular expression": "/a/",
    "a template text": "`a`",
    "an escape of a character": "'\\x41'",
    "a letter of another alphabet in a name": "$.é",
    "a comma": "1, 2",
    "an HTML comment": "$.value <!-- $.value",
    "an unclosed text": "'a",
    "an object": "$.orders",
    "an object compared with itself": "$.orders == $.orders",
    "an object as a text": "'' + $.orders",
    "a text as a number": "$.inputValue == 1",
    "a boolean as a number": "$.hasMore + 1",
    "a negative zero": "-0",
    "a product that is a negative zero": "0 * -1",
    "NaN": "+$.missing",
    "infinity": "1 / 0",
    "a remainder of no number": "1 % 0",
    "a sum beyond the safe integers": "9007199254740991 + 1",
    "a text compared with others than ASCII": "'é' < 'f'",
    "nothing": " ",
}


@pytest.mark.parametrize("source", NEEDS_QUICKJS.values(), ids=NEEDS_QUICKJS)
def test_other_scripts_are_left_to_quickjs(source):
    with pytest.raises(NeedsQuickJS):
        evaluate_in_process(source, INPUTS)


LARGE = {
    "a long script": f"'{'x' * MAX_LENGTH}'",
    "deep brackets": "(" * 300 + "1" + ")" * 300,
    "deep negations": "!" * 900 + "1",
    "a deep path": "$" + "['a']" * 100,
    "a text that doubles": "($.name + $.name)" + " + ($.name + $.name)" * 40,
}


@pytest.mark.parametrize("source", LARGE.values(), ids=LARGE)
def test_the_work_of_a_script_is_bounded(source):
    with pytest.raises(NeedsQuickJS):
        evaluate_in_process(source, INPUTS)


def test_a_long_chain_of_operators_is_evaluated():
    assert evaluate_in_process("||".join(["0"] * 333), {}) == 0


@pytest.mark.parametrize("value", [2**53, 1e300, -0.0, float("inf"), "\ud800", object()])
def test_an_input_without_a_certain_value_is_left_to_quickjs(value):
    with pytest.raises(NeedsQuickJS):
        evaluate_in_process("$.value === 1", {"value": value})

    assert evaluate_in_process("$.other", {"value": value, "other": 1}) == 1


@pytest.mark.parametrize("value", ["x" * 10_001, [], {}])
def test_a_large_result_and_an_object_are_left_to_quickjs(value):
    with pytest.raises(NeedsQuickJS):
        evaluate_in_process("$.value", {"value": value})
