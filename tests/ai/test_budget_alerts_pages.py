"""Alerts on budgets on the pages of budgets and of views."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.ai.commands.budgets import BudgetLimits, save_budget
from conductor_app.alerts.commands import create_target, save_view
from conductor_app.alerts.models import Alert, SavedView
from tests.page_text import page_text

pytestmark = pytest.mark.django_db
BUDGETS = "/admin/budgets/"


@pytest.fixture
def budget(clock):
    return save_budget(BudgetLimits("DEFINITION", "agent", "DAY", max_tokens=1_000), "olga")


@pytest.fixture
def target():
    return create_target("email", "Ann", {"addresses": "ann@example.com"}, "olga")


def add(client, target, **form):
    fields = {"do": "alert", "percent": "80", "target": str(target.pk)} | form.pop("fields", {})
    return client.post(BUDGETS, fields | form, follow=True)


def test_an_operator_adds_an_alert_on_a_budget(operator, budget, target):
    page = page_text(add(operator, target, budget=str(budget.pk)))

    assert "Alert created." in page
    assert "The budget of workflow agent (Day) spent to at least 80 %; repeat after 1440 min" in page
    alert = Alert.objects.get()
    assert (alert.kind, alert.threshold, alert.view.name) == ("budget", 80, "Budgets")
    assert alert.budget == {"scope": "DEFINITION", "name": "agent", "period": "DAY"}
    assert AuditEntry.objects.get(object_type="alert").facts["budget"] == alert.budget
    assert "The budget of workflow agent (Day): from 80 % on" in page_text(operator.get(BUDGETS))


def test_a_second_alert_belongs_to_the_same_view(operator, budget, target):
    add(operator, target, budget=str(budget.pk))
    add(operator, target, percent="95")

    assert SavedView.objects.get().alerts.count() == 2
    assert "any budget: from 95 % on" in page_text(operator.get(BUDGETS))


def test_an_invalid_alert_is_refused(operator, budget, target):
    for fields in [{"percent": "0"}, {"percent": "x"}, {"budget": "0"}, {"budget": "x"}, {"target": "0"}]:
        assert add(operator, target, fields=fields).status_code == 200, fields
        assert not Alert.objects.exists(), fields


def test_a_viewer_adds_no_alert(viewer, budget, target):
    assert add(viewer, target).status_code == 403
    assert "Add alert" not in page_text(viewer.get(BUDGETS))


def test_without_a_target_the_page_leads_to_the_targets(operator, budget):
    assert "Create an alert target first" in page_text(operator.get(BUDGETS))


def test_a_view_can_have_an_alert_on_a_budget(operator, budget, target):
    view = save_view("Costs", {}, "olga", is_shared=True)
    address = "/admin/alerts/"
    assert "a budget spent to at least (percent)" in page_text(operator.get(address))
    form = {"do": "save", "kind": "budget", "threshold": "90", "window": "60", "repeat": "60", "target": target.pk}
    operator.post(address, {**form, "view": str(view.pk), "budget": str(budget.pk)})

    assert Alert.objects.get().budget["name"] == "agent"


def test_the_link_of_a_notification_leads_to_the_budgets(operator, budget, target):
    add(operator, target)

    assert operator.get(f"/admin/alerts/{Alert.objects.get().pk}/")["Location"] == BUDGETS
