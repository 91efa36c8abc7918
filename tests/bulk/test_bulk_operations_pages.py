"""Operations on many runs: planned on a page, followed on another."""

import re

import pytest
from django.urls import reverse

from conductor_app.bulk import commands as bulk_commands
from conductor_app.bulk import executor as bulk_executor
from conductor_app.bulk import queries as bulk_queries
from conductor_app.bulk import selections
from conductor_app.bulk.models import BulkItem, BulkOperation
from conductor_app.bulk.pages import operations as bulk_pages
from conductor_app.failures import commands as failure_groups
from conductor_app.failures.models import FailureGroup
from conductor_app.runs.models import Run
from tests.builders import definition, loop, step
from tests.page_text import html, page_text
from tests.scenario import ACTOR, Scenario, register_definitions, run_commit_hooks

pytestmark = pytest.mark.django_db
PLAN, LIST = "/admin/bulk/plan/", "/admin/bulk/"


@pytest.fixture
def scenario(clock) -> Scenario:
    """Return three failed runs."""
    scenario = Scenario(clock, step("pay"))
    for _ in range(2):
        clock.advance(seconds=1)
        scenario.starts("order")
    for _ in range(3):
        scenario.worker("pay").fails("no luck")
    return scenario


def works(clock, seconds: int = 2) -> None:
    for _ in range(seconds * 2):
        with run_commit_hooks():
            bulk_executor.run_due_operations()
        clock.advance(seconds=0.5)


def start_operation(**more) -> str:
    asked = {"action": "retry", "selection": {"status": ["FAILED"]}, "rate": 10.0, "reason": "it is back", **more}
    return bulk_commands.start(bulk_commands.BulkRequest(**asked), ACTOR)


def test_a_plan_counts_the_affected_runs(operator, scenario):
    page = page_text(operator.get(PLAN, {"status": "FAILED", "definition": "order"}))

    assert "3 : runs of order, with status FAILED" in page
    assert "order v1 3" in page
    assert "Retry 3 runs" in page


def test_a_plan_lists_the_first_runs_with_links_and_what_happens_to_each(operator, scenario, monkeypatch):
    scenario.starts("order")
    page = operator.get(PLAN, {"definition": "order"})

    text = page_text(page)
    assert "Running 1 Rejected: not possible in this state" in text and "Failed 3 Retry" in text
    assert "All runs" in text and "pay no luck Retry" in text and "Rejected: not possible in this state" in text
    for run in Run.objects.all():
        assert f'href="/admin/conductor/run/{run.pk}/change/"' in html(page)
    narrower = operator.get(page.context["narrower"])
    assert "Retry 3 runs" in page_text(narrower) and not narrower.context["narrower"]
    monkeypatch.setattr(bulk_queries, "MAX_LISTED_RUNS", 2)
    assert "The first 2 of 4 runs" in page_text(operator.get(PLAN, {"definition": "order"}))


def test_runs_of_the_list_are_left_out_by_their_checkboxes(operator, scenario):
    first, *_others = Run.objects.values_list("pk", flat=True)

    operator.post(PLAN, {"action": "retry", "status": "FAILED", "exclude": [first], "excluded": "r-9"})

    assert BulkOperation.objects.get().excluded == sorted([first, "r-9"])
    refused = operator.post(PLAN, {"action": "retry", "status": "FAILED", "exclude": [first], "rate": "x"})
    assert re.search(rf'value="{first}"\s+form="plan"\s+checked', html(refused))


def test_a_selection_that_has_grown_since_its_plan_is_planned_again(operator, scenario):
    form = {"action": "retry", "status": "FAILED"}
    [planned] = re.findall('name="planned" value="([0-9]+)"', html(operator.get(PLAN, form)))

    refused = operator.post(PLAN, form | {"planned": "2"})

    assert "The plan had 2 runs; now it has 3." in page_text(refused) and not BulkOperation.objects.exists()
    assert 'name="planned" value="3"' in html(refused)
    assert operator.post(PLAN, form | {"planned": planned}).status_code == 302


def test_the_canary_that_a_plan_offers_is_smaller_than_the_number_of_runs(operator, scenario):
    assert operator.get(PLAN, {"status": "FAILED"}).context["canary_size"] == "1"
    assert [bulk_pages.default_canary_size(total) for total in (1, 2, 10, 35, 5_000)] == [0, 1, 1, 3, 10]


def test_an_operation_is_started_from_its_plan_and_processed(operator, scenario, clock):
    form = {"action": "retry", "status": "FAILED", "rate": "10", "canary_size": "0", "reason": "it is back"}

    answer = operator.post(PLAN, form)

    assert answer.status_code == 302
    works(clock)
    row = BulkOperation.objects.get()
    assert (row.state, row.done, row.by, row.reason) == ("DONE", 3, "olga", "it is back")
    page = page_text(operator.get(answer["Location"]))
    assert "0 succeeded, 0 failed again, 3 pending of 3." in page and "it is back" in page
    assert "Retry runs with status FAILED" in page_text(operator.get(LIST))


def test_it_is_paused_resumed_and_stopped_on_its_page(operator, scenario):
    id = start_operation(rate=0.1)
    address = f"{LIST}{id}/"
    assert "Collecting the runs." in page_text(operator.get(address))

    for do, state in (("pause", "PAUSED"), ("resume", "GATHERING"), ("pause", "PAUSED"), ("stop", "STOPPED")):
        operator.post(address, {"do": do, "reason": "a look"})
        assert BulkOperation.objects.get().state == state
        assert ("Paused by olga" in page_text(operator.get(address))) == (do == "pause")
    page = operator.get(address)
    assert "Stopped" in page_text(page) and "data-final" in html(page)
    acts = page_text(operator.get(page.context["audit"]))
    assert acts.count("a look") == 4 and acts.count("bulk operation Retry runs with status FAILED") == 5
    assert "cannot pause" in page_text(operator.post(address, {"do": "pause"}, follow=True))


@pytest.fixture
def retried(operator, scenario, clock) -> str:
    """The address of an operation that retried three runs: one completed, one failed again, and one is open."""
    id = start_operation()
    works(clock)
    scenario.worker("pay").completes()
    scenario.worker("pay").fails("Traceback (most recent call last):\n  File 'pay.py'\nKeyError: 'zip'")
    failure_groups.group_failures(100)
    return f"{LIST}{id}/"


def test_titles_name_a_failure_group_by_its_error(operator, retried, django_assert_max_num_queries):
    group = FailureGroup.objects.get(message__startswith="KeyError")
    bulk_commands.start(bulk_commands.BulkRequest("retry", {"failure_group": group.pk}, "fixed"), "olga")

    plan = page_text(operator.get(PLAN, {"failure_group": group.pk}))
    with django_assert_max_num_queries(15):
        listed = page_text(operator.get(LIST))

    title = "runs that failed with “KeyError: …”"
    assert title in plan and f"Retry {title}" in listed
    group.delete()
    assert f"Retry {title}" in page_text(operator.get(LIST)), "An operation keeps the title that it had at its start."
    assert "with failures in group 999" in page_text(operator.get(PLAN, {"failure_group": 999}))


def test_the_page_shows_what_has_become_of_each_run(operator, retried):
    page = operator.get(retried)
    rows = page_text(page).partition("Outcome Reason Time")[2]

    assert sorted(re.findall("Completed|Failed again|Running", rows)) == ["Completed", "Failed again", "Running"]
    assert "Failed again pay KeyError: 'zip' Failure group" in rows
    group = FailureGroup.objects.get(message__startswith="KeyError")
    assert reverse("admin:failure_group", args=[group.pk]) in html(page)
    assert "data-final" not in html(page), "because a run is still open"


def test_runs_that_failed_again_are_listed_separately(operator, retried):
    page = operator.get(retried, {"outcome": "FAILED_AGAIN"})
    rows = page_text(page).partition("Outcome Reason Time")[2]

    assert "Failed again 1" in page_text(page)
    assert rows.count("Failed again") == 1 and "Completed" not in rows and "Running" not in rows


def test_the_page_counts_what_succeeded_failed_again_and_is_pending_and_does_not_hide_failures(operator, retried):
    page = operator.get(retried)

    assert "1 succeeded, 1 failed again, 1 pending of 3." in page_text(page)
    assert "Done with failures" in page_text(page)
    widths = re.findall(r'<rect class="(\w+)" x="\d+" width="(\d+)"', html(page))
    assert widths == [("done", "333"), ("refused", "333"), ("withdrawn", "0")]
    listed = page_text(operator.get(LIST))
    assert "Applied Succeeded Failed again Rejected Pending" in listed and "Done with failures 3 1 1 0 1" in listed


def test_the_retry_takes_the_runs_that_the_page_counts(operator, scenario, retried, clock, monkeypatch):
    scenario.worker("pay").fails("KeyError: 'zip'")
    monkeypatch.setattr(selections, "MAX_EXAMINED", 2)
    counted = operator.get(retried).context["result"].failed_again

    operator.post(retried, {"do": "retry_failed_again"})
    works(clock)

    assert BulkOperation.objects.latest("created_at").total == counted == 1


def test_the_runs_that_failed_again_are_retried_by_an_operation_of_their_own(operator, scenario, retried, clock):
    assert "Retry the 1 that failed again" in page_text(operator.get(retried))

    answer = operator.post(retried, {"do": "retry_failed_again"})
    works(clock)
    scenario.worker("pay").completes()
    scenario.worker("pay").completes()

    again = page_text(operator.get(answer["Location"]))
    assert "Retry runs that failed again after bulk operation" in again
    assert "1 succeeded, 0 failed again, 0 pending of 1." in again
    assert "3 succeeded, 0 failed again, 0 pending of 3." in page_text(operator.get(retried))
    assert "No run of operation" in page_text(operator.post(retried, {"do": "retry_failed_again"}, follow=True))
    assert BulkOperation.objects.count() == 2


def test_the_download_has_the_state_of_each_run(operator, retried):
    lines = b"".join(operator.get(f"{retried}results.csv").streaming_content).decode().splitlines()

    states = sorted(line.split(",", 5)[5] for line in lines[1:])
    assert states == ["COMPLETED,,", "FAILED,pay,KeyError: 'zip'", "RUNNING,,"]


def test_a_failed_canary_links_to_the_runs_that_failed(operator, scenario, clock):
    id = start_operation(canary_size=2)
    works(clock)
    scenario.worker("pay").completes()
    scenario.worker("pay").fails("still no luck")
    works(clock)
    failed = Run.objects.filter(status="FAILED").earliest("pk")

    page = operator.get(f"{LIST}{id}/")

    assert BulkOperation.objects.get().state == "PAUSED"
    assert "1 of 2 runs of the canary succeeded: 50 %" in page_text(page)
    assert page_text(page).count("still no luck") == 1, "because each run is listed once"
    assert failed.pk in html(page)


def test_actions_that_do_not_reopen_runs_show_only_their_outcome(operator, scenario, clock):
    id = start_operation(action="label", labels=["outage"])
    works(clock)
    page = page_text(operator.get(f"{LIST}{id}/"))

    assert page.partition("Outcome Reason Time")[2].count("Applied") == 3 and "Failed again" not in page


def test_a_rejected_run_has_a_reason_and_can_be_retried(operator, scenario, clock):
    id = start_operation()
    with run_commit_hooks():
        bulk_executor.run_due_operations()
    scenario.retry()
    works(clock)

    page = page_text(operator.get(f"{LIST}{id}/", {"outcome": "REFUSED"}))
    assert "Workflow … is RUNNING. Only a failed, timed-out or terminated workflow can be retried." in page
    assert scenario.id in page

    operator.post(f"{LIST}{id}/", {"do": "retry_refused"})
    assert BulkOperation.objects.count() == 2


def test_a_run_is_excluded_before_it_is_processed(operator, scenario):
    id = start_operation(rate=0.1)
    with run_commit_hooks():
        bulk_executor.run_due_operations()

    operator.post(f"{LIST}{id}/", {"do": "withdraw", "run": scenario.id})

    assert BulkItem.objects.get(run_id=scenario.id).outcome == "WITHDRAWN"


def test_results_are_downloadable_as_a_table(operator, scenario, clock):
    id = start_operation()
    works(clock)

    lines = b"".join(operator.get(f"{LIST}{id}/results.csv")).decode().splitlines()

    assert lines[0] == "number,run,outcome,answer,at,run_status,failed_task,failure"
    assert len(lines) == 4 and f"{scenario.id},DONE" in lines[1]


def test_a_selection_without_runs_ends_immediately(operator, clock):
    assert "No run matches any more" in page_text(operator.get(PLAN, {"definition": "order"}))
    assert "No bulk operations" in page_text(operator.get(LIST))


def test_all_runs_of_a_list_become_the_selection_of_a_plan(operator, scenario):
    chosen = {"action": "retry", "select_across": "1", "_selected_action": scenario.id, "index": "0"}

    answer = operator.post("/admin/conductor/run/?status=FAILED&name=order&q=order", chosen)

    assert answer.status_code == 302
    assert answer["Location"] == f"{PLAN}?search=order&definition=order&status=FAILED&action=retry"
    assert "Retry 3 runs" in page_text(operator.get(answer["Location"]))


@pytest.mark.parametrize(
    "form",
    [
        {"version": "x"},
        {"status": "ODD"},
        {"search": "status = "},
        {"failure_group": "9" * 14},
        {"started_since": "yesterday"},
        {"action": "dance"},
    ],
    ids=str,
)
def test_hostile_plans_are_answered(operator, scenario, form):
    assert operator.get(PLAN, form).status_code == 200
    assert operator.post(PLAN, {"action": "retry", "rate": "x"} | form).status_code == 200
    assert operator.post(PLAN, {"action": "retry", "rate": "nan"} | form).status_code == 200
    assert not BulkOperation.objects.exists()


def test_a_viewer_sees_operations_and_cannot_start_or_stop_them(viewer, scenario):
    id = start_operation()

    assert "you need the permission to change runs" in page_text(viewer.get(PLAN, {"status": "FAILED"}))
    assert viewer.post(PLAN, {"action": "retry", "status": "FAILED"}).status_code == 403
    assert viewer.get(f"{LIST}{id}/").status_code == 200
    assert viewer.post(f"{LIST}{id}/", {"do": "stop"}).status_code == 403


def test_there_is_no_such_operation(operator):
    assert operator.get(f"{LIST}nobody/").status_code == 404
    assert operator.get(f"{LIST}nobody/results.csv").status_code == 404


def test_pages_of_operations_take_few_queries(operator, scenario, clock, django_assert_max_num_queries):
    id = start_operation()
    works(clock)
    operator.get(LIST)
    for address in (LIST, f"{LIST}{id}/", f"{PLAN}?status=FAILED"):
        with django_assert_max_num_queries(15):
            operator.get(address)


def test_a_second_person_approves_on_the_page(operator, scenario, clock, settings):
    settings.CONDUCTOR_BULK_APPROVAL_FROM = 2
    assert "another user has approved" in page_text(operator.get(PLAN, {"status": "FAILED"}))
    own = operator.post(PLAN, {"action": "retry", "status": "FAILED", "canary_size": "0"})["Location"]
    assert "another user" in page_text(operator.get(own)) and 'value="approve"' not in html(operator.get(own))
    others = f"{LIST}{start_operation()}/"
    assert "Waiting for approval" in page_text(operator.get(LIST))

    assert 'value="approve"' in html(operator.get(others))
    operator.post(others, {"do": "approve", "reason": "I have looked."})

    works(clock)
    assert "Approved by olga" in page_text(operator.get(others))
    assert BulkOperation.objects.get(by=ACTOR).state == "DONE"


def test_the_plan_of_an_upgrade_lists_possible_runs_and_reasons_for_the_others(operator, clock):
    scenario = Scenario(clock, step("pay"), step("ship"))
    further = scenario.starts("order")
    scenario.worker("pay").completes()
    register_definitions(definition(step("pay"), loop("again", step("ship"), times=2), version=2))
    address = {"action": "upgrade", "name": "order"}

    assert "Check which of the newest runs can be upgraded" in page_text(operator.get("/admin/bulk/plan/", address))
    page = page_text(operator.get("/admin/bulk/plan/", address | {"check": "yes"}))

    assert "Of the newest 2 active runs, 1 can be upgraded." in page
    assert "ship is in other loops in the new version." in page
    assert further.status == "RUNNING" and scenario.row.version == 1


def test_labels_are_added_to_selected_runs_through_a_plan(operator, scenario, clock):
    chosen = {"action": "label", "_selected_action": [run.pk for run in Run.objects.all()[:2]]}
    plan = operator.post("/admin/conductor/run/", chosen)["Location"]
    page = operator.get(plan)
    assert "Add labels 2 runs" in page_text(page) and 'name="labels"' in html(page)

    fields = dict(page.context["fields"])
    sent = operator.post(PLAN, {**fields, "action": "label", "labels": "outage, may", "reason": "the gateway"})
    works(clock)

    assert "2 applied" in page_text(operator.get(sent["Location"])) and "outage, may" in page_text(
        operator.get(sent["Location"])
    )
    assert Run.objects.filter(labels__name="may").count() == 2


def test_a_plan_without_labels_is_rejected_and_preserves_the_input(operator, scenario):
    page = operator.post(PLAN, {"action": "unlabel", "status": "FAILED", "labels": " , ", "reason": "tidy"})

    assert "Enter at least one label." in page_text(page) and 'value="tidy"' in html(page)
    assert not BulkOperation.objects.exists()
