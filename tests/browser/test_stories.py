"""The twelve stories of operators, at the width of a laptop and of a phone, with the most clicks that each may take."""

import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from conductor_app.access.commands import people
from conductor_app.alerts import commands as alerts
from conductor_app.bulk import executor as bulk
from conductor_app.bulk.models import BulkItem, BulkOperation
from conductor_app.core.decide import Report
from conductor_app.core.definition import walk
from conductor_app.definitions.models import WorkflowDefinition
from conductor_app.events.workers.publisher import publish_due_events
from conductor_app.failures import commands as failure_groups
from conductor_app.runs.models import Attempt, Run, Task
from conductor_app.tasks.commands import reports as task_commands
from tests.browser.page_checks import assert_accessible
from tests.browser.story import Story
from tests.browser.test_workflow_canvas import WORKFLOWS, node, set_field
from tests.builders import fork, human, loop, noop, simple, switch
from tests.clients.wait_until import eventually
from tests.recording_web_server import json_answer, running_web_server
from tests.scenario import (
    claim_and_report,
    claim_next,
    define_task,
    define_workflow,
    newest_attempt_of,
    reload_run,
    start_run,
)

pytestmark = [
    pytest.mark.parametrize(
        "size", [{"width": 1280, "height": 800}, {"width": 360, "height": 740}], ids=("1280", "360")
    ),
]
REPORT_VIOLATIONS = """document.addEventListener("securitypolicyviolation",
  (event) => console.error(`policy violation: ${event.violatedDirective} ${event.blockedURI}`))"""
ORDER = simple("charge", inputParameters={"order": "${workflow.input.order}", "currency": "${workflow.input.currency}"})


@pytest.fixture
def begin_story(pages, olga, size):
    """Return a function that begins a story at an address. The layout is also checked at its end."""
    stories = []

    def begin(address: str, *, most: int, user: User = olga) -> Story:
        page = pages.open(user, size=size)
        page.context.add_init_script(REPORT_VIOLATIONS)
        page.goto(address)
        stories.append(Story(page, most))
        return stories[-1]

    yield begin
    for story in stories:
        story.check_layout()


@pytest.fixture
def orders(transactional_db):
    define_task("charge", retryCount=0)
    define_workflow("order", ORDER)


def fail_order(order: int, reason: str = "unknown currency CHF", worker: str = "w7@42"):
    """Start an order whose payment fails."""
    run = start_run("order", correlation_id=f"order-{order}", input={"order": order, "currency": "CHF"})
    attempt = claim_next("charge", worker)
    task_commands.report_task(run.pk, attempt.id, Report("FAILED", reason=reason), worker)
    return run


def test_a_failed_run_is_understood_and_rerun_with_changed_input(begin_story, orders):
    run = fail_order(4711)
    failure_groups.group_failures(100)

    story = begin_story("/admin/", most=3)
    page = story.page
    story.click(page.get_by_role("link", name="Newest failed run"))
    expect(page.locator(".cause")).to_contain_text("Failed at charge, attempt 1 of 1: unknown currency CHF")
    story.click(page.get_by_role("link", name="Rerun with changed input"))
    page.locator("#task_input").fill('{"order": 4711, "currency": "USD"}')
    story.click(page.get_by_role("button", name=re.compile("^Apply")))
    page.wait_for_url(f"**/run/{run.pk}/change/**")

    attempt = claim_next("charge")
    assert attempt.input == {"order": 4711, "currency": "USD"}
    task_commands.report_task(run.pk, attempt.id, Report("COMPLETED"), "w7")
    assert reload_run(run).status == "COMPLETED"


def test_a_waiting_run_names_what_it_waits_for(begin_story, orders):
    define_task("charge", concurrentExecLimit=1)
    for number in (1, 2):
        start_run("order", correlation_id=f"order-{number}")
    claim_next("charge", "w7")

    story = begin_story("/admin/", most=2)
    story.click(story.page.locator(".numbers").get_by_role("link", name="Running"))
    story.click(story.page.locator("#result_list").get_by_role("link", name="order-2"))

    expect(story.page.locator(".cause")).to_contain_text("concurrency limit reached: 1 of 1 tasks of this name run")


def test_forty_runs_of_one_cause_are_retried_after_a_canary(begin_story, orders):
    for order in range(40):
        fail_order(order)
    failure_groups.group_failures(100)

    story = begin_story("/admin/", most=3)
    page = story.page
    story.click(page.locator(".failure-title"))
    story.click(page.get_by_role("link", name="Retry these runs …"))
    page.get_by_label("Canary size").fill("10")
    page.get_by_label("Runs per second").fill("50")
    page.get_by_label("Reason").fill("the gateway is back")
    story.click(page.get_by_role("button", name="Retry 40 runs"))
    page.wait_for_url("**/bulk/**")
    advance_operation("WATCHING")
    for _ in range(10):
        claim_and_report("charge")
    advance_operation("DONE")
    for _ in range(29):
        claim_and_report("charge")
    claim_and_report("charge", "FAILED", reason="no funds")

    page.reload()
    expect(page.locator("main")).to_contain_text("39 succeeded, 1 failed again, 0 pending of 40.")
    assert BulkItem.objects.filter(outcome="DONE").count() == 40
    assert Run.objects.filter(status="COMPLETED").count() == 39


def advance_operation(state: str) -> None:
    """Let the operation process its runs until it has the state."""

    def has_state() -> bool:
        BulkOperation.objects.update(paced_at=0, due_at=0)
        bulk.run_due_operations()
        return BulkOperation.objects.get().state == state

    eventually(has_state)


def test_a_workflow_with_fork_loop_and_human_task_is_built_tested_and_started_without_json(
    begin_story, transactional_db
):
    define_task("pack", outputKeys=["parcel"])
    story = begin_story(f"{WORKFLOWS}", most=24)
    page = story.page

    def add_step(place: str, search: str, ref: str = "") -> None:
        story.click(page.locator(f'.diagram-insert[data-insert="{place}"]'))
        page.get_by_role("searchbox", name="Search step types").fill(search)
        page.keyboard.press("Enter")
        expect(page.get_by_label("Reference")).to_be_focused()
        if ref:
            set_field(page, "Reference", ref)

    story.click(page.locator(".title-row").get_by_role("link", name="New workflow"), opens="**/add/")
    set_field(page, "Name", "parcels")
    set_field(page, "Owner", "team@example.com")
    add_step("tasks[0]", "worker task", "pack")
    set_field(page, "Task", "pack")
    add_step("tasks[1]", "fork")
    add_step("tasks[1].forkTasks[0][0]", "human", "approve")
    set_field(page, "Name of field 2", "note")
    add_step("tasks[1].forkTasks[1][0]", "do_while", "remind")
    set_field(page, "Iterations", "2")
    add_step("tasks[1].forkTasks[1][0].loopOver[0]", "noop", "mail")
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Workflow", exact=True)).to_be_visible()
    page.get_by_label("Name 1", exact=True).fill("result")
    set_field(page, "Value 1", "${approve.output.approved}")
    story.click(page.get_by_role("button", name="Test", exact=True))
    expect(page.get_by_label("Output of approve")).to_be_visible()
    story.click(page.locator("[data-save]"))
    expect(page.locator(".verdict-card")).to_contain_text("Completed")
    story.click(page.get_by_role("link", name="Back to the editor"))
    expect(node(page, "approve")).to_be_visible()
    story.click(page.get_by_role("button", name="Review and save"))
    story.click(page.get_by_role("button", name="Save", exact=True))
    expect(page.get_by_role("heading", name="parcels v1")).to_be_visible()
    story.click(page.get_by_role("link", name="Start a run"))
    story.click(page.get_by_role("button", name="Start", exact=True))
    page.wait_for_url("**/run/**")

    document = WorkflowDefinition.objects.get(name="parcels").document
    assert [spot.ref for spot in walk(document["tasks"])] == ["pack", "fork", "approve", "remind", "mail", "join"]
    assert document["tasks"][2]["joinOn"] == ["approve", "remind"]
    form = document["tasks"][1]["forkTasks"][0][0]["inputParameters"]["__humanTaskDefinition"]["jsonSchema"]
    assert list(form["properties"]) == ["approved", "note"]
    assert document["outputParameters"] == {"result": "${approve.output.approved}"}
    assert Run.objects.get().name == "parcels"


def test_a_human_task_is_answered_from_the_overview(begin_story, transactional_db):
    define_task("pay")
    decide = switch("decide", {"true": [simple("pay")]}, inputs={"decide": "${approve.output.approved}"})
    define_workflow("refund", human("approve"), decide)
    run = start_run("refund", correlation_id="R-1")

    story = begin_story("/admin/", most=3)
    story.click(story.page.get_by_role("link", name="1 human task"))
    story.click(story.page.get_by_role("link", name="Answer"), opens="**/human-tasks/*/**")
    story.click(story.page.get_by_role("button", name="Approve"))

    expect(story.page.locator(".messagelist")).to_contain_text("Approved approve of R-1.")
    expect(story.page.get_by_text("No open human tasks")).to_be_visible()
    assert newest_attempt_of(run, "approve").status == "COMPLETED"
    assert newest_attempt_of(run, "pay").status == "PENDING"


def test_an_order_is_found_by_a_value_of_its_input(begin_story, orders):
    found = [start_run("order", input={"order": order}) for order in (4710, 4711, 4712)][1]

    story = begin_story("/admin/conductor/run/", most=1)
    story.page.locator("#searchbar").fill("4711")
    story.page.keyboard.press("Enter")
    expect(story.page.locator("#result_list tbody tr")).to_have_count(1)
    story.click(story.page.locator("#result_list").get_by_role("link", name="4711"))

    story.page.wait_for_url(f"**/run/{found.pk}/change/**")


def test_the_worker_build_that_broke_it_is_named(begin_story, orders):
    for order in range(3):
        start_run("order")
        claim_and_report("charge", worker="w7@41")
        fail_order(order)
    failure_groups.group_failures(100)

    story = begin_story("/admin/", most=1)
    story.click(story.page.locator(".failure-title"))

    builds = story.page.locator(".breakdowns > div").filter(has_text="By worker build")
    expect(builds).to_contain_text("42")
    expect(builds).to_contain_text("100 %")
    expect(builds).not_to_contain_text("41")
    assert {attempt.worker for attempt in Attempt.objects.filter(status="FAILED")} == {"w7@42"}


def test_an_edit_states_its_effect_on_open_runs_and_is_rolled_back(begin_story, orders):
    start_run("order")
    story = begin_story(WORKFLOWS, most=9)
    page = story.page
    story.click(page.locator("#result_list").get_by_role("link", name=re.compile("^order")).first)
    story.click(page.get_by_role("link", name="Edit", exact=True), opens="**/edit/")
    story.click(node(page, "charge"))
    set_field(page, "Reference", "pay")
    story.click(page.get_by_role("button", name="Review and save"))
    expect(page.locator("main")).to_contain_text("1 run follows version 1 now and continues with its document.")
    expect(page.locator("main")).to_contain_text("step pay")
    page.get_by_label("Reason", exact=True).fill("a shorter name")
    story.click(page.get_by_role("button", name="Save", exact=True))
    expect(page.get_by_role("heading", name="order v2")).to_be_visible()
    assert story.clicks <= 6

    story.most = story.clicks + 3
    story.click(page.get_by_text("Roll back to v1"))
    story.click(page.get_by_role("button", name="Save as version 3"))
    expect(page.get_by_role("heading", name="order v3")).to_be_visible()
    restored = WorkflowDefinition.objects.get(name="order", version=3)
    assert restored.document["tasks"][0]["taskReferenceName"] == "charge"


def test_a_new_cause_is_reported_to_a_webhook(begin_story, orders, settings):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    with running_web_server() as server:
        server.answers["/hook"] = json_answer({"seen": "yes"}, 202)
        story = begin_story("/admin/", most=6)
        page = story.page
        story.open_page("Alerts")
        story.click(page.get_by_role("link", name="Webhook", exact=True), opens="**/new/webhook/")
        page.get_by_label("Name").fill("Ops")
        page.get_by_label("URL").fill(f"{server.url}/hook")
        story.click(page.get_by_role("button", name="Save"))
        expect(page.locator(".messagelist")).to_contain_text("Alert target saved.")
        story.click(page.get_by_label("Breadcrumbs").get_by_role("link", name="Alerts"))
        story.click(page.get_by_role("button", name="New cause"))
        expect(page.locator(".messagelist")).to_contain_text("The rule is on.")

        fail_order(4711)
        failure_groups.group_failures(100)

        def is_reported() -> bool:
            alerts.check_due_alerts(10)
            publish_due_events()
            return bool(server.asked)

        eventually(is_reported)
        [asked] = server.asked
        assert asked["path"] == "/hook"
        assert "unknown currency CHF" in asked["body"]


def test_a_viewer_of_one_team_is_invited_and_sees_only_its_workflows(begin_story, pages, live, size):
    for name in ("shop_order", "payroll"):
        define_workflow(name, simple("pack"))
        start_run(name, correlation_id=f"{name}-1")

    story = begin_story("/admin/people/", most=3)
    page = story.page
    story.click(page.get_by_role("link", name="Invite a person"))
    page.get_by_label("Name", exact=True).fill("bob")
    story.click(page.get_by_label("Viewer"))
    page.get_by_label("Names and prefixes").fill("shop_*")
    story.click(page.get_by_role("button", name="Invite", exact=True))
    link = page.locator("pre.once").inner_text().strip()

    bobs = pages.open(None, size=size)
    bobs.goto(link)
    password = "correct horse 47"
    bobs.get_by_label("New password", exact=True).fill(password)
    bobs.get_by_label("New password confirmation").fill(password)
    bobs.get_by_role("button", name="Set password").click()
    expect(bobs.locator("#user-tools summary")).to_contain_text("bob")
    seen_at = {WORKFLOWS: "shop_order", "/admin/conductor/run/": "shop_order-1", "/admin/queues/": "pack"}
    for address, seen in seen_at.items():
        bobs.goto(address)
        expect(bobs.locator("main")).to_contain_text(seen)
        expect(bobs.locator("main")).not_to_contain_text("payroll")
        Story(bobs, 0).check_layout()
    payroll = Run.objects.get(name="payroll")
    assert bobs.request.get(f"/admin/conductor/run/{payroll.pk}/change/").status == 404
    access = people.Access(people.VIEWER, ("shop_*",), tasks=("pack",))
    assert people.access_of(User.objects.get(username="bob")) == access


def test_a_run_is_stopped_before_a_step_that_gets_another_input(begin_story, transactional_db):
    define_workflow("order", ORDER, noop("ship"))
    story = begin_story(WORKFLOWS, most=8)
    page = story.page
    story.click(page.locator("#result_list").get_by_role("link", name=re.compile("^order")).first)
    story.click(page.get_by_role("link", name="Start a run"))
    story.select(page.get_by_label("Stop before step"), label="charge")
    story.click(page.get_by_role("button", name="Start", exact=True))
    expect(page.get_by_text("Stopped at a breakpoint before this step").first).to_be_visible()
    story.click(page.get_by_role("link", name="Debugger", exact=True))
    page.locator("textarea[name=value]").fill('{"order": 4711, "currency": "USD"}')
    story.click(page.get_by_role("button", name="Step over"))
    expect(page.locator(".messagelist")).to_be_visible()

    attempt = claim_next("charge")
    assert attempt.input == {"order": 4711, "currency": "USD"}
    task_commands.report_task(attempt.run_id, attempt.id, Report("COMPLETED"), "w7")
    page.reload()
    expect(page.locator(".debugger h3").first).to_contain_text("ship")
    story.click(page.get_by_role("button", name="Continue"))
    expect(page.get_by_text("The run continues.")).to_be_visible()
    assert Run.objects.get().status == "COMPLETED"


def test_a_task_in_the_middle_of_a_fork_in_a_loop_is_rerun_as_its_plan_shows(begin_story, transactional_db):
    define_task("pack", retryCount=0)
    define_task("charge", sideEffects="external")
    body = fork([simple("charge"), simple("notify")], [simple("stock")])
    define_workflow("parcel", loop("rounds", *body, simple("pack"), times=3))
    run = start_run("parcel")
    for turn in (1, 2):
        for name in ("charge", "stock", "notify"):
            claim_and_report(name)
        claim_and_report("pack", "COMPLETED" if turn == 1 else "FAILED")

    story = begin_story(f"/admin/conductor/run/{run.pk}/change/", most=4)
    page = story.page
    story.click(page.locator(".timeline").get_by_role("link", name="charge", exact=True).last)
    expect(page.locator("[data-panel-title], #task-open").first).to_contain_text("charge")
    story.click(page.locator("#task-open #act-rerun summary"))
    story.click(page.locator("#act-rerun").get_by_role("link", name="Preview"))
    expect(page.locator(".warn")).to_contain_text("charge__2")
    assert_accessible(page)
    rows = page.locator("#result tbody tr").filter(has_text="will rerun")
    assert {row.split()[0] for row in rows.all_inner_texts()} == {
        "rounds",
        "charge__2",
        "notify__2",
        "join__2",
        "pack__2",
    }
    story.click(page.get_by_role("button", name=re.compile("^Apply")))
    page.wait_for_url(f"**/run/{run.pk}/change/**")

    kept = set(Task.objects.filter(run=run).values_list("ref", "iteration_path"))
    assert ("charge", "2") in kept and ("notify", "2") not in kept and ("stock", "2") in kept
    rerun = Attempt.objects.filter(run=run, task__ref="charge", task__iteration_path="2")
    assert rerun.latest("number").status == "PENDING"
