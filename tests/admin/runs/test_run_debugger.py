"""The debugger on a run's page: it works with forms alone, and requires its own permission."""

import re

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from conductor_app.engine.runs import debugging
from conductor_app.engine.runs.debugging import BreakpointRequest
from conductor_app.models import Run
from tests.builders import step
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


def test_the_list_of_runs_names_the_breakpoint_as_the_current_step(operator, stopped):
    html = operator.get(reverse("admin:conductor_run_changelist")).content.decode()
    assert "at a breakpoint" in html


def test_a_breakpoint_is_set_and_removed_by_forms(operator, stopped):
    assert "Breakpoint set." in submit(operator, stopped, do="set", ref="pay", place="failure", condition="1 > 0")
    found = next(each for each in Run.objects.get(pk=stopped.id).debug["breakpoints"] if each["ref"] == "pay")
    assert (found["by"], found["condition"]) == ("olga", "1 > 0")
    assert "Breakpoint removed." in submit(operator, stopped, do="remove", breakpoint=found["id"])
    assert "no step" in submit(operator, stopped, do="set", ref="nowhere", place="before")


def test_an_expression_is_evaluated_on_the_page(operator, stopped):
    assert "14" in page(operator, stopped, expression="${pay.output.total} * 2")
    assert "empty" in page(operator, stopped, expression=" ")


def test_a_user_without_the_permission_neither_sees_nor_uses_the_debugger(stopped):
    user = User.objects.create_user("oscar", password="x", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_run", "change_run"]))
    client = Client()
    client.force_login(user)

    assert "Stopped tasks" not in page(client, stopped)
    reply = client.post(reverse("admin:run_debug", args=[stopped.id]), {"do": "set", "ref": "pay", "place": "before"})
    assert reply.status_code == 403
    assert "execute_debug" in reply.content.decode()


def test_the_planner_shows_what_a_rewind_undoes(operator, stopped):
    address = reverse("admin:plan", args=[stopped.id], query={"do": "rewind", "attempt": stopped.task("pay").id})
    assert "pay" in operator.get(address).content.decode()
    assert operator.get(address).status_code == 200
