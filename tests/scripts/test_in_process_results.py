"""Scripts that are evaluated in this process have the results of QuickJS, including the types of JSON."""

import json
from contextlib import suppress
from typing import Any

import pytest

from conductor_app.core.expressions import NeedsQuickJS, evaluate_in_process
from conductor_app.core.expressions.javascript import OBJECT_PROPERTIES
from tests.hypothesis_profile import scaled
from tests.scripts.documented_scripts import DOCUMENTED, INPUTS
from tests.scripts.random_scripts import BINARY_OPERATORS, JSON_VALUES, random_script

SCRIPTS = 1_500


def is_same(one: Any, other: Any) -> bool:
    """Return True if both are the same JSON, with the same types and the same order of names."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(is_same(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return one == other


def test_random_scripts_have_the_results_of_quickjs(pool):
    evaluated, different = 0, []
    for seed in range(scaled(SCRIPTS)):
        source, inputs = random_script(seed)
        try:
            value = evaluate_in_process(source, inputs)
        except NeedsQuickJS:
            continue
        evaluated += 1
        expected = pool.evaluate("javascript", source, inputs)
        if expected.error or not is_same(value, expected.value):
            different.append((source, json.dumps(inputs), value, expected))

    assert different == []
    assert evaluated > scaled(SCRIPTS) / 6


OPERANDS = [*JSON_VALUES, -3, -7.5, 3, 1.5, "B", "Z", "9", "10", [], {}, [1], {"a": 1}]


@pytest.mark.parametrize("operator", BINARY_OPERATORS)
def test_a_binary_operator_has_the_results_of_quickjs(pool, operator):
    operation = f"{{ try {{ return a {operator} b }} catch (e) {{ return String(e) }} }}"
    source = f"const all = [...$.all, undefined]; all.map(a => all.map(b => {operation}))"
    expected = pool.evaluate("javascript", source, {"all": OPERANDS})
    operands = [*({"value": value} for value in OPERANDS), {}]

    assert expected.error is None
    evaluated, different = 0, []
    for row, left in zip(expected.value, operands, strict=True):
        for value, right in zip(row, operands, strict=True):
            with suppress(NeedsQuickJS):
                found = evaluate_in_process(f"$.l.value {operator} $.r.value", {"l": left, "r": right})
                different += [] if is_same(found, value) else [(left, right, found, value)]
                evaluated += 1

    assert different == []
    assert evaluated > 100


@pytest.mark.parametrize("operator", ["!", "-", "+"])
def test_a_unary_operator_has_the_results_of_quickjs(pool, operator):
    expected = pool.evaluate(
        "javascript",
        f"$.all.map(a => {{ try {{ return {operator}a }} catch (e) {{ return String(e) }} }})",
        {"all": OPERANDS},
    )

    evaluated, different = 0, []
    for value, operand in zip(expected.value, OPERANDS, strict=True):
        with suppress(NeedsQuickJS):
            found = evaluate_in_process(f"{operator}$.value", {"value": operand})
            different += [] if is_same(found, value) else [(operand, found, value)]
            evaluated += 1

    assert different == []
    assert evaluated >= 10


@pytest.mark.parametrize("source", DOCUMENTED)
def test_a_script_in_a_documented_form_has_the_result_of_quickjs(pool, source):
    expected = pool.evaluate("javascript", source, INPUTS)

    assert expected.error is None
    assert is_same(evaluate_in_process(source, INPUTS), expected.value)


def test_the_properties_of_every_object_are_those_of_quickjs(pool):
    found = pool.evaluate("javascript", "Object.getOwnPropertyNames(Object.prototype)", {}).value

    assert set(found) == OBJECT_PROPERTIES
