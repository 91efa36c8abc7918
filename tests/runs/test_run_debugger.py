"""The debugger on a run's page: it works with forms alone, and requires its own permission."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from conductor_app.access.models import AuditEntry
from conductor_app.definitions.models import WorkflowDefinition
from conductor_app.runs.commands import debugging
from conductor_app.runs.commands.debugging import BreakpointRequest
from conductor_app.runs.models import Run
from tests.access.users import client_with
from tests.builders import loop, step
from tests.scenario import ACTOR, Scenario

pytestmark = pytest.mark.django_db


@pytest.fixture
def stopped(clock) -> Scenario:
    """Return a run that is stopped before its second step."""
    scenario = Scenario(clock, step("pay"), step("ship", inputs={"total": "${pay.output.total}"}))
    debugging.set_breakpoint(scenario.id, BreakpointRequest("ship"), ACTOR)
    scenario.worker("pay").completes(total=7)
    return scenario


def page(client: Client, scenario: Scenario, **query: str) -> str:
    address = reverse("admin:conductor_run_change", args=[scenario.id], query={"tab": "debugger", **query})
    return client.get(address).content.decode()


def submit(client: Client, scenario: Scenario, **form: str) -> str:
    return client.post(reverse("admin:run_debug", args=[scenario.id]), form, follow=True).content.decode()


def test_the_page_says_where_the_run_stands_and_a_button_continues_it(operator, stopped):
    html = page(operator, stopped)
    assert "Stopped at a breakpoint before this step" in html
    attempt = re.search(r'name="attempt" value="([^"]+)"', html)[1]
    old = '{\n  "total": 7\n}'

    html = submit(
        operator,
        stopped,
        do="continue",
        attempt=attempt,
        payload="input",
        value_before=old,
        value='{"total": 8}',
        variables_before="{}",
        variables="{}",
    )

    assert "The run continues." in html
    assert "No task is stopped at a breakpoint." in html
    assert stopped.task("ship").input == {"total": 8}


def test_stepping_over_says_that_the_run_stops_again(operator, stopped):
    attempt = re.search(r'name="attempt" value="([^"]+)"', page(operator, stopped))[1]

    html = submit(operator, stopped, do="over", attempt=attempt)

    assert "The step continues. The run stops before the next step." in html
    assert "The run continues" not in html


def test_a_run_runs_only_to_steps_that_have_not_begun(operator, clock):
    run = Scenario(clock, step("pay"), step("ship"), step("mail"), step("file"))
    debugging.set_breakpoint(run.id, BreakpointRequest("ship"), ACTOR)
    run.worker("pay").completes()
    html = page(operator, run)
    attempt = re.search(r'name="attempt" value="([^"]+)"', html)[1]
    offered = html[html.index("Step to run to") : html.index("Run to step")]

    assert re.findall('<option value="([^"]+)"', offered) == ["mail", "file"]
    assert "Step pay has begun already" in submit(operator, run, do="to", attempt=attempt, ref="pay")
    assert "The run continues and stops before mail." in submit(operator, run, do="to", attempt=attempt, ref="mail")


def test_steps_of_a_loop_that_has_ended_are_not_offered(operator, clock):
    run = Scenario(clock, loop("pages", step("scan"), times=1), step("ship"), step("mail"))
    debugging.set_breakpoint(run.id, BreakpointRequest("ship"), ACTOR)
    run.worker("scan").completes()
    html = page(operator, run)
    attempt = re.search(r'name="attempt" value="([^"]+)"', html)[1]
    offered = html[html.index("Step to run to") : html.index("Run to step")]

    assert re.findall('<option value="([^"]+)"', offered) == ["mail"]
    assert "Step scan has begun already" in submit(operator, run, do="to", attempt=attempt, ref="scan")


def test_the_debugger_has_one_primary_button_and_its_form_chooses_a_step_that_has_not_begun(operator, clock):
    run = Scenario(clock, step("pay"), step("ship"), step("mail"))
    debugging.set_breakpoint(run.id, BreakpointRequest("ship"), ACTOR)
    run.worker("pay").completes()
    html = page(operator, run)
    html = html[html.index('class="debugger"') :]

    assert re.findall(r'class="button default"\s+name="do"\s+value="(\w+)"', html) == ["over"]
    assert html.count("button default") == 1
    assert re.findall('<option value="([^"]+)" selected', html) == ["mail"]
    assert "waits until you let it continue, at most 60 minutes" in html


def test_the_sentence_about_a_stop_leads_those_who_may_to_the_debugger(operator, stopped):
    link = 'href="?tab=debugger">Open the debugger'

    assert link in page(operator, stopped, tab="timeline")
    assert link not in page(operator, stopped)
    assert link not in page(client_with("view_run"), stopped, tab="timeline")


def test_the_diagram_is_beside_the_debugger_without_the_panel_of_the_task(operator, stopped):
    html = page(operator, stopped)

    assert "diagram-svg" in html and 'id="task-open"' not in html
    assert 'id="task-open"' in page(operator, stopped, task="ship")


def test_the_list_of_runs_names_the_breakpoint_as_the_current_step(operator, stopped):
    html = operator.get(reverse("admin:conductor_run_changelist")).content.decode()
    assert "at a breakpoint" in html


def test_a_breakpoint_is_set_and_removed_by_forms(operator, stopped):
    assert "Breakpoint set." in submit(operator, stopped, do="set", ref="pay", place="failure", condition="1 > 0")
    found = next(each for each in Run.objects.get(pk=stopped.id).debug["breakpoints"] if each["ref"] == "pay")
    assert (found["by"], found["condition"]) == ("olga", "1 > 0")
    assert "Breakpoint removed." in submit(operator, stopped, do="remove", breakpoint=found["id"])
    assert "no step" in submit(operator, stopped, do="set", ref="nowhere", place="before")


def test_a_breakpoint_of_a_definition_is_set_and_removed_by_forms_and_recorded_at_the_definition(operator, stopped):
    row = WorkflowDefinition.objects.get()
    address = reverse("admin:definition_breakpoints", args=[row.pk])

    text = operator.post(address, {"do": "set", "ref": "ship", "place": "after"}, follow=True).content.decode()
    row.refresh_from_db()
    removed = operator.post(address, {"do": "remove", "breakpoint": row.breakpoints[0]["id"]}, follow=True)

    assert "It applies to runs that start from now on." in text and "after its completion" in text
    assert (row.breakpoints[0]["ref"], row.breakpoints[0]["by"]) == ("ship", "olga")
    assert "Breakpoint removed." in removed.content.decode()
    assert (
        "no step" in operator.post(address, {"do": "set", "ref": "x", "place": "after"}, follow=True).content.decode()
    )
    recorded = AuditEntry.objects.filter(object_type="workflow_definition", object_id=f"{row.name}:{row.version}")
    assert [entry.action for entry in recorded.order_by("id")] == ["create", "set breakpoint", "remove breakpoint"]


def test_breakpoints_of_a_definition_and_of_a_start_require_the_debugger_permission(stopped):
    client = client_with("view_run", "view_workflowdefinition", "execute_workflowdefinition")
    row = WorkflowDefinition.objects.get()
    start = reverse("admin:start_run", args=[row.pk])

    refused = [
        client.post(reverse("admin:definition_breakpoints", args=[row.pk]), {"do": "set", "ref": "ship"}),
        client.post(start, {"input": "{}", "mode": "json", "stop_before": "ship"}),
    ]

    assert [reply.status_code for reply in refused] == [403, 403] and Run.objects.count() == 1
    assert all("debug runs" in reply.content.decode() for reply in refused)
    assert "Stop before step" not in client.get(start).content.decode()
    change = reverse("admin:conductor_workflowdefinition_change", args=[row.pk])
    assert "Set breakpoint" not in client.get(change).content.decode()


def test_an_expression_is_evaluated_on_the_page(operator, stopped):
    assert "14" in page(operator, stopped, expression="${pay.output.total} * 2")
    assert "empty" in page(operator, stopped, expression=" ")


def test_a_user_without_the_permission_neither_sees_nor_uses_the_debugger(stopped):
    client = client_with("view_run", "change_run")

    assert "Stopped tasks" not in page(client, stopped)
    reply = client.post(reverse("admin:run_debug", args=[stopped.id]), {"do": "set", "ref": "pay", "place": "before"})
    assert reply.status_code == 403
    assert "debug runs" in reply.content.decode()


def test_the_planner_shows_what_a_rewind_undoes(operator, stopped):
    address = reverse("admin:plan", args=[stopped.id], query={"do": "rewind", "attempt": stopped.task("pay").id})
    assert "pay" in operator.get(address).content.decode()
    assert operator.get(address).status_code == 200
