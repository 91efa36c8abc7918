"""The overview: what needs attention, and the activity."""

import re

import pytest
from django.contrib.auth.models import Group, User
from django.template.loader import render_to_string

from conductor_app.bulk import commands as bulk
from conductor_app.definitions import queries as definition_queries
from conductor_app.definitions.models import DurationBaseline, WorkflowDefinition
from conductor_app.failures import commands as failure_groups
from conductor_app.monitoring.pages import overview
from conductor_app.monitoring.pages import overview as overview_tiles
from conductor_app.runs.commands import repair
from conductor_app.tasks.commands.queues import pause_queue, resume_queue
from conductor_app.tasks.models import MinuteCount, Poller
from conductor_app.utils.formatting import TimeRange
from conductor_app.web.charts import ChartMarker, ChartSeries, TrendChart
from tests.builders import definition, human, simple, sub_workflow
from tests.page_text import html, page_text
from tests.scenario import Scenario, claim_and_report, define_task, define_workflow, start_run, start_run_of

PULSE = "/admin/overview-activity/live/"


def test_runs_that_are_open_for_longer_than_usual_are_listed(operator, clock):
    run = start_run_of(simple("ship"))
    DurationBaseline.objects.create(name="order", version=1, count=9, p50_ms=1000, p95_ms=2000, measured_at=clock.now())

    assert run.pk not in html(operator.get(PULSE))
    clock.advance(seconds=600)
    page = operator.get(PULSE)
    assert "Open for longer than typical" in page_text(page) and run.pk in html(page)
    assert "10 min p50 1.0 s · p95 2.0 s" in page_text(page)


@pytest.mark.parametrize("is_polled", [True, False])
def test_a_paused_queue_without_tasks_needs_attention(operator, clock, is_polled):
    if is_polled:
        Poller.objects.create(task_type="ship", domain="", worker="w1", polled_at=clock.now())
    pause_queue("ship", "olga", "the van is in repair")

    page = operator.get("/admin/")
    assert re.search(r"olga has paused ship [^:]*: no task is due – the van is in repair", page_text(page))
    assert 'href="/admin/queue/?name=ship"' in html(page)
    resume_queue("ship", "olga")
    assert "has paused" not in page_text(operator.get("/admin/"))


def test_human_tasks_for_the_user_and_the_groups_of_the_user_are_counted(operator, clock):
    User.objects.get(username="olga").groups.add(Group.objects.create(name="finance"))
    for name, user, type in (("a", "olga", "USER"), ("b", "finance", "GROUP"), ("c", "ann", "USER")):
        assignment = {"assignee": {"user": user, "userType": f"CONDUCTOR_{type}"}}
        inputs = {"__humanTaskDefinition": {"assignments": [assignment]}}
        define_workflow(name, human("approve", inputs=inputs))
        start_run(name)

    page = operator.get("/admin/")
    assert "3 human tasks are open. 1 for you 1 for your groups" in page_text(page)
    assert 'href="/admin/human-tasks/?assigned=mine"' in html(page)


def test_the_overview_and_its_updates_take_few_queries(viewer, clock, django_assert_max_num_queries):
    start_run_of(simple("ship"))
    # The permissions of the viewer are read once.
    viewer.get("/admin/")

    for path in ("/admin/", PULSE):
        with django_assert_max_num_queries(15):
            viewer.get(path)


def test_an_overview_with_everything_that_needs_attention_takes_few_queries(
    viewer, clock, settings, django_assert_max_num_queries
):
    settings.CONDUCTOR_BULK_APPROVAL_FROM = 1
    define_task("charge", retryCount=0)
    define_workflow("order", simple("charge"))
    define_workflow("review", human("approve"))
    fail_runs(("FAILED", "no funds"))
    start_run("review")
    start_run("order")
    bulk.start(bulk.BulkRequest("terminate", {"definition": "order"}), "ann")
    clock.advance(seconds=600)
    viewer.get("/admin/")  # The first request after a minute stores the use of the session.

    for path in ("/admin/", "/admin/overview-attention/", PULSE):
        with django_assert_max_num_queries(17):
            page = page_text(viewer.get(path))
        if path != PULSE:
            assert "1 human task is open" in page and "1 run blocked" in page and "no funds" in page
            assert "A bulk operation of ann, terminate many runs, has been waiting for approval since" in page


def test_the_chart_of_a_day_has_the_results_of_its_hours(operator, clock):
    define_task("charge", retryCount=0)
    start_run_of(simple("charge"))
    claim_and_report("charge", "FAILED", reason="no funds")
    clock.advance(seconds=7_200)
    start_run("order")
    claim_and_report("charge")
    page = operator.get(PULSE)

    assert "Ended runs by result Completed 1 Failed 1 Terminated 0" in page_text(page)
    since = clock.now() - clock.now() % 3_600_000 - 2 * 3_600_000
    assert f"ended_since={since}&amp;ended_before={since + 3_600_000}" in html(page)
    rows = [row["values"] for row in activity_chart(page).bars]
    assert rows[-3] == ["0", "1", "0"] and rows[-1] == ["1", "0", "0"]


@pytest.mark.parametrize(("name", "count"), [("1h", 60), ("7d", 56), ("30d", 30), ("?", 60)])
def test_the_range_of_the_charts_is_part_of_the_address(operator, clock, name, count, django_assert_max_num_queries):
    start_run_of(simple("charge"))
    claim_and_report("charge")
    with django_assert_max_num_queries(15):
        page = operator.get(PULSE, {"range": name, "rev": "old"})

    assert len(activity_chart(page).bars) == count and activity_chart(page).series[0].total == 1
    assert 'href="?range=7d"' in html(page)


def activity_chart(page) -> TrendChart:
    return activity_charts(page)[0]


def activity_charts(page) -> list[TrendChart]:
    [activity] = [tile for column in page.context["columns"] for tile in column if "charts" in tile.context]
    return activity.context["charts"]


def test_the_overview_has_the_durations_of_runs_and_the_releases_in_its_range(operator, clock):
    define_workflow("order", simple("charge"))
    for seconds in (2, 4, 60):
        start_run("order")
        clock.advance(seconds=seconds)
        claim_and_report("charge", worker="w1@41")
    clock.advance(seconds=60)
    define_workflow("order", simple("charge"), version=2)
    for worker, at in (("w1@41", clock.now() - 120_000), ("w2@42", clock.now())):
        polled = {"polled_at": clock.now()}
        Poller.objects.update_or_create(task_type="charge", worker=worker, defaults=polled)
        MinuteCount.objects.update_or_create(kind=MinuteCount.WORKER, name=worker, at=at)

    page = operator.get(PULSE)

    results, durations = activity_charts(page)
    assert "Durations of completed runs p95 p50" in page_text(page)
    assert [marker.label for marker in results.markers] == ["order v2", "build 42"] and durations.markers
    shown = [bar["values"] for bar in durations.bars if not bar["is_empty"]]
    assert shown[0] == ["4.0 s", "2.0 s"] and shown[1] == ["1 min", "1 min"]


def test_a_part_of_a_bar_leads_to_the_runs_that_it_counts(operator, clock):
    define_task("charge", retryCount=0)
    start_run_of(simple("charge"))
    claim_and_report("charge", "FAILED", reason="no funds")
    start_run("order")
    claim_and_report("charge")

    parts = [part for bar in activity_chart(operator.get(PULSE)).bars for part in bar["parts"]]

    assert [part["css"] for part in parts] == ["succeeded", "failed"]
    for part, status in zip(parts, ("COMPLETED", "FAILED"), strict=True):
        assert [run.status for run in operator.get(part["link"]).context["cl"].result_list] == [status]


def test_each_number_of_a_chart_is_that_of_the_list_to_which_it_leads(operator, clock):
    define_task("charge", retryCount=0)
    define_workflow("order", simple("charge"))
    for statuses in (["COMPLETED"], ["FAILED"], ["FAILED", "COMPLETED"], ["FAILED", "FAILED"], ["FAILED", ""], [""]):
        run = start_run("order")
        for number, status in enumerate(filter(None, statuses)):
            if number:
                repair.retry(run.pk, "ann")
            claim_and_report("charge", status)
        if statuses == ["FAILED", ""]:
            repair.retry(run.pk, "ann")
            claim_and_report("charge", "COMPLETED")
    workflow = WorkflowDefinition.objects.get(name="order")
    by_start = operator.get(f"/admin/workflows/{workflow.pk}/history/").context["charts"][0]
    by_end = activity_chart(operator.get(PULSE))

    for chart in (by_start, by_end):
        [bar] = [bar for bar in chart.bars if bar["parts"]]
        for part, count in zip(bar["parts"], (int(value) for value in bar["values"] if value != "0"), strict=True):
            if part["link"]:
                assert operator.get(part["link"]).context["cl"].result_count == count, part
    assert "repaired" in {part["css"] for part in bar["parts"] if not part["link"]}


def test_releases_at_nearly_the_same_time_share_a_number_and_are_listed_below_the_chart(operator, clock):
    time_range = TimeRange.aligned("24h", clock.now())
    markers = [ChartMarker(clock.now() - ago, f"order v{ago}") for ago in (1, 60_000, 8 * 3_600_000)]
    chart = TrendChart("Runs", time_range, [ChartSeries("Runs", "done", [1] * time_range.count)], markers)

    first, second = chart.shown_markers
    shown = render_to_string("ops/web/chart.html", {"chart": chart})

    assert (first["labels"], second["labels"]) == (["order v28800000"], ["order v60000", "order v1"])
    assert f"{first['time']}: order v28800000" in shown and f"{second['time']}: order v60000, order v1" in shown


def test_the_range_fits_the_age_of_the_runs(operator, clock):
    def chosen() -> str:
        return activity_chart(operator.get(PULSE)).time_range.name

    assert chosen() == "24h"
    start_run_of(simple("charge"))
    claim_and_report("charge")
    assert chosen() == "1h"
    for seconds, name in ((7_200, "24h"), (3 * 86_400, "7d"), (10 * 86_400, "30d")):
        clock.advance(seconds=seconds)
        assert chosen() == name
    start_run("order")
    claim_and_report("charge")
    assert chosen() == "24h"


def test_recently_slow_definitions_come_first(operator, clock):
    define_workflow("order", simple("charge"))
    for _ in range(3):
        start_run("order")
        clock.advance(seconds=10)
        claim_and_report("charge")
    DurationBaseline.objects.create(name="order", version=1, count=9, p50_ms=1000, p95_ms=2000, measured_at=clock.now())

    assert "order v1 3 runs 10.0 s p50 1.0 s · p95 2.0 s 10 ×" in page_text(operator.get(PULSE))


def test_a_definition_whose_runs_waited_for_people_is_not_slow(operator, clock):
    scenario = Scenario(clock, human("ask"), simple("charge"))
    clock.advance(seconds=600)
    scenario.reports("ask")
    claim_and_report("charge")
    DurationBaseline.objects.create(name="order", version=1, count=9, p50_ms=1000, p95_ms=2000, measured_at=clock.now())

    assert "baseline" not in page_text(operator.get(PULSE))


def test_a_definition_that_is_not_slow_and_no_overdue_run_show_no_table(operator, clock):
    define_workflow("order", simple("charge"))
    start_run("order")
    clock.advance(seconds=10)
    claim_and_report("charge")
    DurationBaseline.objects.create(name="order", version=1, count=9, p50_ms=7000, p95_ms=9000, measured_at=clock.now())

    page = page_text(operator.get(PULSE))
    assert "baseline" not in page and "typical" not in page


def test_a_failing_tile_displays_the_request_id_without_affecting_others(operator, clock, monkeypatch, caplog):
    def broken(*facts):
        raise RuntimeError("the disk burns")

    start_run_of(simple("ship"))
    monkeypatch.setattr(overview_tiles, "results_chart", broken)
    monkeypatch.setattr(overview, "count_open_work", broken)
    page = operator.get(PULSE)
    front = operator.get("/admin/")

    assert page.status_code == front.status_code == 200
    assert "Activity could not be displayed" in page_text(page)
    assert page.headers["X-Request-Id"] in page_text(page)
    assert "Key figures could not be displayed" in page_text(front)
    assert "No worker has ever polled ship" in page_text(front)
    assert "the disk burns" not in html(page) and "the disk burns" in caplog.text


def fail_runs(*outcomes: tuple[str, str], worker: str = "w7") -> None:
    """Start a run for each outcome and reason, report it, and group the failures."""
    for outcome, reason in outcomes:
        start_run("order")
        claim_and_report("charge", outcome, worker, reason=reason)
    failure_groups.group_failures(100)


def test_failures_are_ranked_by_lost_runs_and_recovered_ones_are_folded(viewer, clock, django_assert_max_num_queries):
    define_task("charge", retryCount=1, retryDelaySeconds=0)
    define_workflow("order", simple("charge"))
    fail_runs(*[("FAILED_FOR_GOOD", "card refused")] * 3)
    clock.advance(seconds=60)
    fail_runs(("FAILED_FOR_GOOD", "no funds"))
    fail_runs(("FAILED", "gateway is down"))
    claim_and_report("charge")
    failure_groups.group_failures(100)

    viewer.get("/admin/")  # The first request after a minute stores the use of the session.
    with django_assert_max_num_queries(15):
        page = page_text(viewer.get("/admin/"))

    assert (
        page.index("card refused")
        < page.index("no funds")
        < page.index("1 error was retried, and no run is failed now")
    )
    assert "3 runs still failed 60 % of ended runs" in page and "affected" not in page.partition("retried")[0]
    assert "1 run still failed 20 % of ended runs" in page
    assert "gateway is down" in page.split("no run is failed now")[1] and "New" in page


def test_runs_that_failed_because_of_a_sub_workflow_are_counted_beside_the_groups(operator, clock):
    scenario = Scenario(clock, sub_workflow("s"), others=[definition(simple("charge"), name="child")])
    scenario.worker("charge").fail_terminally("card refused")
    failure_groups.group_failures(100)

    page = page_text(operator.get("/admin/"))

    assert "1 run failed because a sub-workflow failed. It is in no group." in page and "card refused" in page


def test_a_queue_without_workers_has_the_number_of_blocked_runs(operator, clock):
    start_run_of(simple("ship"))
    start_run("order")
    clock.advance(seconds=120)

    front = html(operator.get("/admin/"))

    assert "2 runs blocked" in page_text(operator.get("/admin/overview-attention/"))
    assert 'data-live="/admin/overview-attention/live/"' in front and 'data-live-for="attention"' in front


def test_a_failing_workflow_has_one_rate_on_the_overview_and_in_the_list_of_workflows(operator, clock):
    define_task("charge", retryCount=0)
    start_run_of(simple("charge"))
    claim_and_report("charge", "FAILED", reason="no funds")
    failure_groups.group_failures(1_000)
    for _number in range(3):
        start_run("order")

    assert "1 run still failed 100 % of ended runs" in page_text(operator.get("/admin/"))
    assert "100 %" in page_text(operator.get("/admin/conductor/workflowdefinition/"))


def test_the_share_of_a_cause_is_of_all_ended_runs_of_a_day_although_the_health_reads_the_newest(
    operator, clock, monkeypatch
):
    monkeypatch.setattr(definition_queries, "MAX_RUNS", 2)
    define_task("charge", retryCount=0)
    define_workflow("order", simple("charge"))
    fail_runs(("FAILED", "no funds"))
    for _number in range(4):
        start_run("order")
        claim_and_report("charge")
    failure_groups.group_failures(100)

    assert "1 run still failed 20 % of ended runs" in page_text(operator.get("/admin/"))
