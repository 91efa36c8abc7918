"""JSON_JQ_TRANSFORM: what a jq program makes of the task's input (execution §8.19)."""

import pytest

from conductor_app.core.data_requests import ScriptResult
from tests.builders import jq, plan, policy
from tests.core.simulated_run import RunInMemory


@pytest.mark.parametrize(
    ("values", "result"), [([1, 2], 1), ([], None), ([None], None), ([[]], [])], ids=["several", "none", "null", "list"]
)
def test_its_result_is_the_first_of_its_values(values, result):
    life = RunInMemory(plan(jq("cut", ".list[]")), scripts={".list[]": values})

    assert life.task("cut").attempt.output == {"result": result, "resultList": values}


def test_a_program_can_read_the_complete_input_with_itself():
    seen = []
    RunInMemory(plan(jq("cut", ".a", inputs={"a": 1})), scripts={".a": lambda given: seen.append(given) or [1]})

    assert seen[0] == {"a": 1, "queryExpression": ".a"}


def test_a_failing_program_states_its_error_in_output_and_reason():
    broken = {".a.b": ScriptResult(error="Cannot index number")}
    life = RunInMemory(plan(jq("cut", ".a.b")), scripts=broken)

    assert life.status == "FAILED"
    assert life.task("cut").attempt.output == {"error": "Cannot index number"}
    assert life.task("cut").attempt.reason == "Cannot index number"


def test_a_failing_program_is_retried_by_its_policy():
    answers = iter([ScriptResult(error="no luck"), ScriptResult([5])])
    steps = plan(jq("cut", ".", policy=policy(retries=1, delay_seconds=5)))

    assert RunInMemory(steps, scripts={".": lambda _: next(answers)}).later(5).run.output["result"] == 5


@pytest.mark.parametrize("program", ["", " ", None, 7])
def test_without_a_program_it_fails_with_a_reason(program):
    life = RunInMemory(plan(jq("cut", program)))

    assert (life.status, "queryExpression" in life.run.reason) == ("FAILED", True)
