"""Waiting for people: the inbox of tasks that only a person can answer."""

import pytest

from conductor_app.engine import runs
from conductor_app.models import AuditEntry
from tests.admin.reading import html, run_page, words
from tests.insight.situations import attempt_of, define, now_of, start, step

INBOX = "/admin/waiting/"


@pytest.fixture
def asked(clock, db):
    verdict = step("verdict", "SET_VARIABLE", inputParameters={"was": "${approve.output.approved}"})
    define("order", step("approve", "HUMAN", inputParameters={"total": "${workflow.input.total}"}), verdict)
    return start("order", correlation_id="order-4711", input={"total": 1999})


def task_of(run):
    return f"{INBOX}{attempt_of(run, 'approve').pk}/"


def test_the_inbox_lists_what_waits_with_its_run(operator, asked):
    page = words(operator.get(INBOX))

    assert "approve order v1 order-4711" in page


def test_an_empty_inbox_says_what_it_is_for(operator, db):
    assert "Nothing waits for you" in words(operator.get(INBOX))


def test_a_task_shows_what_it_was_given_and_what_later_steps_will_read(operator, asked):
    page = operator.get(task_of(asked))

    assert "total 1999" in words(page) and "Later steps read approved" in words(page)
    assert "&quot;approved&quot;: null" in html(page)


def test_an_answer_completes_the_task_and_stands_in_the_audit_with_its_reason(operator, asked):
    said = {"output": '{"approved": true}', "reason": "a good customer", "outcome": "COMPLETED"}

    page = operator.post(task_of(asked), said, follow=True)

    assert "The task approve of order is answered" in words(page) and "Nothing waits for you" in words(page)
    assert (now_of(asked).status, now_of(asked).variables) == ("COMPLETED", {"was": True})
    entry = AuditEntry.objects.get(action="complete_task")
    assert (entry.actor, entry.object_id, entry.reason) == ("olga", asked.pk, "a good customer")


def test_a_task_can_be_failed_with_a_reason(operator, asked):
    operator.post(task_of(asked), {"output": "", "reason": "too dear", "outcome": "FAILED"})

    assert now_of(asked).status == "FAILED"
    assert attempt_of(asked, "approve").reason == "too dear"


@pytest.mark.parametrize("said", [{"output": "[1]"}, {"output": "{"}, {"output": "{}", "outcome": "SKIPPED"}], ids=str)
def test_an_answer_that_makes_no_sense_is_refused_and_changes_nothing(operator, asked, said):
    page = operator.post(task_of(asked), {"outcome": "COMPLETED", **said}, follow=True)

    assert 'class="error"' in html(page)
    assert now_of(asked).status == "RUNNING"


def test_what_was_answered_meanwhile_is_gone(operator, asked):
    address = task_of(asked)
    runs.terminate(asked.pk, "ann")

    assert operator.get(address).status_code == 404
    assert operator.post(address, {"outcome": "COMPLETED", "output": "{}"}).status_code == 404


def test_a_viewer_sees_the_task_and_may_not_answer(viewer, asked):
    page = words(viewer.get(task_of(asked)))

    assert "conductor.change_run" in page and "Complete" not in page
    assert viewer.post(task_of(asked), {"outcome": "COMPLETED", "output": "{}"}).status_code == 403
    assert now_of(asked).status == "RUNNING"


def test_the_inbox_is_closed_to_those_who_may_not_see_runs(client, django_user_model, db):
    client.force_login(django_user_model.objects.create_user("nobody", is_staff=True))

    assert client.get(INBOX).status_code == 403


def test_the_page_of_the_run_leads_to_the_answer(operator, asked):
    assert task_of(asked) in html(operator.get(run_page(asked, task="approve")))


def test_the_inbox_costs_few_queries(viewer, asked, django_assert_max_num_queries):
    for _ in range(20):
        start("order")
    with django_assert_max_num_queries(10):
        viewer.get(INBOX)
