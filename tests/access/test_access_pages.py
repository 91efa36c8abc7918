"""Applications, keys, permissions and people on the pages."""

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

import conductor_app
from conductor_app.access import tokens as access_keys
from conductor_app.access.models import AccessKey, Application, AuditEntry, Grant
from conductor_app.access.permissions import USED_PERMISSIONS
from tests.access.users import client_with
from tests.page_text import html, page_text


@pytest.fixture
def administrator(db) -> Client:
    """Return a client of an ordinary user with the administrator role."""
    return client_with(role="ADMIN", name="ada")


def test_an_application_is_created_displayed_renamed_and_deleted(administrator, clock):
    administrator.post("/admin/conductor/application/add/", {"name": "fleet"})
    made = Application.objects.get(name="fleet")
    page = f"/admin/conductor/application/{made.pk}/change/"
    assert "roles are set as its groups" in page_text(administrator.get(page))

    administrator.post(page, {"name": "trucks"})
    assert "trucks" in page_text(administrator.get("/admin/conductor/application/"))

    administrator.post(f"/admin/conductor/application/{made.pk}/delete/", {"post": "yes"})
    assert not User.objects.filter(pk=made.user_id).exists()
    acts = AuditEntry.objects.filter(object_type="application", object_id=made.pk).order_by("id")
    assert [(act.actor, act.action) for act in acts] == [("ada", "create"), ("ada", "rename"), ("ada", "delete")]


def test_a_key_of_a_new_application_has_all_permissions_or_none(administrator, clock):
    administrator.post("/admin/conductor/accesskey/add/", {"application": "all", "may_do_all": "on"})
    administrator.post("/admin/conductor/accesskey/add/", {"application": "none"})
    administrator.post("/admin/conductor/accesskey/add/", {"application": "none", "may_do_all": "on"})

    roles = {app.name: [group.name for group in app.user.groups.all()] for app in Application.objects.all()}
    assert roles == {"all": ["Administrators"], "none": []}


def test_a_key_is_withdrawn_and_deleted_from_the_list(administrator, clock):
    key_id, _ = access_keys.create_key("fleet")
    page = "/admin/conductor/accesskey/"

    administrator.post(page, {"action": "toggle", "_selected_action": [key_id]})
    assert not AccessKey.objects.get().is_active

    administrator.post(page, {"action": "remove", "_selected_action": [key_id]})
    assert not AccessKey.objects.exists()


def test_a_permission_is_granted_listed_and_revoked(administrator, clock):
    user = User.objects.create_user("ann")
    form = {"user": user.pk, "group": "", "target_type": "WORKFLOW_DEF", "target_id": "order_*", "access": "READ"}

    administrator.post("/admin/conductor/grant/add/", form)

    page = page_text(administrator.get("/admin/conductor/grant/"))
    assert "ann" in page and "order_*" in page and "ada" in page
    administrator.post(
        "/admin/conductor/grant/", {"action": "revoke_grants", "_selected_action": [Grant.objects.get().pk]}
    )
    assert not Grant.objects.exists()
    acts = AuditEntry.objects.filter(object_type="permission").order_by("id").values_list("actor", "action", "facts")
    assert list(acts) == [
        ("ada", "grant", {"to": "ann", "access": ["READ"]}),
        ("ada", "revoke", {"to": "ann", "access": ["READ"]}),
    ]


FAULTY = {"nobody": {"user": ""}, "a tag without a value": {"target_type": "TAG"}, "another access": {"access": "FLY"}}


@pytest.mark.parametrize("case", FAULTY)
def test_an_invalid_permission_is_not_granted(administrator, clock, case):
    user = User.objects.create_user("ann")
    form = {"user": user.pk, "group": "", "target_type": "WORKFLOW_DEF", "target_id": "order", "access": "READ"}

    page = administrator.post("/admin/conductor/grant/add/", form | FAULTY[case])

    assert "Please correct the error" in page_text(page)
    assert not Grant.objects.exists()


def test_a_subject_that_is_not_an_id_is_reported_in_the_form(administrator, clock):
    for user in ["ann", "-1", "${a.b}", "9" * 30, "²", "1.5"]:
        form = {"user": user, "group": "", "target_type": "WORKFLOW_DEF", "target_id": "order", "access": "READ"}

        reply = administrator.post("/admin/conductor/grant/add/", form)

        assert reply.status_code == 200, user
        assert "Please correct the error" in page_text(reply), user


def test_changes_on_djangos_own_pages_are_audited(administrator, clock):
    administrator.post("/admin/auth/group/add/", {"name": "night shift"})
    group = Group.objects.get(name="night shift")
    administrator.post(f"/admin/auth/group/{group.pk}/delete/", {"post": "yes"})

    acts = AuditEntry.objects.filter(object_type="group").order_by("id")
    assert [(act.actor, act.action, act.object_id) for act in acts] == [
        ("ada", "create", "night shift"),
        ("ada", "delete", "night shift"),
    ]
    assert "group night shift" in page_text(administrator.get("/admin/conductor/auditentry/"))


def test_every_servers_roles_are_listed_and_not_deleted(administrator, clock):
    admins = Group.objects.get(profile__role="ADMIN")

    assert "METADATA_MANAGER" in html(administrator.get("/admin/auth/group/"))
    assert administrator.post(f"/admin/auth/group/{admins.pk}/delete/", {"post": "yes"}).status_code == 403


PAGES = ("application", "accesskey", "grant")


@pytest.mark.parametrize("role", ["USER_READ_ONLY", "WORKFLOW_MANAGER", "METADATA_MANAGER"])
def test_access_pages_are_restricted_to_administrators(db, role):
    client = client_with(role=role)

    assert {client.get(f"/admin/conductor/{page}/").status_code for page in PAGES} == {403}
    assert client.get("/admin/auth/user/").status_code == 403
    assert client.get("/admin/conductor/run/").status_code == 200


def test_every_permission_required_by_a_page_has_a_checkbox():
    asked = re.compile(r'"(conductor\.(?:view|add|change|delete|execute)_[a-z_]+)"')
    app = Path(conductor_app.__file__).parent
    pages = [path for path in app.rglob("*.py") if {"pages", "site"} & {*path.parts, path.stem.split("_")[-1]}]

    named = {name for module in pages for name in asked.findall(module.read_text())}

    assert named
    assert named <= USED_PERMISSIONS


def test_checkboxes_name_permissions_like_errors_do_and_hide_internal_tables(administrator, clock):
    shown = html(administrator.get("/admin/auth/group/add/"))

    assert "conductor.view_attempt" in shown
    assert shown.count(">conductor.view_webhook<") == 1
    assert "conductor.view_accessrevision" not in shown


def test_permissions_without_a_checkbox_stay_unchanged(administrator, clock):
    within, seen = (Permission.objects.get(codename=name) for name in ("view_accessrevision", "view_attempt"))
    group = Group.objects.create(name="night shift")
    group.permissions.add(within)

    administrator.post(f"/admin/auth/group/{group.pk}/change/", {"name": "night shift", "permissions": [seen.pk]})

    assert set(group.permissions.all()) == {within, seen}
