"""The attempts that are not the first of their task, and have not ended."""

from tests.page_text import html
from tests.stored_scenarios import claim_and_report, define_task, define_workflow, newest_attempt_of, start_run, step

LIST = "/admin/conductor/attempt/"


def test_the_list_displays_attempts_awaiting_a_retry(operator, clock):
    define_task("charge", retryCount=1, retryDelaySeconds=5)
    define_workflow("order", step("charge"))
    again, first = start_run("order"), start_run("order")
    claim_and_report("charge", "FAILED", reason="no funds")

    page = html(operator.get(LIST, {"state": "retrying"}))

    shown = {run for run in (again, first) if str(run.pk) in page}
    assert len(shown) == 1 and newest_attempt_of(shown.pop(), "charge").number == 1
