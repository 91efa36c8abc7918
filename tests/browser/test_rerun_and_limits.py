"""Operators' scenarios in a browser: failures of few causes, and a task that waits."""

import re

from playwright.sync_api import expect

from conductor_app.bulk import executor as bulk
from conductor_app.bulk.models import BulkItem, BulkOperation
from conductor_app.core.decide import Report
from conductor_app.definitions import commands as definition_commands
from conductor_app.failures import commands as failure_groups
from conductor_app.runs.commands.start import StartRequest, start_run
from conductor_app.runs.models import Run
from conductor_app.tasks.commands import reports as task_commands
from conductor_app.tasks.commands.claims import claim_tasks
from tests.browser.page_checks import assert_accessible
from tests.builders import definition, policy, simple, step
from tests.scenario import ACTOR, register_definitions


def start(name: str) -> str:
    return start_run(StartRequest(name), ACTOR)


def work(queue: str, outcome: str = "COMPLETED", reason: str = "") -> None:
    [attempt] = claim_tasks(queue, worker="w7@41", wait_ms=0)
    task_commands.report_task(attempt.run_id, attempt.id, Report(outcome, {}, reason), ACTOR)


def test_failures_of_three_causes_are_three_groups_and_one_is_retried_with_a_canary(page):
    register_definitions(definition(step("pay"), name="order"))
    reasons = [f"502 from gateway {n}" for n in range(12)] + ["no funds 7", "no funds 8", "KeyError: 'total'"]
    for _ in reasons:
        start("order")
    for reason in reasons:
        work("pay", "FAILED", reason)
    failure_groups.group_failures(100)

    page.goto("/admin/failures/")
    expect(page.locator("tbody tr")).to_have_count(3)
    assert_accessible(page)
    page.get_by_role("row", name=re.compile("502 from gateway")).get_by_role("link").click()
    page.get_by_role("link", name="Retry these runs …").click()
    expect(page.locator("main")).to_contain_text("order v1")
    page.get_by_label("Canary size").fill("10")
    page.get_by_label("Runs per second").fill("50")
    page.get_by_label("Reason").fill("the gateway is back")
    assert_accessible(page)
    page.get_by_role("button", name="Retry 12 runs").click()
    page.wait_for_url("**/bulk/**")
    operation = BulkOperation.objects.get()

    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.locator("main h1")).to_contain_text("Paused")
    page.get_by_role("button", name="Resume", exact=True).click()
    expect(page.locator("main h1")).not_to_contain_text("Paused")
    bulk.run_due_operations()
    BulkOperation.objects.update(paced_at=operation.created_at - 10_000, due_at=0)
    bulk.run_due_operations()
    page.reload()
    done = BulkOperation.objects.get().done
    assert 1 <= done <= 10
    page.locator("#act-stop summary").click()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("main h1")).to_contain_text("Stopped")
    page.get_by_role("link", name=re.compile("^Applied")).click()
    expect(page.locator("[data-rows] tr")).to_have_count(done)
    assert_accessible(page)
    assert BulkItem.objects.filter(outcome="DONE").count() == Run.objects.filter(status="RUNNING").count() == done


def test_a_waiting_task_names_its_gate_and_raising_the_limit_releases_it(page):
    register_definitions(definition(simple("ship"), name="shipping"), tasks=[policy("ship", concurrent_limit=1)])
    first, second = start("shipping"), start("shipping")
    [held] = claim_tasks("ship", worker="van@7", wait_ms=0)
    waiting = second if held.run_id == first else first

    page.goto(f"/admin/conductor/run/{waiting}/change/?task=ship")
    page.get_by_role("link", name="Queue position and preceding tasks").click()
    expect(page.locator(".cause")).to_contain_text("1 of 1 tasks of this name run")
    expect(page.locator(".holders a")).to_have_attribute("href", f"/admin/conductor/run/{held.run_id}/change/")
    assert_accessible(page)
    page.get_by_role("link", name="Change the limit in the definition").click()
    page.wait_for_url("**/taskdefinition/**")

    definition_commands.save_task(policy("ship", concurrent_limit=2), ACTOR)
    page.go_back()
    page.reload()
    expect(page.locator(".cause")).to_contain_text("Every gate is open")
    assert [attempt.run_id for attempt in claim_tasks("ship", worker="van@8", wait_ms=0)] == [waiting]
