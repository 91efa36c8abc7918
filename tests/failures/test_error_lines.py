"""Every page and list names the error of a failure by the same line."""

import json
import re
from html import unescape

import pytest
from django.urls import reverse

from conductor_app.failures import commands as failure_groups
from conductor_app.failures.models import FailureGroup
from conductor_app.runs.models import Run
from tests.builders import simple, sub_workflow
from tests.page_text import page_text, run_url
from tests.scenario import claim_and_report, claim_next, define_task, define_workflow, start_run_of

TRACEBACK = "Traceback (most recent call last):\n" + '  File "van.py", line 7, in book\n' * 40 + "KeyError: 'zip'"


@pytest.fixture
def failed(operator, clock, transactional_db):
    """The task of a sub-workflow that a worker failed with a traceback."""
    define_task("book_van", retryCount=0)
    define_workflow("delivery", simple("book_van"))
    start_run_of(sub_workflow("deliver", "delivery", version=1))
    attempt = claim_next("book_van")
    report = {"workflowInstanceId": attempt.run_id, "taskId": attempt.id, "status": "FAILED"}
    operator.post("/api/tasks", {**report, "reasonForIncompletion": TRACEBACK}, content_type="application/json")
    assert failure_groups.group_failures(100) == 1
    return attempt


def test_the_banners_of_a_run_and_of_its_parent_name_the_exception(operator, failed):
    for name in ("delivery", "order"):
        banner = page_text(operator.get(run_url(Run.objects.get(name=name))))
        assert "ailed at book_van, attempt 1 of 1: KeyError: 'zip'" in banner


def test_lists_name_the_exception(operator, failed):
    runs = page_text(operator.get(reverse("admin:conductor_run_changelist")))

    assert "book_van KeyError: 'zip'" in runs and "deliver KeyError: 'zip'" in runs


def test_the_failure_group_has_the_exception_as_its_message(operator, failed):
    page = operator.get(reverse("admin:failure_group", args=[FailureGroup.objects.get().pk]))

    assert "KeyError: 'zip'" in page_text(page)


def test_an_export_names_the_exception(operator, failed):
    exported = operator.get(reverse("admin:run_export", args=["json"]))

    rows = json.loads(b"".join(exported.streaming_content))
    assert {(row["failed_task"], row["reason"]) for row in rows} == {
        ("book_van", "KeyError: 'zip'"),
        ("deliver", "KeyError: 'zip'"),
    }


def test_clients_receive_the_beginning_of_the_reason_as_from_conductor(operator, failed):
    task = operator.get(f"/api/tasks/{failed.id}").json()

    assert task["reasonForIncompletion"] == TRACEBACK[:500]


JAVA = "java.io.IOException: no van\n" + "\tat com.example.Van.book(Van.java:7)\n" * 41


@pytest.mark.parametrize(
    ("reason", "line", "folded", "last_shown"),
    [
        (TRACEBACK, "KeyError: 'zip'", "30 earlier lines", "KeyError: 'zip'"),
        (JAVA, "java.io.IOException: no van", "30 more lines", "\tat com.example.Van.book(Van.java:7)"),
    ],
    ids=["Python", "Java"],
)
def test_the_panel_shows_the_twelve_lines_at_the_cause_and_folds_the_others(
    operator, clock, reason, line, folded, last_shown
):
    define_task("book_van", retryCount=0)
    run = start_run_of(simple("book_van"))
    claim_and_report("book_van", "FAILED", reason=reason)

    page = unescape(operator.get(run_url(run, task="book_van")).content.decode())
    box = page.partition('<div class="reason-box">')[2].partition("</div>")[0]
    blocks = [block.splitlines() for block in re.findall("<pre[^>]*>(.*?)</pre>", box, re.DOTALL)]
    shown = re.sub("<details.*?</details>", "", box, flags=re.DOTALL).partition("<pre")[2].partition(">")[2]

    assert f"<p>{line}</p>" in box and folded in box
    assert sorted(map(len, blocks)) == [12, 30]
    assert shown.partition("</pre>")[0].splitlines()[-1] == last_shown


def test_an_error_of_one_line_is_not_repeated(operator, clock):
    define_task("book_van", retryCount=0)
    run = start_run_of(simple("book_van"))
    claim_and_report("book_van", "FAILED", reason="no van")

    page = operator.get(run_url(run, task="book_van")).content.decode()

    assert "<pre" not in page.partition('<div class="reason-box">')[2].partition("</div>")[0]
