"""The form of a schedule shows what follows from its fields while they are filled in."""

import pytest
from playwright.sync_api import expect

from conductor_app.schedules.models import Schedule
from tests.builders import simple
from tests.scenario import define_workflow

ADD = "/admin/conductor/schedule/add/"


@pytest.fixture
def order(live):
    define_workflow("order", simple("ship"), inputParameters=["orderId", "express"])


def test_times_follow_the_expression_and_the_input_becomes_a_form_of_the_workflow(page, order):
    page.goto(ADD)
    expect(page.get_by_text("At 09:30, Monday through Friday")).to_be_visible()
    times = page.locator("#times li")
    expect(times).to_have_count(10)

    page.get_by_label("Cron expression").fill("0 0 6 1 * *")
    expect(page.get_by_text("At 06:00, on day 1 of the month")).to_be_visible()
    expect(times.first).to_contain_text("-01 06:00:00")
    page.get_by_label("Time zone").fill("Asia/Tokyo")
    expect(times.first).to_contain_text("+0900")

    expect(page.get_by_label("orderId")).to_have_count(0)
    page.get_by_label("Workflow").fill("order")
    page.get_by_label("orderId").fill("A-7")
    page.get_by_label("Name").fill("monthly")
    page.get_by_role("button", name="Save").click()

    expect(page.get_by_text("Schedule saved.")).to_be_visible()
    assert Schedule.objects.get().document["startWorkflowRequest"]["input"]["orderId"] == "A-7"
