"""The attempts that are not the first of their task, and have not ended."""

from tests.admin.reading import html
from tests.insight.situations import attempt_of, define, define_task, start, step, work

LIST = "/admin/conductor/attempt/"


def test_the_list_shows_what_is_at_another_try(operator, clock):
    define_task("charge", retryCount=1, retryDelaySeconds=5)
    define("order", step("charge"))
    again, first = start("order"), start("order")
    work("charge", "FAILED", reason="no funds")

    page = html(operator.get(LIST, {"state": "retrying"}))

    shown = {run for run in (again, first) if str(run.pk) in page}
    assert len(shown) == 1 and attempt_of(shown.pop(), "charge").number == 1
