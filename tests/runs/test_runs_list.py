"""The list of runs: found in seconds, acted on together."""

import json
import re
from html import unescape

import pytest
from django.urls import reverse

from conductor_app.alerts.models import SavedView
from conductor_app.bulk import selections
from conductor_app.bulk import selections as scanning
from conductor_app.db import keyset_pages
from conductor_app.definitions.models import DurationBaseline
from conductor_app.runs.commands import control, repair
from conductor_app.runs.models import Run
from conductor_app.web import pages as paginator
from tests.builders import simple, sub_workflow
from tests.page_text import html, page_text, run_url
from tests.scenario import claim_and_report, claim_next, define_task, define_workflow, start_run, start_run_of

LIST = "/admin/conductor/run/"


@pytest.fixture
def orders(clock, db):
    define_task("charge", retryCount=0)
    define_workflow("order", simple("charge"))


def test_a_row_shows_status_definition_correlation_id_and_why_the_run_ended(operator, orders):
    shipping = start_run_of(simple("ship"), name="shipping")
    control.terminate_run(shipping.pk, "bob", "ordered twice")
    start_run("order", correlation_id="order-4711")
    claim_and_report("charge", "FAILED", reason="502 from gateway\nTraceback …")

    page = page_text(operator.get(LIST))

    assert "Failed" in page and "order v1" in page and "order-4711" in page
    assert "charge 502 from gateway" in page and "Traceback" not in page, "the failing task with its reason"
    assert "ordered twice" in page, "a terminated run displays its reason"


def test_a_run_is_found_by_id_prefix_correlation_id_and_definition(operator, orders):
    run = start_run("order", correlation_id="order-4711")
    define_workflow("other", simple("pack"))
    other = start_run("other")

    for term in (run.pk, run.pk[:-3], "order-4711", "order", "ORD"):
        page = html(operator.get(LIST, {"q": term}))

        assert run.pk in page, term
        assert other.pk not in page, term


def test_runs_are_filtered_by_status_definition_and_start(operator, orders, clock):
    old = start_run("order")
    clock.advance(seconds=2 * 86_400)
    define_workflow("other", simple("pack"))
    paused, running = start_run("other"), start_run("order")
    control.pause_run(paused.pk, "ann")

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


def test_the_list_takes_few_queries_for_any_length(operator, orders, django_assert_max_num_queries):
    for _ in range(30):
        start_run("order")
        claim_and_report("charge", "FAILED", reason="no funds")

    with django_assert_max_num_queries(12):
        operator.get(LIST)
    with django_assert_max_num_queries(12):
        operator.get(LIST, {"q": "order", "status": "FAILED"})


def test_the_list_of_open_runs_takes_few_queries_for_any_user(viewer, orders, django_assert_max_num_queries):
    limits = {"concurrentExecLimit": 1, "rateLimitPerFrequency": 9, "rateLimitFrequencyInSeconds": 60}
    define_task("charge", retryCount=0, **limits)
    start_run("order")
    claim_and_report("charge", "FAILED", reason="no funds")
    for _ in range(60):
        start_run("order")

    viewer.get(LIST)  # permissions are loaded once in a process
    with django_assert_max_num_queries(15):
        page = html(viewer.get(LIST))
    assert "order" in page and 'name="action"' not in page, "a viewer sees the list without actions"


def test_a_row_is_named_by_a_readable_key_and_its_id_can_be_copied(operator, orders):
    keyed, plain = start_run("order", input={"customer": "ann"}), start_run("order")

    listed = operator.get(LIST)

    assert "ann order v1" in page_text(listed) and f"…{plain.pk[-4:]} order v1" in page_text(listed)
    assert keyed.pk not in page_text(listed) and f'data-copy="{keyed.pk}"' in html(listed)


def test_a_row_of_an_open_run_names_its_current_step(operator, orders, clock):
    define_task("charge", concurrentExecLimit=1)
    start_run("order")
    claim_next("charge", "w7")
    clock.advance(seconds=5)
    start_run("order")
    clock.advance(seconds=600)

    page = page_text(operator.get(LIST))

    assert "charge limit 1 of 1 · 10 min" in page and "charge on w7 · 10 min 5 s" in page


def test_sub_workflows_are_hidden_by_one_filter(operator, clock, db):
    define_workflow("child", simple("pack"))
    define_workflow("order", sub_workflow("sub", "child", version=1))
    start_run("order")

    def names(**query):
        return [run.name for run in operator.get(LIST, query).context_data["cl"].result_list]

    assert sorted(names()) == ["child", "order"] and names(top_level="yes") == ["order"]
    assert "Top level only yes" in page_text(operator.get(LIST, {"top_level": "yes"}))
    assert "Invalid value of the filter top_level" in page_text(operator.get(LIST, {"top_level": "no"}))


def test_a_range_of_starts_is_picked_in_the_zone_of_the_user(operator, orders, clock):
    run = start_run("order")
    bounds = {"started_since": str(run.created_at - 1000), "started_before": "2100-01-01T00:00"}

    page = html(operator.get(LIST, bounds))

    assert run.pk in page and "Custom range" in page
    picked = re.search(r'name="started_since"\s+value="([^"]+)"', page)[1]
    assert run.pk in html(operator.get(LIST, {"started_since": picked}))
    assert run.pk not in html(operator.get(LIST, {"started_before": picked}))
    assert operator.get(LIST, {"started_since": "9" * 15, "started_before": "x"}).status_code == 200


def test_views_are_tabs_with_counts(operator, orders):
    start_run("order", correlation_id="a-1")
    SavedView.objects.create(name="Cards", owner="olga", selection={"definition": "order"}, created_at=0)
    SavedView.objects.create(name="Broken", owner="olga", selection={"label": "x", "dance": 1}, created_at=0)
    SavedView.objects.create(name="Private", owner="ann", created_at=0)

    tabs = page_text(operator.get(f"{LIST}views/"))
    assert "All 1 Running 1 Failed in 24 h 0 My starts 0" in tabs and "Cards 1" in tabs and "Private" not in tabs

    current = 'aria-current="page">'
    assert current in html(operator.get(LIST)).split("Failed in 24 h")[0]
    shown = html(operator.get(LIST, {"name": "order"}))
    assert re.search(r'aria-current="page">\s*Cards', shown) and "Save as a view" not in shown
    assert "Save as a view" in html(operator.get(LIST, {"name": "order", "status": "FAILED"}))


@pytest.mark.parametrize("reopen", [repair.retry, repair.restart])
def test_a_failure_of_the_last_day_stays_listed_after_its_run_was_reopened(operator, orders, clock, reopen):
    run = start_run("order", correlation_id="order-4711")
    clock.advance(seconds=2 * 86_400)
    claim_and_report("charge", "FAILED")
    assert "Failed in 24 h 1 My starts" in page_text(operator.get(f"{LIST}views/"))

    reopen(run.pk, "ann")
    claim_and_report("charge")

    assert "Failed in 24 h 1, 0 still failed" in page_text(operator.get(f"{LIST}views/"))
    assert "Completed retried" in page_text(operator.get(LIST, {"failed": "24h"}))
    clock.advance(seconds=86_500)
    assert "order-4711" not in page_text(operator.get(LIST, {"failed": "24h"}))


def test_the_actions_on_a_selection_are_buttons_of_the_list(operator, orders):
    run = start_run("order")

    page = html(operator.get(LIST))
    buttons = re.findall(r'name="action"\s+value="(\w+)"', page)

    assert buttons == ["retry", "pause", "resume", "terminate", "label", "restart", "unlabel"]
    pressed = {"index": "0", "select_across": "0", "action": "pause", "_selected_action": run.pk}
    assert operator.post(LIST, pressed)["Location"] == f"/admin/bulk/plan/?ids={run.pk}&action=pause"


def test_counting_stops_early(operator, orders, monkeypatch):
    monkeypatch.setattr(keyset_pages, "MAX_COUNTED", 2)
    for _ in range(4):
        start_run("order")

    assert "2+ runs" in page_text(operator.get(LIST))


def test_an_empty_list_explains_runs_and_how_to_start_one(operator):
    page = page_text(operator.get(LIST))

    assert "No runs A run is one execution of a workflow" in page and "Get started" in page


def test_a_search_without_results_can_be_cleared(operator, orders):
    start_run("order")

    page = page_text(operator.get(LIST, {"q": "nonsense"}))
    assert "No results" in page and "Search inputs for “nonsense”" in page


@pytest.mark.parametrize(("most", "said"), [(2, "there are 2."), (1, "there are more than 1.")])
def test_an_empty_filter_states_the_number_of_runs_without_it(operator, orders, monkeypatch, most, said):
    start_run("order")
    start_run("order")
    monkeypatch.setattr(paginator, "MAX_COUNTED", most)

    assert f"Without the filter {said}" in page_text(operator.get(LIST, {"status": "TIMED_OUT"}))


def test_runs_cannot_be_added_changed_or_deleted_by_hand(operator, orders):
    run = start_run("order")

    assert operator.get(f"{LIST}add/").status_code == 403
    assert operator.post(reverse("admin:conductor_run_delete", args=[run.pk]), {"post": "yes"}).status_code == 403


def test_an_invalid_run_id_is_not_found(operator):
    assert operator.get("/admin/conductor/run/nothing/change/").status_code == 404


def test_the_list_requires_permission_to_view_runs(client, django_user_model):
    client.force_login(django_user_model.objects.create_user("nobody", is_staff=True))

    assert client.get(LIST).status_code == 403


def test_a_rate_limited_run_names_its_limit(operator, clock):
    define_workflow("order", simple("ship"), rateLimitConfig={"rateLimitKey": "all", "concurrentExecLimit": 1})
    start_run("order"), start_run("order")

    assert "workflow limit reached" in page_text(operator.get(LIST))


def test_a_query_of_the_api_works_in_the_search_box(operator, orders):
    failed = start_run("order", correlation_id="order-4711", input={"size": 5})
    claim_and_report("charge", "FAILED", reason="no funds")
    other = start_run("order", input={"size": 5})

    for query in ["status = FAILED", "NOT status = RUNNING AND input.size > 3", "(correlationId = 'order-4711')"]:
        page = html(operator.get(LIST, {"q": query}))

        assert failed.pk in page, query
        assert other.pk not in page, query


def test_an_invalid_query_is_reported_with_its_position(operator, orders):
    run = start_run("order")

    page = operator.get(LIST, {"q": "status = "})

    assert "at character 9, at the end: expected a value" in page_text(page)
    assert run.pk not in html(page)
    assert "No results" not in page_text(page) and "0 runs" not in page_text(page)


def test_words_that_resemble_a_query_are_searched_as_text(operator, orders):
    run = start_run("order", correlation_id="refund in progress")

    assert run.pk in html(operator.get(LIST, {"q": "refund in progress"}))


def test_each_field_of_the_bar_narrows_the_list(operator, orders, clock):
    named = {"failed": start_run("order", correlation_id="o-1")}
    claim_and_report("charge", "FAILED", reason="502 from gateway")
    named["done"] = start_run("order", input={"size": 5})
    clock.advance(seconds=10)
    claim_and_report("charge")
    named["running"] = start_run("order", input={"size": 6})

    for asked, expected in [
        ({"status": "FAILED"}, "failed"),
        ({"status": ["FAILED", "RUNNING"]}, "failed running"),
        ({"status": "FAILED,COMPLETED"}, "failed done"),
        ({"version": "1", "name": "order"}, "failed running done"),
        ({"version": "7"}, ""),
        ({"correlation_id": "o-1"}, "failed"),
        ({"started_by": "ann"}, "failed running done"),
        ({"started_by": "bob"}, ""),
        ({"task": "charge"}, "failed running done"),
        ({"task": "charge:FAILED"}, "failed"),
        ({"task": "charge:ACTIVE"}, "running"),
        ({"error": "from gate"}, "failed"),
        ({"inside": "input.size=5"}, "done"),
        ({"least": "5 s"}, "done"),
        ({"most": "1 min"}, "failed done"),
        ({"least": "1 h"}, ""),
        ({"started_since": "2027-03-01T12:00"}, "failed running done"),
        ({"started_before": "2027-03-01T11:59:59+00:00"}, ""),
        ({"ended_since": "2027-03-01T12:00:05"}, "done"),
    ]:
        page = html(operator.get(LIST, asked))
        assert {name for name, run in named.items() if run.pk in page} == set(expected.split()), asked


def test_invalid_filters_are_reported_and_find_nothing(operator, orders):
    run = start_run("order")

    for asked in [
        {"started_since": "yesterday"}, {"least": "a while"}, {"version": "one"}, {"task": "charge:BROKEN"},
        {"inside": "colour=red"}, {"status": "SAD"}, {"failure_group": "x"}, {"most": "9223372036854775807"},
        {"least": "inf"}, {"least": "nan"}, {"least": "-1"},
    ]:  # fmt: skip
        page = operator.get(LIST, asked)
        assert 'class="error"' in html(page), asked
        assert run.pk not in html(page), asked


def test_every_active_filter_is_a_removable_chip(operator, orders):
    start_run("order")

    page = html(operator.get(LIST, {"status": ["FAILED", "RUNNING"], "name": "order"}))

    assert 'href="?name=order&amp;status=RUNNING"' in page
    assert 'href="?status=FAILED&amp;status=RUNNING"' in page


def test_pages_continue_after_the_previous_one_and_back(operator, orders, clock, monkeypatch):
    monkeypatch.setattr(keyset_pages, "SIZE", 2)
    monkeypatch.setattr(keyset_pages.keyset_page, "__defaults__", ("", "", 2))
    begun = []
    for _ in range(5):
        clock.advance(seconds=1)
        begun.insert(0, start_run("order").pk)

    def shown(address):
        page = html(operator.get(address))
        links = dict(zip(("prev", "next"), (_link(page, "prev"), _link(page, "next")), strict=True))
        return [pk for pk in begun if pk in page], links

    first, links = shown(LIST)
    second, links = shown(LIST + links["next"])
    third, links = shown(LIST + links["next"])
    back, _ = shown(LIST + links["prev"])
    assert (first, second, third, back) == (begun[:2], begun[2:4], begun[4:], begun[2:4])
    assert links["next"] == ""


def _link(page, rel):
    found = re.search(rf'href="([^"]*)" rel="{rel}"', page)
    return unescape(found.group(1)) if found else ""


def test_the_filtered_list_is_downloadable(operator, orders):
    failed = start_run("order", correlation_id="=cmd()")
    claim_and_report("charge", "FAILED", reason="502 from gateway")
    start_run("order")

    lines = b"".join(operator.get(f"{LIST}export.csv", {"status": "FAILED"})).decode().splitlines()
    rows = json.loads(b"".join(operator.get(f"{LIST}export.json", {"status": "FAILED"})))

    assert len(lines) == 2 and lines[1].startswith(f"{failed.pk},order,1,FAILED,'=cmd()")
    assert [(row["id"], row["failed_task"], row["reason"]) for row in rows] == [
        (failed.pk, "charge", "502 from gateway")
    ]
    assert json.loads(b"".join(operator.get(f"{LIST}export.json", {"version": "9"}))) == []


def test_a_download_requires_permission_to_view_runs(client, django_user_model):
    client.force_login(django_user_model.objects.create_user("nobody", is_staff=True))

    assert client.get(f"{LIST}export.csv").status_code == 403
    assert client.get(f"{LIST}news/").status_code == 403
    assert client.post(f"{LIST}columns/").status_code == 403


def test_the_selected_columns_are_remembered(operator, orders):
    start_run("order", correlation_id="order-4711")

    operator.post(f"{LIST}columns/", {"column": ["ended", "started_by"], "query": "status=RUNNING"})
    page = html(operator.get(LIST))

    assert "column-ended" in page and "column-started_by" in page and "column-correlation" not in page


def test_new_runs_are_announced_without_changing_the_list(operator, orders, clock):
    start_run("order")
    page = html(operator.get(LIST))
    clock.advance(seconds=1)
    start_run("order")

    address = unescape(re.search(r'data-live="([^"]*/news/[^"]*)"', page).group(1))
    assert "Show 1 new" in page_text(operator.get(address))


def test_an_unusually_slow_run_is_marked(operator, orders, clock):
    DurationBaseline.objects.create(
        name="order", version=1, ref="", count=9, p50_ms=1000, p95_ms=2000, measured_at=clock.now()
    )
    start_run("order")
    clock.advance(seconds=60)

    page = html(operator.get(LIST))

    assert "60 ×" in page
    assert "typical duration: p50 1.0 s · p95 2.0 s (9 samples)" in page
    assert "Typical p50 1.0 s · p95 2.0 s" in page_text(operator.get(run_url(Run.objects.latest("pk"))))


def test_a_filter_limited_to_the_newest_runs_states_that_and_offers_alternatives(operator, orders, monkeypatch, clock):
    monkeypatch.setattr(scanning, "REASONS", 1)
    monkeypatch.setattr(scanning, "SEARCHED_ROWS", 1)
    found = {}
    for reason in ("no funds", "no card", "no funds"):
        found[reason] = start_run("order")
        claim_and_report("charge", "FAILED", reason=reason)
        clock.advance(seconds=10)

    page = operator.get(LIST, {"error": "no", "name": "order"})

    assert "Error contains was searched among the newest 1 runs" in page_text(page)
    assert found["no card"].pk in html(page)
    [older] = re.findall(r'href="([^"]*)">Search earlier runs', html(page))
    [quicker] = re.findall(r'href="([^"]*)">Search all failures for this error', html(page))
    assert "2 runs" not in page_text(operator.get(LIST + unescape(older)))
    assert "view=all&q=no&definition=order" in unescape(quicker)


def test_a_filter_over_all_runs_states_no_limit(operator, orders):
    start_run("order")

    assert "was looked for among the newest" not in page_text(operator.get(LIST, {"error": "no", "task": "charge"}))


def test_scanned_runs_are_those_matching_the_other_filters(orders, monkeypatch, clock):
    monkeypatch.setattr(scanning, "SEARCHED_ROWS", 1)
    define_workflow("other", simple("charge"))
    wanted = start_run("other")
    for _ in range(3):
        clock.advance(seconds=10)
        start_run("order")

    assert list(selections.selected_runs({"task": "charge", "definition": "other"})) == [wanted]


def test_among_very_many_ended_runs_the_newest_are_found_by_their_starts(operator, orders, monkeypatch, clock):
    monkeypatch.setattr(selections, "SEARCHED_ROWS", 1)
    ended = []
    for _ in range(3):
        ended.append(start_run("order"))
        clock.advance(seconds=10)
        claim_and_report("charge", "FAILED")
    since = {"ended_since": str(ended[1].created_at + 1)}
    start_run("order")

    listed = operator.get(LIST, since).context["cl"]

    assert [run.pk for run in listed.result_list] == [ended[2].pk, ended[1].pk]
    assert listed.result_count == 2
    assert 'ended_at" >=' not in str(listed.queryset.query) and 'ended_at" >=' in str(listed.counted.query)
    assert len(operator.get(LIST, {**since, "sort": "ended"}).context["cl"].result_list) == 2
