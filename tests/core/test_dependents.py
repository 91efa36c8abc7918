"""Who may be waiting for a step: what has to be read besides it when it ends."""

import pytest

from conductor_app.core.dependents import dependents_of
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
    ("steps", "ref", "waits"),
    [
        pytest.param(SEQUENCE, "a", set(), id="before a fork nothing waits"),
        pytest.param(SEQUENCE, "b", {"j"}, id="the join of its fork"),
        pytest.param(SEQUENCE, "c", {"j"}, id="the join of what follows it at once"),
        pytest.param(SEQUENCE, "e", set(), id="after the join nothing waits"),
        pytest.param(NESTED, "b", {"inner", "outer"}, id="the joins of all forks around it"),
        pytest.param(NESTED, "a", {"outer"}, id="no join of a fork that comes later"),
        pytest.param(NESTED, "d", {"outer"}, id="no join of another branch"),
        pytest.param(IN_LOOP, "a", {"l"}, id="the loop around it"),
        pytest.param(IN_LOOP, "b", {"l", "j"}, id="the loop and the join"),
        pytest.param(LOOP_IN_FORK, "a", {"l", "j"}, id="the join of the loop around it"),
        pytest.param(LOOPS, "a", {"inner", "outer", "j"}, id="all loops around it, and their join"),
        pytest.param(LOOPS, "c", {"j"}, id="no loop of another branch"),
        pytest.param(SWITCHED, "a", {"j"}, id="no exclusive join that comes later"),
    ],
)
def test_dependents_of_a_step_are_listed(steps, ref, waits):
    assert dependents_of(plan(*steps), ref) == waits
