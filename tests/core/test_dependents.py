"""Dependents of a step: the steps that may wait for it and are read when it ends."""

import pytest

from conductor_app.core.decision_context import dependents_of
from tests.builders import exclusive_join, fork, loop, noop, plan, step, switch

SEQUENCE = [step("a"), *fork([step("b")], [noop("c"), step("d")], join="j"), step("e")]
NESTED = fork([step("a"), *fork([step("b")], [step("c")], join="inner"), noop("n")], [step("d")], join="outer")
IN_LOOP = [loop("l", step("a"), *fork([step("b"), noop("n")], [step("c")], join="j"), step("d"), times=2)]
LOOP_IN_FORK = [*fork([loop("l", step("a"), times=2)], [step("b")], join="j"), step("c")]
LOOPS = fork([loop("outer", loop("inner", step("a"), times=2), step("b"), times=2)], [step("c")], join="j")
SWITCHED = [
    *fork([switch("way", {"x": [step("a"), noop("n")]}), noop("m")], [step("b")], join="j"),
    exclusive_join("e", ["a"]),
]


@pytest.mark.parametrize(
    ("steps", "ref", "dependents"),
    [
        pytest.param(SEQUENCE, "a", set(), id="before a fork nothing dependents"),
        pytest.param(SEQUENCE, "b", {"j"}, id="last step of a branch"),
        pytest.param(SEQUENCE, "c", {"j"}, id="step before the last one of a branch"),
        pytest.param(SEQUENCE, "e", set(), id="after the join nothing dependents"),
        pytest.param(NESTED, "b", {"inner", "outer"}, id="step in nested forks"),
        pytest.param(NESTED, "a", {"outer"}, id="step before an inner fork"),
        pytest.param(NESTED, "d", {"outer"}, id="step beside an inner fork"),
        pytest.param(IN_LOOP, "a", {"l"}, id="step in a loop"),
        pytest.param(IN_LOOP, "b", {"l", "j"}, id="step in a fork in a loop"),
        pytest.param(LOOP_IN_FORK, "a", {"l", "j"}, id="step in a loop in a fork"),
        pytest.param(LOOPS, "a", {"inner", "outer", "j"}, id="step in nested loops"),
        pytest.param(LOOPS, "c", {"j"}, id="step beside a loop"),
        pytest.param(SWITCHED, "a", {"j"}, id="step before an exclusive join"),
    ],
)
def test_dependents_of_a_step_are_listed(steps, ref, dependents):
    assert dependents_of(plan(*steps), ref) == dependents
