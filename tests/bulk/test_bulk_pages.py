"""Bulk actions on runs that were selected in their list: the plan of a bulk operation."""

import pytest

from conductor_app.bulk.models import BulkOperation
from conductor_app.runs.pages import list as run_list
from tests.builders import simple
from tests.page_text import html, page_text
from tests.scenario import define_workflow, start_run

LIST = "/admin/conductor/run/"


@pytest.fixture
def three(clock, db):
    define_workflow("order", simple("ship"))
    return [start_run("order") for _ in range(3)]


def post(client, action, chosen):
    return client.post(LIST, {"action": action, "_selected_action": [run.pk for run in chosen], "index": "0"})


def test_an_action_on_selected_runs_leads_to_its_plan(operator, three):
    plan = operator.get(post(operator, "pause", three[:2])["Location"])

    assert "2 : runs selected individually (2)" in page_text(plan) and "Pause 2 runs" in page_text(plan)
    assert 'name="reason"' in html(plan) and plan.context["canary_size"] == "0"
    operation = operator.post("/admin/bulk/plan/", dict(plan.context["fields"]) | {"action": "pause"})
    assert BulkOperation.objects.get().pk in operation["Location"]


def test_the_plan_of_a_termination_names_the_failure_workflows_if_there_are_any(operator, three):
    address = post(operator, "terminate", three)["Location"]
    assert "failure workflow" not in page_text(operator.get(address))

    define_workflow("claim", simple("ship"), failureWorkflow="apologize")
    address = post(operator, "terminate", [*three, start_run("claim")])["Location"]

    label = "Start the failure workflow of runs that have one (claim v1: apologize)"
    assert label in page_text(operator.get(address))


def test_the_number_of_runs_that_are_selected_one_by_one_is_limited(operator, three, monkeypatch):
    monkeypatch.setattr(run_list, "MAX_SELECTED", 2)

    assert "Pause 2 runs" in page_text(operator.get(post(operator, "pause", three)["Location"]))


def test_a_viewer_cannot_act_on_a_selection(viewer, three):
    answer = post(viewer, "terminate", three)

    assert "/admin/bulk/plan/" not in answer.get("Location", "")
