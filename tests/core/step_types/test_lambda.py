"""LAMBDA: the deprecated form of INLINE (execution §8.18)."""

import pytest

from conductor_app.core.data_requests import ScriptResult
from conductor_app.core.step_types.worker_tasks import wrap_as_function
from tests.builders import lambda_, plan, policy
from tests.core.simulated_run import RunInMemory

SOURCE = wrap_as_function("return $.a + 1")


def test_its_output_is_the_result_of_its_script():
    run = RunInMemory(
        plan(lambda_("sum", "return $.a + 1", inputs={"a": 1})), scripts={SOURCE: lambda given: given["a"] + 1}
    )

    assert run.task("sum").attempt.output == {"result": 2}


def test_a_failing_script_has_no_output_and_is_retried_by_its_policy():
    answers = iter([ScriptResult(error="no luck"), ScriptResult(5)])
    steps = plan(lambda_("sum", "return $.a + 1", policy=policy(retries=1, delay_seconds=5)))
    run = RunInMemory(steps, scripts={SOURCE: lambda _: next(answers)})
    assert (run.statuses, run.task("sum").attempt.output) == ({"sum": "SCHEDULED"}, {})

    assert run.later(5).snapshot.output == {"result": 5}


@pytest.mark.parametrize("script", ["", "  ", None, 7])
def test_without_a_script_it_fails_with_a_reason(script):
    run = RunInMemory(plan(lambda_("sum", script)))

    assert (run.status, "expression" in run.snapshot.reason) == ("FAILED", True)
