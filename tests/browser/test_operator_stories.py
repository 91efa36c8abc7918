"""What operators come for, from the question to the answer, with the number of clicks that it takes."""

import re

import pytest
from django.contrib.auth.models import User
from django.core import mail
from playwright.sync_api import Locator, expect

from conductor_app.alerts import commands as alert_targets
from conductor_app.alerts import commands as alerts
from conductor_app.alerts.models import SavedView
from conductor_app.bulk import executor as bulk
from conductor_app.bulk.models import BulkOperation
from conductor_app.core.decide import Report
from conductor_app.events.workers.publisher import publish_due_events
from conductor_app.failures import commands as failure_groups
from conductor_app.tasks.commands import reports as task_commands
from tests.browser.page_checks import NARROW
from tests.browser.test_workflow_canvas import node
from tests.builders import human, simple, switch
from tests.recording_web_server import json_answer, running_web_server
from tests.scenario import claim_and_report, claim_next, define_task, define_workflow, start_run

TRACEBACK = "Traceback (most recent call last):\n  File \"pay.py\", line 42, in charge\nKeyError: 'iban'"


@pytest.fixture
def click():
    """Return a function that clicks and counts: `click.count`."""

    def click(place: Locator) -> None:
        click.count += 1
        place.click()

    click.count = 0
    return click


def fail_order(order: int, reason: str = TRACEBACK):
    """Start an order whose payment fails, with a line in its log."""
    run = start_run("order", correlation_id=f"order-{order}", input={"order": order})
    attempt = claim_next("charge", "w7@41")
    task_commands.add_log(attempt.id, f"the gateway has no account of order {order}")
    task_commands.report_task(run.pk, attempt.id, Report("FAILED", reason=reason), "w7@41")
    return run


@pytest.fixture
def orders(transactional_db):
    define_task("charge", retryCount=0)
    define_workflow("order", simple("charge", inputParameters={"order": "${workflow.input.order}"}))


def test_a_mail_leads_to_the_failing_line_of_a_log_with_three_clicks(page, live, settings, orders, click):
    settings.CONDUCTOR_PUBLIC_URL = live
    view = SavedView.objects.create(name="Failed", owner="olga", selection={"status": ["FAILED"]}, created_at=0)
    target = alert_targets.create_target("email", "On call", {"addresses": "ann@example.com"}, "olga")
    alerts.save_alert(view, "count", 1, 10, 30, "olga", targets=[target.pk])
    fail_order(4711)
    alerts.check_due_alerts(10)
    publish_due_events()

    [address] = re.findall(r"http\S+", mail.outbox[-1].body)
    click.count += 1
    page.goto(address)
    click(page.get_by_role("link", name="order-4711"))
    expect(page.locator("#task-open .log")).to_contain_text("the gateway has no account of order 4711")
    assert click.count <= 3


def test_a_bulk_retry_shows_the_outcome_of_each_run_and_the_audit_log_its_author(page, orders, click):
    for order in (1, 2, 3):
        fail_order(order)
    failure_groups.group_failures(100)

    page.goto("/admin/")
    click(page.locator(".failure-title"))
    click(page.get_by_role("link", name="Retry these runs …"))
    page.get_by_label("Canary size").fill("0")
    page.get_by_label("Reason").fill("the gateway is back")
    click(page.get_by_role("button", name="Retry 3 runs"))
    page.wait_for_url("**/bulk/**")
    assert click.count == 3

    for _ in ("collects the runs", "applies the action"):
        BulkOperation.objects.update(paced_at=0, due_at=0)
        bulk.run_due_operations()
    expect(page.locator("main h1")).to_contain_text("Done", timeout=15_000)
    claim_and_report("charge")
    claim_and_report("charge", "FAILED", reason="no funds")
    page.reload()
    expect(page.locator("[data-rows] tr").filter(has_text="Completed")).to_have_count(1)
    click(page.get_by_role("link", name=re.compile("^Failed again")))
    expect(page.locator("[data-rows] tr")).to_have_count(1)
    expect(page.locator("[data-rows] tr")).to_contain_text("no funds")
    click(page.get_by_role("link", name="Audit log").last)
    expect(page.locator("#result_list tbody tr").first).to_contain_text("olga")
    expect(page.locator("#result_list")).to_contain_text("the gateway is back")
    assert click.count == 5


def test_a_customers_order_is_found_by_its_number_and_made_to_run_next(page, orders, click):
    define_task("charge", concurrentExecLimit=1)
    held, other, order = (start_run("order", correlation_id=f"order-{number}") for number in (4709, 4710, 4711))
    attempt = claim_next("charge", "w7")

    page.goto("/admin/")
    page.keyboard.press("Control+k")
    page.keyboard.type("order-4711")
    expect(page.locator("#find-hits a.chosen")).to_contain_text("order-4711")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/run/{order.pk}/change/")
    expect(page.locator(".cause")).to_contain_text("concurrency limit reached: 1 of 1 tasks of this name run")
    click(page.locator("#act-front summary"))
    click(page.locator("#act-front button"))
    expect(page.locator(".messagelist")).to_contain_text("The task runs next.")

    task_commands.report_task(held.pk, attempt.id, Report("COMPLETED"), "w7")
    assert claim_next("charge").run_id == order.pk != other.pk
    assert click.count == 2


def test_an_order_is_found_by_its_input_and_compared_with_one_that_worked(page, orders, click):
    start_run("order", correlation_id="A-1", input={"order": 4710, "country": "DE"})
    claim_and_report("charge", output={"receipt": "r-1"})
    fail_order(4711)

    page.goto("/admin/conductor/run/")
    page.locator("#searchbar").fill("input.order = 4711")
    page.keyboard.press("Enter")
    expect(page.locator("#result_list tbody tr")).to_have_count(1)
    click(page.locator("#result_list").get_by_role("link", name="order-4711"))
    click(page.get_by_role("link", name="Compare", exact=True))

    expect(page.locator(".compared-runs")).to_contain_text("A-1")
    expect(page.locator(".compared-runs")).to_contain_text("Completed")
    expect(page.locator("main")).to_contain_text("country")
    expect(page.locator(".compared-runs")).to_contain_text("charge: KeyError: 'iban'")
    assert click.count == 2


def test_a_wrong_reference_is_named_with_the_nearest_step_after_three_clicks(page, orders, click):
    define_task("notify")
    define_workflow("receipts", simple("charge"), simple("notify", inputParameters={"to": "${charge.output.mail}"}))
    page.goto("/admin/conductor/workflowdefinition/")
    click(page.locator("#result_list").get_by_role("link", name=re.compile("^receipts")).first)
    click(page.get_by_role("link", name="Edit", exact=True))
    page.wait_for_url("**/edit/")
    click(node(page, "notify"))
    with page.expect_response("**/canvas/"):
        page.locator('[data-panel] input[value="${charge.output.mail}"]').fill("${chrage.output.mail}")
        page.keyboard.press("Enter")

    expect(page.locator("[data-findings]")).to_contain_text("There is no step chrage")
    expect(page.locator("[data-findings]")).to_contain_text("Did you mean charge?")
    assert click.count == 3


@pytest.fixture
def refund(transactional_db):
    """Return a run that waits for the approval of a person."""
    decide = switch("decide", {"true": [simple("pay")]}, inputs={"decide": "${approve.output.approved}"})
    define_task("pay")
    define_workflow("refund", human("approve"), decide)
    return start_run("refund", correlation_id="R-1")


def test_a_human_task_is_answered_with_two_clicks_from_its_run(page, refund, click):
    page.goto(f"/admin/conductor/run/{refund.pk}/change/")
    click(page.locator(".cause").get_by_role("link", name="Answer"))
    page.get_by_label("Reason or comment").fill("seen the goods")
    click(page.get_by_role("button", name="Approve"))

    page.wait_for_url(f"**/run/{refund.pk}/change/")
    expect(page.locator(".messagelist")).to_contain_text("Approved approve of R-1.")
    expect(page.locator(".cause")).to_contain_text("pay")
    assert click.count == 2


def test_an_answer_that_comes_second_is_kept_beside_the_first(pages, page, refund):
    page.goto(f"/admin/human-tasks/{refund.attempts.get().pk}/")
    page.get_by_label("Reason or comment").fill("unknown customer, 3 open invoices")
    ann = pages.open(User.objects.create_superuser("ann", password="x"), size=NARROW)
    ann.goto(page.url)
    ann.get_by_role("button", name="Approve").click()
    ann.wait_for_url("**/human-tasks/")

    page.locator("#act-reject summary").click()
    with page.expect_response(lambda response: response.request.method == "POST") as refusal:
        page.get_by_role("button", name="Reject: approve").click()

    assert refusal.value.status == 409
    expect(page.get_by_role("alert")).to_contain_text("Not saved. ann completed this task")
    expect(page.get_by_label("Your answer, not saved")).to_have_value(re.compile("unknown customer, 3 open invoices"))
    expect(page.locator(".document")).to_contain_text("true")
    # Chromium logs the refusal as an error of the page, Firefox does not.
    assert all(each.endswith("409 (Conflict)") for each in pages.validation_errors)
    pages.validation_errors.clear()


def test_a_rejection_is_confirmed_and_enter_in_a_field_does_not_answer(page, refund, click):
    page.goto(f"/admin/conductor/run/{refund.pk}/change/")
    click(page.locator(".cause").get_by_role("link", name="Answer"))
    page.get_by_label("Reason or comment").fill("unknown customer")
    page.keyboard.press("Enter")
    page.locator("#act-reject summary").click()
    expect(page.locator("#act-reject")).to_contain_text("cannot be undone")
    expect(page.get_by_role("heading", level=1)).to_contain_text("approve")
    page.get_by_role("button", name="Reject: approve").click()

    expect(page.locator(".messagelist")).to_contain_text("Rejected approve of R-1.")
    expect(page.locator(".cause")).to_contain_text("Completed")


def test_an_alert_target_is_set_up_and_shows_the_answer_to_a_test(page, settings, click):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    with running_web_server() as server:
        server.answers["/hook"] = json_answer({"seen": "yes"}, 202)
        page.goto("/admin/")
        page.keyboard.press("Control+k")
        page.keyboard.type("alerts")
        expect(page.locator("#find-hits a.chosen")).to_contain_text("Alerts")
        page.keyboard.press("Enter")
        click(page.get_by_role("link", name="Webhook", exact=True))
        page.get_by_label("Name").fill("Ops")
        page.get_by_label("URL").fill(f"{server.url}/hook")
        click(page.get_by_role("button", name="Save"))
        click(page.get_by_role("button", name="Send test"))

        expect(page.locator("#sent tbody tr")).to_contain_text("delivered", timeout=15_000)
        expect(page.locator("#sent tbody tr")).to_contain_text('{"seen": "yes"}')
        assert [asked["path"] for asked in server.asked] == ["/hook"]
    assert click.count == 3
