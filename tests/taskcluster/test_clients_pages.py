"""Taskcluster's clients and roles on the pages."""

import re

import pytest

from conductor_app.access.models import AuditEntry, Client
from conductor_app.taskcluster.auth import commands as scope_roles
from conductor_app.taskcluster.auth import scopes as known
from conductor_app.taskcluster.auth.commands import ClientSettings, create_client
from conductor_app.taskcluster.models import ScopeRole
from tests.page_text import html, page_text

ADD = "/admin/conductor/client/add/"
FLEET = {"id": "fleet/1", "scopes": "queue:claim-work:*\r\n a b \r\n", "expires": "2028-01-01T00:00"}


@pytest.fixture
def fleet(db, clock):
    return create_client("fleet/1", ClientSettings(["a"], clock.now() + 1000), "olga")


def test_a_client_is_created_and_its_token_displayed_once(operator, clock):
    page = html(operator.post(ADD, FLEET))

    token = re.search(r"TASKCLUSTER_ACCESS_TOKEN=([\w-]+)", page)[1]
    assert known.find_client_key("fleet/1").key == token
    assert known.find_client_key("fleet/1").scopes == ("a b", "queue:claim-work:*")
    assert known.find_client_key("fleet/1").expires_at == 1_830_297_600_000
    for address in ("", "fleet_2F1/change/"):
        shown = html(operator.get(f"/admin/conductor/client/{address}"))
        assert "fleet/1" in shown and token not in shown and Client.objects.get().sealed not in shown
    entry = AuditEntry.objects.exclude(object_type="user").get()
    assert (entry.actor, entry.action, entry.object_id) == ("olga", "create", "fleet/1")
    assert token not in str(AuditEntry.objects.exclude(object_type="user").values().get())
    assert "client fleet/1" in page_text(operator.get("/admin/conductor/auditentry/"))


def test_a_client_is_changed_disabled_and_deleted(operator, fleet):
    operator.post("/admin/conductor/client/fleet_2F1/change/", {**FLEET, "scopes": "c", "description": "two"})
    changed = Client.objects.get()
    assert (changed.scopes, changed.description, changed.updated_by) == (["c"], "two", "olga")

    chosen = {"_selected_action": ["fleet/1"]}
    operator.post("/admin/conductor/client/", {"action": "toggle_disabled", **chosen})
    assert Client.objects.get().is_disabled

    operator.post("/admin/conductor/client/", {"action": "delete_chosen", **chosen})
    assert not Client.objects.exists()
    acts = AuditEntry.objects.exclude(object_type="user").order_by("id").values_list("action", flat=True)
    assert list(acts) == ["create", "change", "disable", "delete"]


def test_a_client_gets_a_new_token(operator, fleet):
    _, before = fleet

    page = html(
        operator.post("/admin/conductor/client/", {"action": "reset_access_token", "_selected_action": ["fleet/1"]})
    )

    assert known.find_client_key("fleet/1").key != before
    assert known.find_client_key("fleet/1").key in page


FAULTY = {
    "an id with a space": {"id": "fleet 1"},
    "two stars": {"scopes": "a**"},
    "a scope beyond ASCII": {"scopes": "é"},
    "no end": {"expires": ""},
}


def test_a_client_is_not_made_with(operator):
    for case in FAULTY:
        page = operator.post(ADD, FLEET | FAULTY[case])

        assert "Please correct the error" in page_text(page), case
        assert not Client.objects.exists(), case


def test_there_is_one_client_of_each_id(operator, fleet):
    assert "already exists" in page_text(operator.post(ADD, FLEET))


def test_a_role_is_made_changed_and_deleted(operator, clock):
    page = "/admin/conductor/scoperole/"
    operator.post(f"{page}add/", {"id": "repo:*", "scopes": "queue:route:<..>"})
    assert ScopeRole.objects.get(pk="repo:*").scopes == ["queue:route:<..>"]

    operator.post(f"{page}repo_3A*/change/", {"scopes": "a\nb"})
    assert ScopeRole.objects.get(pk="repo:*").scopes == ["a", "b"]

    operator.post(f"{page}repo_3A*/delete/", {"post": "yes"})
    assert not ScopeRole.objects.filter(pk="repo:*").exists()
    acts = AuditEntry.objects.exclude(object_type="user").order_by("id").values_list("object_type", "action")
    assert list(acts) == [("scope_role", "create"), ("scope_role", "change"), ("scope_role", "delete")]


def test_a_page_explains_the_scopes(operator, clock):
    scope_roles.create_role("reader", ["queue:status:*"], "", "olga")
    create_client("fleet/1", ClientSettings(["assume:reader"], clock.now() + 1000), "olga")

    assert "queue:status:*" in page_text(operator.get("/admin/conductor/client/fleet_2F1/change/"))


def test_a_role_that_would_assume_itself_is_not_made(operator):
    page = operator.post("/admin/conductor/scoperole/add/", {"id": "a", "scopes": "assume:a"})

    assert "would assume itself" in page_text(page)
    assert not ScopeRole.objects.filter(pk="a").exists()


def test_a_viewer_cannot_change_anything(viewer, fleet):
    page = "/admin/conductor/client/"

    assert viewer.get(ADD).status_code == viewer.post(ADD, FLEET).status_code == 403
    assert viewer.post(f"{page}fleet_2F1/change/", FLEET).status_code == 403
    viewer.post(page, {"action": "reset_access_token", "_selected_action": ["fleet/1"]})
    assert known.find_client_key("fleet/1").key == fleet[1]
