"""Paths that visit many values: a decision ends after a bounded number, and another one continues."""

import pytest

from conductor_app.core import decide as decisions
from conductor_app.core.decide import decide
from conductor_app.core.definition import Key
from conductor_app.core.expressions import jsonpath_segments
from conductor_app.core.snapshot import Run
from tests.builders import plan, set_variable, step

SLOW = "${workflow.input..*..*}"


@pytest.fixture(autouse=True)
def low_limits(monkeypatch):
    """A path of these tests visits about 700 values."""
    monkeypatch.setattr(decisions, "MAX_VALUES_VISITED", 1_000)
    monkeypatch.setattr(jsonpath_segments, "MAX_SHARED_VISITS", 5_000)


def start(*steps):
    document = {}
    for _ in range(15):
        document = {"a": document, "b": [1, 2]}
    return Run("run", plan(*steps), "RUNNING", 0, input=document, output={}, variables={})


def test_steps_with_slow_paths_continue_in_further_decisions():
    slow = [set_variable(f"n{n}", a=SLOW, b=SLOW) for n in range(6)]
    run, count = start(*slow, step("after")), 0
    while not (count and run.wake_at > 0):
        run, count = decide(run, {}, 0).after, count + 1

    assert 1 < count < 10
    assert run.tasks[Key("after")].is_open
    assert all(run.tasks[Key(f"n{n}")].attempt.input["b"] for n in range(6))


def test_a_run_that_waits_needs_no_further_decision_however_much_its_paths_visit():
    run = start(step("a", inputs={f"x{n}": SLOW for n in range(4)}))

    first = decide(run, {}, 0).after
    second = decide(first, {}, 0)

    assert second.effects == ()
    assert second.after.wake_at > 0


def test_all_paths_of_a_decision_together_visit_a_limited_number_of_values():
    run = start(step("a", inputs={f"x{n}": SLOW for n in range(30)}))

    found = decide(run, {}, 0).after.tasks[Key("a")].attempt.input

    assert found["x0"]
    assert found["x29"] == []
