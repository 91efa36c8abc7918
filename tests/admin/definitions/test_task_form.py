"""A task definition is written on a form that draws its retries and its time limits."""

import json

import pytest

from conductor_app.models import DefinitionDraft, TaskDefinition
from tests.admin.reading import html, page_text
from tests.insight.situations import define_task

pytestmark = pytest.mark.django_db
TASKS = "/admin/conductor/taskdefinition/"
CHARGE = {"name": "charge", "retryCount": "2", "retryDelaySeconds": "10", "retryLogic": "EXPONENTIAL_BACKOFF"}


@pytest.fixture
def charge(clock):
    define_task("charge", retryCount=1, inputKeys=["order"], responseTimeoutSeconds=30)
    return TaskDefinition.objects.get(name="charge")


def test_the_form_shows_what_is_saved_and_draws_it(operator, charge):
    page = operator.get(f"{TASKS}{charge.pk}/form/")

    assert 'name="retryCount" value="1"' in html(page)
    assert "2 attempts" in page_text(page) and "Response timeout 30.0 s" in page_text(page)
    assert f"{TASKS}{charge.pk}/form/" in html(operator.get(f"{TASKS}{charge.pk}/edit/"))


def test_what_is_typed_is_drawn_before_it_is_saved(operator, charge):
    page = operator.post(f"{TASKS}{charge.pk}/form/", {**CHARGE, "step": "draw"})

    assert "3 attempts, retried after 10.0 s, 20.0 s" in page_text(page)
    charge.refresh_from_db()
    assert charge.document["retryCount"] == 1


def test_it_is_reviewed_saved_and_keeps_what_the_form_does_not_show(operator, charge):
    page = operator.get(f"{TASKS}{charge.pk}/form/").context
    form = {**CHARGE, "base": page["base"], "before": page["before"], "step": "review"}

    review = operator.post(f"{TASKS}{charge.pk}/form/", form)
    assert "retries" in page_text(review) and "Changes in meaning" in page_text(review)
    document = json.loads(review.context["form"].data["document"])
    operator.post(f"{TASKS}{charge.pk}/form/", {"document": json.dumps(document), "base": page["base"], "reason": "r"})

    charge.refresh_from_db()
    assert (charge.document["retryCount"], charge.document["inputKeys"]) == (2, ["order"])


def test_what_nobody_touches_stays_as_it_was_written(operator, charge):
    page = operator.get(f"{TASKS}{charge.pk}/form/").context
    as_shown = {field.html_name: field.value() for field in page["form"] if field.value() is not None}
    menus = {"retryLogic": "FIXED", "timeoutPolicy": "TIME_OUT_WF"}
    form = {**menus, **as_shown, "concurrentExecLimit": "6", "before": page["before"], "step": "review"}

    review = operator.post(f"{TASKS}{charge.pk}/form/", form)

    document = json.loads(review.context["form"].data["document"])
    assert list(document.items()) == [*charge.document.items(), ("concurrentExecLimit", 6)]


def test_a_new_task_is_written_on_it(operator, clock):
    review = operator.post(f"{TASKS}form/", {**CHARGE, "before": "{}", "step": "review"})

    assert json.loads(review.context["form"].data["document"])["name"] == "charge"
    assert DefinitionDraft.objects.filter(kind="task", name="").exists()


@pytest.mark.parametrize("wrong", [{"retryCount": "-1"}, {"timeoutPolicy": "ODD"}, {"name": ""}], ids=str)
def test_what_is_wrong_is_said_at_its_field(operator, charge, wrong):
    page = operator.post(f"{TASKS}{charge.pk}/form/", {**CHARGE, **wrong, "step": "review"})

    assert page.context["form"].errors and "errorlist" in html(page)


def test_who_may_not_edit_sees_no_form(viewer, charge):
    assert viewer.get(f"{TASKS}{charge.pk}/form/").status_code == 403
