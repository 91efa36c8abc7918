"""The list of workflow definitions shows usage, failures and findings."""

import pytest

from conductor_app.definitions.models import WorkflowDefinition
from conductor_app.definitions.queries import version_history
from conductor_app.runs.commands import repair
from tests.builders import simple, step_of, sub_workflow
from tests.page_text import html, page_text
from tests.scenario import claim_and_report, claim_next, define_task, define_workflow, start_run

WORKFLOWS = "/admin/conductor/workflowdefinition/"


@pytest.fixture(autouse=True)
def rows(clock, db):
    """Use the database."""


def catalog_entry(client, name="order"):
    found = client.get(WORKFLOWS).context["cl"].result_list
    return next(row.catalog_entry for row in found if row.name == name)


def test_only_the_newest_versions_are_listed_by_default(operator):
    define_workflow("order", simple("ship"))
    define_workflow("order", simple("ship"), version=2)

    assert [row.version for row in operator.get(WORKFLOWS).context["cl"].result_list] == [2]
    assert len(operator.get(f"{WORKFLOWS}?versions=all").context["cl"].result_list) == 2


def test_runs_of_the_last_day_are_counted_with_their_failure_rate(operator, clock):
    define_task("ship", retryCount=0)
    define_workflow("order", simple("ship"))
    for outcome in ("COMPLETED", "COMPLETED", "COMPLETED", "FAILED"):
        start_run("order")
        claim_and_report("ship", outcome)

    health = catalog_entry(operator).health

    assert (health.runs, health.failure_percent) == (4, 25)
    assert "25 %" in page_text(operator.get(WORKFLOWS))
    clock.advance(seconds=25 * 3600)
    assert catalog_entry(operator).health.runs == 0


def test_list_and_versions_show_the_same_failure_rate_and_a_retry_does_not_lower_it(operator, clock):
    define_task("ship", retryCount=0)
    define_workflow("order", simple("ship"))
    for outcome in ("COMPLETED", "COMPLETED", "COMPLETED", "FAILED"):
        run = start_run("order")
        claim_and_report("ship", outcome)
    repair.retry(run.pk, "olga")
    claim_and_report("ship")
    clock.advance(seconds=25 * 3600)
    start_run("order")
    assert [each.health.ended for each in version_history("order")] == [0]
    clock.advance(seconds=-2 * 3600)

    [version] = version_history("order")

    assert catalog_entry(operator).health.failure_percent == version.health.failure_percent == 25


def test_an_unused_definition_is_flagged(operator):
    define_workflow("order", simple("ship"))
    define_workflow("shop", sub_workflow("order", "order"))

    assert "unused" not in catalog_entry(operator).flags and catalog_entry(operator).used_by == 1
    assert catalog_entry(operator, "shop").flags["unused"] == "No workflow or schedule starts it, and it has never run."


def test_a_recently_run_definition_is_not_unused(operator, clock):
    define_workflow("order", simple("ship"))
    start_run("order")

    assert "unused" not in catalog_entry(operator).flags
    clock.advance(seconds=31 * 86_400)
    assert "unused" in catalog_entry(operator).flags


def test_a_broken_reference_is_found_without_running_anything(operator):
    switch = step_of("SWITCH", "route", evaluatorType="value-param", expression="x", inputParameters={"x": 1})
    inner = simple("ship", inputParameters={"a": "${nobody.output}"})
    define_workflow("order", {**switch, "decisionCases": {"1": [inner]}})

    assert "There is no step `nobody`" in catalog_entry(operator).flags["broken reference"]
    assert "broken reference" in page_text(operator.get(WORKFLOWS))


def test_a_task_that_no_worker_ever_polled_is_flagged(operator):
    define_workflow("order", simple("ship"))
    assert "no worker" in catalog_entry(operator).flags

    claim_next("ship")
    assert "no worker" not in catalog_entry(operator).flags


def test_the_reason_of_the_last_change_is_shown(operator):
    define_workflow("order", simple("ship"))
    row = WorkflowDefinition.objects.get()
    operator.post(f"{WORKFLOWS}{row.pk}/restore/", {"reason": "because of the carrier"})

    assert "because of the carrier" in page_text(operator.get(WORKFLOWS))


def test_an_empty_list_explains_how_to_create_a_definition(operator):
    assert "New workflow" in page_text(operator.get(WORKFLOWS))


def test_a_viewer_sees_the_list_without_edit_actions(viewer):
    define_workflow("order", simple("ship"))

    page = html(viewer.get(WORKFLOWS))
    assert "order" in page and "New workflow" not in page and ">Import<" not in page


def test_the_list_takes_few_queries_for_any_length(operator, django_assert_max_num_queries):
    for number in range(12):
        define_workflow(f"order{number}", simple("ship"))

    with django_assert_max_num_queries(15):
        operator.get(WORKFLOWS)


def test_the_last_runs_of_a_definition_are_bars_that_link_to_their_runs(operator, clock, django_assert_max_num_queries):
    define_task("ship", retryCount=0)
    define_workflow("order", simple("ship"))
    for outcome in ("COMPLETED", "FAILED"):
        run = start_run("order")
        clock.advance(seconds=4)
        claim_and_report("ship", outcome)
    with django_assert_max_num_queries(15):
        page = operator.get(WORKFLOWS)

    assert 'aria-label="Last 2 runs, 1 failed"' in html(page)
    bar = html(page).split(f'href="/admin/conductor/run/{run.pk}/change/"')[1].split("</a>")[0]
    assert "Failed · 4.0 s · v1" in bar and 'class="failed"' in bar


def test_the_page_of_a_definition_draws_its_runs_over_time_and_its_steps_in_each_run(
    operator, clock, django_assert_max_num_queries
):
    define_task("ship", retryCount=0)
    define_workflow("order", simple("ship"))
    without = page_text(operator.get(f"/admin/workflows/{WorkflowDefinition.objects.get().pk}/history/"))
    assert "No runs yet." in without and "Durations" not in without
    run = start_run("order")
    claim_and_report("ship", "FAILED")
    clock.advance(seconds=3 * 3600)
    define_workflow("order", simple("ship"), version=2)
    pk = WorkflowDefinition.objects.get(version=2).pk
    assert f'data-live="/admin/workflows/{pk}/history/live/"' in html(operator.get(f"{WORKFLOWS}{pk}/change/"))
    with django_assert_max_num_queries(15):
        page = operator.get(f"/admin/workflows/{pk}/history/")

    chart = page.context["charts"][0]
    assert [row["values"] for row in chart.bars if not row["is_empty"]] == [["0", "1", "0", "0"]]
    assert [row["markers"] for row in chart.bars if row["markers"]] == [["v2"]]
    assert f'<a class="failed" href="/admin/conductor/run/{run.pk}/change/?task=ship"' in html(page)
    assert "ship: Failed" in html(page) and operator.get("/admin/workflows/99/history/").status_code == 404
