"""JSON_JQ_TRANSFORM: the result of a jq program over the task's input (execution §8.19)."""

import pytest

from conductor_app.core.data_requests import ScriptResult
from tests.builders import jq, plan, policy
from tests.core.simulated_run import RunInMemory


@pytest.mark.parametrize(
    ("values", "result"), [([1, 2], 1), ([], None), ([None], None), ([[]], [])], ids=["several", "none", "null", "list"]
)
def test_its_result_is_the_first_of_its_values(values, result):
    run = RunInMemory(plan(jq("cut", ".list[]")), scripts={".list[]": values})

    assert run.task("cut").attempt.output == {"result": result, "resultList": values}


def test_a_program_can_read_the_complete_input_with_itself():
    inputs = []
    RunInMemory(
        plan(jq("cut", ".a", inputs={"a": 1})), scripts={".a": lambda task_input: inputs.append(task_input) or [1]}
    )

    assert inputs[0] == {"a": 1, "queryExpression": ".a"}


def test_a_failing_program_states_its_error_in_output_and_reason():
    scripts = {".a.b": ScriptResult(error="Cannot index number")}
    run = RunInMemory(plan(jq("cut", ".a.b")), scripts=scripts)

    assert run.status == "FAILED"
    assert run.task("cut").attempt.output == {"error": "Cannot index number"}
    assert run.task("cut").attempt.reason == "Cannot index number"


def test_a_failing_program_is_retried_by_its_policy():
    answers = iter([ScriptResult(error="no luck"), ScriptResult([5])])
    steps = plan(jq("cut", ".", policy=policy(retries=1, delay_seconds=5)))

    assert RunInMemory(steps, scripts={".": lambda _: next(answers)}).later(5).snapshot.output["result"] == 5


@pytest.mark.parametrize("program", ["", " ", None, 7])
def test_without_a_program_it_fails_with_a_reason(program):
    run = RunInMemory(plan(jq("cut", program)))

    assert (run.status, "queryExpression" in run.snapshot.reason) == ("FAILED", True)
