"""The list of runs: found in seconds, acted on together."""

import pytest
from django.urls import reverse

from conductor_app.admin import paginator
from conductor_app.engine import runs
from tests.insight.situations import define, define_task, start, started, step, work

from .reading import html, words

LIST = "/admin/conductor/run/"


@pytest.fixture
def orders(clock, db):
    define_task("charge", retryCount=0)
    define("order", step("charge"))


def test_a_row_shows_status_definition_correlation_id_and_the_failing_task_with_its_reason(operator, orders):
    start("order", correlation_id="order-4711")
    work("charge", "FAILED", reason="502 from gateway\nTraceback …")

    page = words(operator.get(LIST))

    assert "Failed" in page and "order v1" in page and "order-4711" in page
    assert "charge 502 from gateway" in page and "Traceback" not in page


@pytest.mark.parametrize("term", ["{id}", "{prefix}", "order-4711", "order", "ORD"])
def test_a_run_is_found_by_id_prefix_correlation_id_and_definition(operator, orders, term):
    run = start("order", correlation_id="order-4711")
    define("other", step("pack"))
    other = start("other")

    page = html(operator.get(LIST, {"q": term.format(id=run.pk, prefix=run.pk[:-3])}))

    assert run.pk in page
    assert other.pk not in page


def test_runs_are_filtered_by_status_definition_and_start(operator, orders, clock):
    old = start("order")
    clock.advance(seconds=2 * 86_400)
    define("other", step("pack"))
    paused, running = start("other"), start("order")
    runs.pause(paused.pk, "ann")

    def listed(**asked):
        page = html(operator.get(LIST, asked))
        return {
            run
            for run in ("old", "paused", "running")
            if {"old": old, "paused": paused, "running": running}[run].pk in page
        }

    assert listed(status="PAUSED") == {"paused"}
    assert listed(name="order") == {"old", "running"}
    assert listed(started="24h") == {"paused", "running"}
    assert listed(started="7d", status="RUNNING") == {"old", "running"}


def test_the_list_costs_the_same_few_queries_however_long_it_is(operator, orders, django_assert_max_num_queries):
    for _ in range(30):
        start("order")
        work("charge", "FAILED", reason="no funds")

    with django_assert_max_num_queries(12):
        operator.get(LIST)
    with django_assert_max_num_queries(12):
        operator.get(LIST, {"q": "order", "status": "FAILED"})


def test_counting_stops_early(operator, orders, monkeypatch):
    monkeypatch.setattr(paginator, "MOST_COUNTED", 2)
    for _ in range(4):
        start("order")

    assert "2+ runs" in words(operator.get(LIST))


def test_an_empty_list_says_what_a_run_is_and_how_to_start_one(operator):
    page = words(operator.get(LIST))

    assert "No run yet" in page and "make demo" in page


def test_a_search_without_a_hit_offers_to_clear_it(operator, orders):
    start("order")

    assert "Nothing matches" in words(operator.get(LIST, {"q": "nonsense"}))


def test_a_viewer_sees_the_list_without_actions(viewer, orders):
    start("order")

    page = html(viewer.get(LIST))

    assert "order" in page and 'name="action"' not in page


def test_runs_cannot_be_added_changed_or_deleted_by_hand(operator, orders):
    run = start("order")

    assert operator.get(f"{LIST}add/").status_code == 403
    assert operator.post(reverse("admin:conductor_run_delete", args=[run.pk]), {"post": "yes"}).status_code == 403


def test_an_address_that_names_no_run_answers_not_found(operator):
    assert operator.get("/admin/conductor/run/nothing/change/").status_code == 404


def test_the_list_is_closed_to_those_who_may_not_see_runs(client, django_user_model):
    client.force_login(django_user_model.objects.create_user("nobody", is_staff=True))

    assert client.get(LIST).status_code == 403


def test_a_held_run_says_that_a_limit_holds_it(operator, clock):
    define("order", step("ship"), rateLimitConfig={"rateLimitKey": "all", "concurrentExecLimit": 1})
    start("order"), start("order")

    assert "held by the workflow's limit of runs" in words(operator.get(LIST))


def test_a_terminated_run_shows_the_reason_that_was_given(operator, orders):
    run = started(step("ship"), name="shipping")
    runs.terminate(run.pk, "bob", "ordered twice")

    assert "ordered twice" in words(operator.get(LIST))


@pytest.mark.parametrize(
    "query", ["status = FAILED", "NOT status = RUNNING AND input.size > 3", "(correlationId = 'order-4711')"]
)
def test_a_query_of_the_api_works_in_the_search_box(operator, orders, query):
    failed = start("order", correlation_id="order-4711", input={"size": 5})
    work("charge", "FAILED", reason="no funds")
    other = start("order", input={"size": 5})

    page = html(operator.get(LIST, {"q": query}))

    assert failed.pk in page
    assert other.pk not in page


def test_a_query_that_cannot_be_understood_says_where(operator, orders):
    run = start("order")

    page = operator.get(LIST, {"q": "status = "})

    assert "at character 9, the end: expected a value" in words(page)
    assert run.pk not in html(page)


def test_words_that_look_a_little_like_a_query_are_looked_for(operator, orders):
    run = start("order", correlation_id="refund in progress")

    assert run.pk in html(operator.get(LIST, {"q": "refund in progress"}))
