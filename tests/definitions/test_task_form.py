"""A task definition is written on a form that draws its retries and its time limits."""

import json

import pytest

from conductor_app.definitions.models import DefinitionDraft, TaskDefinition
from tests.page_text import html, page_text
from tests.scenario import define_task

pytestmark = pytest.mark.django_db
TASKS = "/admin/conductor/taskdefinition/"
CHARGE = {"name": "charge", "retryCount": "2", "retryDelaySeconds": "10", "retryLogic": "EXPONENTIAL_BACKOFF"}


@pytest.fixture
def charge(clock):
    define_task("charge", retryCount=1, inputKeys=["order"], responseTimeoutSeconds=30)
    return TaskDefinition.objects.get(name="charge")


def test_the_form_displays_saved_values_as_a_diagram(operator, charge):
    page = operator.get(f"{TASKS}{charge.pk}/form/")

    assert 'name="retryCount" value="1"' in html(page)
    assert "2 attempts" in page_text(page) and "Response timeout 30.0 s" in page_text(page)
    assert f"{TASKS}{charge.pk}/form/" in html(operator.get(f"{TASKS}{charge.pk}/edit/"))


def test_entered_values_are_drawn_before_saving(operator, charge):
    page = operator.post(f"{TASKS}{charge.pk}/form/", {**CHARGE, "step": "draw"})

    assert "3 attempts, retried after 10.0 s, 20.0 s" in page_text(page)
    charge.refresh_from_db()
    assert charge.document["retryCount"] == 1


def test_a_review_and_save_preserve_fields_outside_the_form(operator, charge):
    page = operator.get(f"{TASKS}{charge.pk}/form/").context
    form = {**CHARGE, "base": page["base"], "before": page["before"], "step": "review"}

    review = operator.post(f"{TASKS}{charge.pk}/form/", form)
    assert "retries" in page_text(review) and "Changes in meaning" in page_text(review)
    document = json.loads(review.context["form"].data["document"])
    operator.post(f"{TASKS}{charge.pk}/form/", {"document": json.dumps(document), "base": page["base"], "reason": "r"})

    charge.refresh_from_db()
    assert (charge.document["retryCount"], charge.document["inputKeys"]) == (2, ["order"])


def test_untouched_fields_stay_unchanged(operator, charge):
    page = operator.get(f"{TASKS}{charge.pk}/form/").context
    as_shown = {field.html_name: field.value() for field in page["form"] if field.value() is not None}
    menus = {"retryLogic": "FIXED", "timeoutPolicy": "TIME_OUT_WF"}
    form = {**menus, **as_shown, "concurrentExecLimit": "6", "before": page["before"], "step": "review"}

    review = operator.post(f"{TASKS}{charge.pk}/form/", form)

    document = json.loads(review.context["form"].data["document"])
    assert list(document.items()) == [*charge.document.items(), ("concurrentExecLimit", 6)]


def test_a_new_task_is_created(operator, clock):
    review = operator.post(f"{TASKS}form/", {**CHARGE, "before": "{}", "step": "review"})

    assert json.loads(review.context["form"].data["document"])["name"] == "charge"
    assert DefinitionDraft.objects.filter(kind="task", name="").exists()


@pytest.mark.parametrize("wrong", [{"retryCount": "-1"}, {"timeoutPolicy": "ODD"}, {"name": ""}], ids=str)
def test_errors_are_reported_at_their_fields(operator, charge, wrong):
    page = operator.post(f"{TASKS}{charge.pk}/form/", {**CHARGE, **wrong, "step": "review"})

    assert page.context["form"].errors and "errorlist" in html(page)


def test_a_user_without_edit_permission_sees_no_form(viewer, charge):
    assert viewer.get(f"{TASKS}{charge.pk}/form/").status_code == 403


def test_the_list_opens_the_form_of_a_new_definition(operator, charge):
    assert 'href="/admin/conductor/taskdefinition/form/"' in html(operator.get("/admin/conductor/taskdefinition/"))
