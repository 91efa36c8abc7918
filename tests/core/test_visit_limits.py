"""Paths that visit many values: a decision ends after a bounded number, and another one continues."""

import pytest

from conductor_app.core import decide as decisions
from conductor_app.core.decide import decide
from conductor_app.core.definition import Key
from conductor_app.core.expressions import jsonpath_segments, patterns
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


class TestSlowPatterns:
    """Regular expressions with look-around may need exponential time."""

    path = "${workflow.input.l[?(@.s =~ /(?=(a+)+$)(a|aa)+b/)]}"

    @pytest.fixture
    def allowed(self, monkeypatch):
        """Return the seconds that each match of the backtracking engine may take. Each takes 10 ms."""
        monkeypatch.setattr(patterns, "SHARED_SECONDS", 0.05)
        seconds = []

        def match(pattern, text, budget):
            seconds.append(budget.seconds)
            if budget.seconds <= 0:
                raise patterns.PatternTooSlow
            budget.spend(0.01)
            return False

        monkeypatch.setattr(patterns.BacktrackingPattern, "matches", match)
        return seconds

    def test_the_slow_patterns_of_a_decision_share_one_time_limit(self, allowed):
        inputs = {f"p{number}": self.path for number in range(20)}
        steps = plan(step("a", inputs=inputs))
        run = Run("run", steps, "RUNNING", 0, input={"l": [{"s": "aaa"}]}, output={}, variables={})

        decide(run, {}, 0)

        assert len(allowed) == 20
        assert 5 <= sum(seconds > 0 for seconds in allowed) <= 6
        assert patterns.MatchTimeBudget().seconds == patterns.SECONDS_TO_BACKTRACK
