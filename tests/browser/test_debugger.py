"""The debugger in a browser: breakpoints of a definition and of a start, and a stopped run that continues."""

import pytest
from playwright.sync_api import expect

from conductor_app.definitions.models import WorkflowDefinition
from conductor_app.runs.models import Run
from tests.browser.page_checks import assert_usable_by_everybody
from tests.builders import noop
from tests.scenario import define_workflow

DEFINITIONS = "/admin/conductor/workflowdefinition"


@pytest.fixture
def order(transactional_db) -> WorkflowDefinition:
    define_workflow("order", noop("first"), noop("second"), noop("third"))
    return WorkflowDefinition.objects.get(name="order")


def start(page, order: WorkflowDefinition) -> None:
    page.goto(f"{DEFINITIONS}/{order.pk}/start/")
    page.get_by_role("button", name="Start", exact=True).click()


def test_a_breakpoint_of_a_definition_stops_the_runs_that_start_until_it_is_removed(page, order):
    page.goto(f"{DEFINITIONS}/{order.pk}/change/")
    page.locator("#breakpoints summary").click()
    page.locator("#breakpoints").get_by_label("Step").select_option("second")
    page.get_by_role("button", name="Set breakpoint").click()
    expect(page.locator("#breakpoints tbody")).to_contain_text("second")

    start(page, order)
    expect(page.get_by_text("Stopped at a breakpoint before this step").first).to_be_visible()
    page.get_by_role("link", name="Debugger", exact=True).click()
    expect(page.get_by_role("combobox", name="Step to run to")).to_have_count(1)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("The run continues.")).to_be_visible()
    assert Run.objects.get().status == "COMPLETED"

    page.goto(f"{DEFINITIONS}/{order.pk}/change/")
    page.get_by_role("button", name="Remove second before the step").click()
    expect(page.get_by_text("Breakpoint removed.")).to_be_visible()
    start(page, order)
    expect(page.get_by_text("Completed in").first).to_be_visible()


def test_the_breakpoints_of_a_definition_can_be_used_by_everybody(page, order):
    page.goto(f"{DEFINITIONS}/{order.pk}/change/")
    page.locator("#breakpoints summary").click()
    page.get_by_role("button", name="Set breakpoint").click()
    expect(page.locator("#breakpoints tbody")).to_contain_text("first")
    assert_usable_by_everybody(page, f"{DEFINITIONS}/{order.pk}/change/")
