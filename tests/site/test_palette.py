"""The command palette: search by a few letters, and commands."""

import re
from html import unescape

import pytest

from conductor_app.failures.commands import group_failures
from conductor_app.failures.models import FailureGroup
from conductor_app.tasks.models import Poller
from tests.builders import set_variable, simple
from tests.page_text import html, page_text
from tests.scenario import claim_and_report, define_task, define_workflow, start_run

HITS = "/admin/search/hits/"


@pytest.fixture
def polled(db, clock):
    Poller.objects.create(task_type="ocr", domain="", worker="w1", polled_at=clock.now())
    Poller.objects.create(task_type="ocr", domain="east", worker="w1", polled_at=clock.now())


def found(client, term, **headers):
    return client.get(HITS, {"q": term}, headers=headers)


def test_queues_are_found_by_a_part_of_their_names(operator, polled):
    page = found(operator, "cr")

    assert "Queue ocr" in page_text(page) and "Queue east:ocr" in page_text(page)
    assert '/admin/queue/?name=east%3Aocr"' in html(page)


def test_actions_on_a_queue_are_found_by_verb(operator, polled):
    assert "Action Pause: ocr" in page_text(found(operator, "pause queue ocr"))
    assert '/admin/queue/?name=ocr#act-pause"' in html(found(operator, "pause ocr"))


def test_actions_are_not_offered_to_viewers(viewer, polled):
    assert "Action" not in page_text(found(viewer, "pause ocr"))


@pytest.mark.parametrize("term", ["pause", "pause ", "\0", "%", "x" * 5000, "'; drop table"])
def test_odd_terms_are_answered(operator, polled, term):
    assert found(operator, term).status_code == 200


@pytest.fixture
def failed_run(clock, db):
    define_task("charge", retryCount=0)
    define_workflow("checkout", simple("charge"))
    run = start_run("checkout", correlation_id="order-4711", input={"customer": {"id": "c-0244"}})
    claim_and_report("charge", "FAILED")
    return run


def test_actions_on_the_run_of_the_page_are_offered_first(operator, viewer, failed_run):
    page = f"/admin/conductor/run/{failed_run.pk}/change/"

    opened = operator.get(HITS, {"on": page})
    assert page_text(opened).startswith("Action Retry this run checkout v1 · order-4711 Action Restart this run")
    assert f'href="{page}#act-retry"' in html(opened)
    assert "Pause this run" not in page_text(operator.get(HITS, {"q": "this run", "on": page}))
    assert "this run" not in page_text(viewer.get(HITS, {"on": page}))
    assert "this run" not in page_text(operator.get(HITS, {"on": "/admin/nothing/"}))


def test_an_action_is_found_by_its_verb_and_the_key_of_a_run(operator, viewer, failed_run):
    hits = page_text(found(operator, "retry order-4711"))

    assert "Action Retry order-4711 checkout v1" in hits
    assert "Action Retry order-4711" in page_text(found(operator, f"retry {failed_run.pk[:-4]}"))
    assert "Action" not in page_text(found(operator, "pause order-4711"))
    assert "Action" not in page_text(found(viewer, "retry order-4711"))


@pytest.mark.parametrize("term", ["order-4711", "der-47"])
def test_a_failed_run_is_found_before_a_newer_one_that_completed(operator, failed_run, clock, term):
    define_workflow("refund", set_variable("refunded", done=True))
    clock.advance(seconds=1)
    assert start_run("refund", correlation_id="order-4711").status == "COMPLETED"

    assert re.findall(r"Run (\w+) v1", page_text(found(operator, term)))[:2] == ["checkout", "refund"]


def test_a_workflow_is_started_by_its_name(operator, viewer, failed_run):
    hits = found(operator, "start check")

    assert "Action Start checkout" in page_text(hits)
    assert operator.get(re.search(r'href="([^"]+/start/)"', html(hits))[1]).status_code == 200
    assert "Action" not in page_text(found(viewer, "start check"))


@pytest.mark.parametrize("term", ["c-0244", 'say "c"', "a\\b"])
def test_the_last_line_searches_the_inputs_for_the_term(operator, failed_run, term):
    start_run("checkout", input={"text": term})

    hits = html(found(operator, term))
    assert f"Search inputs for “{term}”" in page_text(found(operator, term)).replace("&quot;", '"')
    address = unescape(re.findall(r'<a href="([^"]+)"', hits)[-1])
    listed = operator.get(address).context_data["cl"].result_list
    assert len(listed) == (2 if term == "c-0244" else 1)


def test_a_query_is_offered_as_a_list(operator, failed_run):
    assert "List runs where status = FAILED" in page_text(found(operator, "status = FAILED"))


@pytest.mark.parametrize(
    ("term", "name", "address"),
    [
        ("new workflow", "New workflow", "/admin/conductor/workflowdefinition/add/"),
        ("invite", "Invite a person", "/admin/people/invite/"),
        ("approve", "Approve a task", "/admin/human-tasks/"),
        ("dark", "Dark theme", "/admin/preferences/#theme-dark"),
    ],
)
def test_commands_are_found_by_their_words(operator, viewer, term, name, address, db):
    page = found(operator, term)

    assert f"Action {name}" in page_text(page) and f'href="{address}"' in html(page)
    assert (f"Action {name}" in page_text(found(viewer, term))) == (term == "dark")


def test_failures_are_found_by_the_number_of_an_error(operator, clock, db):
    define_task("charge", retryCount=0)
    define_workflow("checkout", simple("charge"))
    start_run("checkout")
    claim_and_report("charge", "FAILED", reason="upstream answered 503")
    group_failures(10)

    page = found(operator, "503")

    assert "Failure checkout" in page_text(page)
    assert f'href="/admin/failures/{FailureGroup.objects.get().pk}/"' in html(page)


def test_a_run_found_by_its_error_has_its_correlation_id(operator, clock, db):
    define_task("charge", retryCount=0)
    define_workflow("checkout", simple("charge"))
    start_run("checkout", correlation_id="CLM-1017")
    claim_and_report("charge", "FAILED", reason="upstream answered 503")

    assert "Run checkout v1 CLM-1017 · upstream answered 503" in page_text(found(operator, "answered"))
