"""Steps that are answered by scripts, with the real helpers."""

from tests.builders import decision, inline, jq, lambda_, step
from tests.story import Story

ORDERS = {"orders": [{"id": "b", "total": 5}, {"id": "a", "total": 7}]}


def test_scripts_of_every_kind_feed_one_another(clock):
    story = Story(
        clock,
        jq("totals", ".orders[] | .total", inputs={"orders": "${workflow.input.orders}"}),
        lambda_("sum", "return $.all.reduce((a, b) => a + b) // twelve", inputs={"all": "${totals.output.resultList}"}),
        inline("half", "$.sum / 2", inputs={"sum": "${sum.output.result}"}),
        decision("large", {"yes": [step("check")]}, caseExpression="$.large > 5 ? 'yes' : 'no'")
        | {"inputParameters": {"large": "${half.output.result}"}},
        input=ORDERS,
    )

    assert story.task("totals").output == {"result": 5, "resultList": [5, 7]}
    assert story.task("sum").output == {"result": 12}
    assert story.task("large").output == {"caseOutput": ["yes"]}
    assert story.is_waiting_for("check")


def test_a_program_sees_keys_in_the_order_in_which_they_were_written(clock):
    story = Story(clock, jq("keys", ".given | keys_unsorted", inputs={"given": {"b": 1, "a": 2}}))

    assert story.output["result"] == ["b", "a"]


def test_a_program_that_never_ends_is_stopped_and_fails_its_task(clock, settings):
    settings.CONDUCTOR_SCRIPT_SECONDS = 0.2
    story = Story(clock, jq("stuck", "def f: f; f"))

    assert story.status == "FAILED"
    assert story.task("stuck").output["error"] == "The script ran longer than 0.2 s and was stopped."
