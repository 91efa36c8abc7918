"""Secrets on the pages: an operator creates, lists and deletes them; their values are never shown."""

import pytest

from conductor_app.access.models import AuditEntry, Secret, Variable
from tests.page_text import html, page_text
from tests.written_secrets import substitute_written

VALUE = "s3cret value"
ADD = "/admin/conductor/secret/add/"


@pytest.fixture
def operator_with_secret(operator):
    """Create a secret on the page and return its name."""
    reply = operator.post(ADD, {"name": "DB_1", "value": VALUE}, follow=True)
    assert "DB_1 saved." in page_text(reply)
    return operator


def test_an_entered_secret_reaches_the_tasks_that_name_it(operator_with_secret):
    assert substitute_written("${workflow.secrets.DB_1}", ["DB_1"]) == VALUE
    entry = AuditEntry.objects.exclude(object_type="user").get()
    assert (entry.actor, entry.action, entry.object_id) == ("olga", "create", "DB_1")


PAGES = ["", "DB_5F1/change/", "add/?name=DB_1"]


@pytest.mark.parametrize("page", PAGES)
def test_no_page_displays_its_value(operator_with_secret, page):
    shown = html(operator_with_secret.get(f"/admin/conductor/secret/{page}"))

    assert "DB_1" in shown
    assert VALUE not in shown
    assert Secret.objects.get().sealed not in shown


def test_a_form_that_is_refused_does_not_repeat_the_value(operator):
    page = html(operator.post(ADD, {"name": "a b", "value": VALUE}))

    assert "The name must have 1 to 255 letters" in page
    assert VALUE not in page


def test_a_secret_is_deleted(operator_with_secret):
    reply = operator_with_secret.post("/admin/conductor/secret/DB_1/delete/", follow=True)

    assert "DB_1 deleted." in page_text(reply)
    assert not Secret.objects.exists()


def test_a_viewer_cannot_enter_secrets(viewer, db):
    Secret.objects.create(name="DB_1", sealed="x")

    assert viewer.get(ADD).status_code == 403
    assert viewer.post(ADD, {"name": "A", "value": VALUE}).status_code == 403
    assert viewer.post("/admin/conductor/secret/DB_1/delete/").status_code == 403
    assert viewer.get("/admin/conductor/secret/DB_5F1/change/").status_code == 200
    assert Secret.objects.count() == 1


def test_a_variable_is_entered_and_displayed(operator):
    operator.post("/admin/conductor/variable/add/", {"name": "REGION", "value": "eu"})

    assert "REGION eu" in page_text(operator.get("/admin/conductor/variable/"))
    operator.post("/admin/conductor/variable/REGION/delete/")
    assert not Variable.objects.exists()
