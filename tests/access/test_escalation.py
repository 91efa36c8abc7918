"""An actor cannot give a permission that it does not have: keys, roles, groups, grants, tags, users and passwords."""

import pytest
from django.contrib.auth.models import Group, Permission, User

from conductor_app.access.models import Application, Grant, GroupProfile
from conductor_app.access.permissions import role_group
from tests.access.users import api_client_of, create_application, grant_access, logged_in_client
from tests.builders import simple


@pytest.fixture(autouse=True)
def required_logins(with_logins, clock):
    pass


@pytest.fixture
def root():
    return api_client_of(create_application("root", "ADMIN"))


@pytest.fixture
def manager():
    """Return an application that may manage applications and users, but is no administrator."""
    made = create_application("manager")
    grant_access(made, "APPLICATION", "*", "CREATE", "READ", "UPDATE")
    return made


def permission(name):
    app, codename = name.split(".")
    return Permission.objects.get(content_type__app_label=app, codename=codename)


def person(name, *permissions):
    user = User.objects.create_user(name, password="s3cret-of-this-person", is_staff=True)
    user.user_permissions.add(*map(permission, permissions))
    return user


def test_a_key_of_a_more_powerful_application_cannot_be_created(manager, root):
    admin, plain = create_application("admin", "ADMIN"), create_application("plain")
    api = api_client_of(manager)

    refused = api.post(f"/applications/{admin.id}/accessKeys", {})
    assert (refused.status_code, "cannot give a permission that it does not have" in refused.json()["message"]) == (
        403,
        True,
    )
    assert api.post(f"/applications/{plain.id}/accessKeys", {}).status_code == 200
    assert root.post(f"/applications/{admin.id}/accessKeys", {}).status_code == 200


def test_a_key_of_an_application_with_other_grants_cannot_be_created(manager):
    other = create_application("other")
    grant_access(other, "WORKFLOW_DEF", "payroll*", "EXECUTE")
    api = api_client_of(manager)
    assert api.post(f"/applications/{other.id}/accessKeys", {}).status_code == 403

    grant_access(manager, "WORKFLOW_DEF", "pay*", "EXECUTE")
    assert api_client_of(manager).post(f"/applications/{other.id}/accessKeys", {}).status_code == 200


def test_a_revoked_key_of_a_more_powerful_application_cannot_be_restored(manager, root):
    admin = create_application("admin", "ADMIN")
    key = root.post(f"/applications/{admin.id}/accessKeys", {}).json()["id"]
    root.post(f"/applications/{admin.id}/accessKeys/{key}/status", {})

    assert api_client_of(manager).post(f"/applications/{admin.id}/accessKeys/{key}/status", {}).status_code == 403


def test_a_manager_of_applications_manages_them_but_gives_no_access(root):
    admin = create_application("admin", "ADMIN")
    keeper = root.post("/applications", {"name": "keeper"}).json()["id"]
    assert root.post(f"/applications/{keeper}/roles/APPLICATION_MANAGER", {}).status_code == 200
    api = api_client_of(Application.objects.get(pk=keeper))

    other = api.post("/applications", {"name": "other"}).json()["id"]
    assert api.put(f"/applications/{other}", {"name": "shop"}).status_code == 200
    assert api.post(f"/applications/{other}/accessKeys", {}).status_code == 200
    assert api.delete(f"/applications/{other}").status_code == 200

    assert api.post(f"/applications/{admin.id}/accessKeys", {}).status_code == 403
    assert api.post(f"/applications/{keeper}/roles/WORKER", {}).status_code == 403
    assert root.delete(f"/applications/{keeper}/roles/APPLICATION_MANAGER").status_code == 200
    assert api.post("/applications", {"name": "more"}).status_code == 403


def test_a_role_with_other_permissions_cannot_be_given(manager):
    own = Application.objects.get(name="manager")
    api = api_client_of(manager)

    for role in ("ADMIN", "METADATA_MANAGER", "WORKER"):
        assert api.post(f"/applications/{own.id}/roles/{role}", {}).status_code == 403
    assert not own.user.groups.exists()


def test_a_tag_that_gives_access_to_its_setter_cannot_be_set(root):
    root.define(simple("pay"), name="payroll")
    team = create_application("team")
    grant_access(team, "WORKFLOW_DEF", "payroll", "READ", "UPDATE")
    grant_access(team, "TAG", "team:a", "EXECUTE")
    tag = [{"key": "team", "value": "a", "type": "METADATA"}]
    api = api_client_of(team)

    refused = api.put("/metadata/workflow/payroll/tags", tag)

    assert refused.status_code == 403
    assert api.post("/workflow/payroll", {}).status_code == 403
    assert api.put("/metadata/workflow/payroll/tags", [{**tag[0], "value": "b"}]).status_code == 200


class TestPages:
    """The same on the pages of users and groups."""

    def test_a_user_with_the_permission_to_change_users_cannot_become_a_superuser(self):
        ann = person("ann", "auth.view_user", "auth.change_user")
        client, page = logged_in_client(ann), f"/admin/auth/user/{ann.pk}/change/"

        client.post(page, {"username": "ann", "is_active": "on", "is_staff": "on", "is_superuser": "on"})

        ann.refresh_from_db()
        assert ann.is_superuser is False

    @pytest.mark.parametrize("group", ["Administrators", "Authors"])
    def test_a_user_cannot_join_a_group_with_more_permissions(self, group):
        ann = person("ann", "auth.view_user", "auth.change_user")
        role_group("ADMIN")
        found = Group.objects.get(name=group)

        logged_in_client(ann).post(
            f"/admin/auth/user/{ann.pk}/change/",
            {"username": "ann", "is_active": "on", "is_staff": "on", "groups": [found.pk]},
        )

        assert not ann.groups.exists()

    def test_a_user_cannot_give_a_permission_that_it_lacks(self):
        ann, bob = person("ann", "auth.view_user", "auth.change_user"), person("bob")
        wanted = [permission(each).pk for each in ("conductor.view_secret", "auth.view_user")]

        client = logged_in_client(ann)
        page = f"/admin/auth/user/{bob.pk}/change/"
        client.post(page, {"username": "bob", "is_active": "on", "user_permissions": wanted})
        client.post(page, {"username": "bob", "is_active": "on", "user_permissions": wanted[1:]})

        assert {each.codename for each in bob.user_permissions.all()} <= {"view_user"}
        assert "view_secret" not in {each.codename for each in bob.user_permissions.all()}

    @pytest.mark.parametrize("how", ["superuser", "ADMIN", "permissions"])
    def test_a_user_cannot_set_the_password_of_a_more_powerful_one(self, how):
        ann, boss = person("ann", "auth.view_user", "auth.change_user"), person("boss", "conductor.view_secret")
        boss.is_superuser = how == "superuser"
        boss.save()
        if how == "ADMIN":
            boss.groups.add(role_group("ADMIN"))
        new = "another-long-password-1"

        page = f"/admin/auth/user/{boss.pk}/password/"
        reply = logged_in_client(ann).post(page, {"password1": new, "password2": new})

        boss.refresh_from_db()
        assert (reply.status_code, boss.check_password(new)) == (403, False)

    def test_a_group_with_more_permissions_cannot_be_changed(self):
        ann = person("ann", "auth.view_group", "auth.change_group")
        role_group("ADMIN")
        group = Group.objects.get(name="Authors")

        reply = logged_in_client(ann).post(f"/admin/auth/group/{group.pk}/change/", {"name": "mine"})

        assert reply.status_code == 403

    def test_a_key_of_an_administrator_cannot_be_created_on_the_page(self):
        ann = person("ann", "conductor.view_accesskey", "conductor.add_accesskey")
        create_application("admin", "ADMIN")

        logged_in_client(ann).post("/admin/conductor/accesskey/add/", {"application": "admin"})
        logged_in_client(ann).post("/admin/conductor/accesskey/add/", {"application": "new", "may_do_all": "on"})

        assert not Application.objects.filter(keys__isnull=False).exists()
        assert not Grant.objects.exists()


class TestManagingStrongerAccounts:
    """Nobody manages an account that has permissions which the manager does not have."""

    @pytest.fixture
    def strong(self):
        return create_application("payroll", "ADMIN")

    @pytest.fixture
    def keeper(self):
        """Return an application with the role of those who manage applications."""
        return create_application("keeper", "APPLICATION_MANAGER")

    def test_a_stronger_application_is_neither_renamed_nor_deleted_nor_loses_keys_or_roles(self, keeper, strong, root):
        key = root.post(f"/applications/{strong.id}/accessKeys", {}).json()["id"]
        api = api_client_of(keeper)

        refused = [
            api.put(f"/applications/{strong.id}", {"name": "other"}),
            api.delete(f"/applications/{strong.id}"),
            api.delete(f"/applications/{strong.id}/roles/ADMIN"),
            api.post(f"/applications/{strong.id}/accessKeys/{key}/status", {}),
            api.delete(f"/applications/{strong.id}/accessKeys/{key}"),
        ]

        assert [reply.status_code for reply in refused] == [403] * 5
        strong.refresh_from_db()
        assert (strong.name, strong.keys.get().is_active, strong.user.groups.count()) == ("payroll", True, 1)

    def test_the_name_of_a_stronger_application_is_not_used_again(self, keeper, strong, root):
        api = api_client_of(keeper)
        own = api.post("/applications", {"name": "own"}).json()["id"]

        assert api.post("/applications", {"name": "Payroll"}).status_code == 409
        assert api.put(f"/applications/{own}", {"name": "payroll"}).status_code == 409
        assert root.post("/applications", {"name": "payroll"}).status_code == 409

    def test_pages_offer_no_change_of_a_stronger_application(self, strong):
        names = [f"conductor.{verb}_application" for verb in ("add", "view", "change", "delete")]
        names += [f"conductor.{verb}_accesskey" for verb in ("view", "change", "delete")]
        key = strong.keys.create(id="k" * 32, secret_hash="", created_at=0)
        client = logged_in_client(person("ann", *names))
        page = f"/admin/conductor/application/{strong.id}"
        action = {"_selected_action": [key.pk]}

        replies = [
            client.post(f"{page}/change/", {"name": "other"}),
            client.post(f"{page}/delete/", {"post": "yes"}),
            client.post("/admin/conductor/accesskey/", {**action, "action": "toggle"}),
            client.post("/admin/conductor/accesskey/", {**action, "action": "remove"}),
        ]
        form = client.post("/admin/conductor/application/add/", {"name": "payroll"})

        assert [reply.status_code for reply in replies] == [403, 403, 302, 302]
        assert "cannot give a permission that it does not have" in form.content.decode()
        assert Application.objects.get().name == "payroll"
        assert strong.keys.get().is_active

    def test_grants_of_others_on_what_one_may_not_access_are_not_revoked(self, strong):
        other = create_application("other")
        grant_access(other, "WORKFLOW_DEF", "payroll", "READ")
        ann = person("ann", "conductor.view_grant", "conductor.delete_grant")
        row = Grant.objects.get(user=other.user)

        logged_in_client(ann).post("/admin/conductor/grant/", {"action": "revoke_grants", "_selected_action": [row.pk]})

        assert Grant.objects.filter(pk=row.pk).exists()


class TestLastAdministrator:
    """An administrator who can sign in remains, in whichever way one is removed."""

    @pytest.fixture
    def boss(self):
        made = User.objects.create_user("boss", password="s3cret-of-this-person", is_staff=True)
        made.groups.add(role_group("ADMIN"))
        return made

    @pytest.fixture
    def team(self, boss):
        """Return a group through which the administrator has the role."""
        group = Group.objects.create(name="heads")
        GroupProfile.objects.create(group=group).roles.add(role_group("ADMIN"))
        boss.groups.set([group])
        return group

    def test_the_api_refuses_to_remove_the_last_administrator(self, root, boss):
        replies = [
            root.delete("/users/boss"),
            root.put("/users/boss", {"name": "Boss", "roles": ["USER"]}),
        ]

        assert [reply.status_code for reply in replies] == [409, 409]
        assert "boss is the only administrator who can sign in" in replies[0].json()["message"]
        User.objects.create_superuser("other", password="s3cret-of-this-person")
        assert root.delete("/users/boss").status_code == 200

    def test_the_api_keeps_the_group_that_makes_the_last_administrator(self, root, team):
        replies = [
            root.delete("/groups/heads"),
            root.delete("/groups/heads/users/boss"),
            root.put("/groups/heads", {"description": "d", "roles": []}),
        ]

        assert [reply.status_code for reply in replies] == [409] * 3
        assert team.user_set.count() == 1

    @pytest.mark.parametrize("form", [{"is_staff": "on"}, {"is_active": "on", "is_staff": "on"}, {"is_active": "on"}])
    def test_the_page_of_a_user_refuses_to_remove_the_last_administrator(self, boss, form):
        client, page = logged_in_client(boss), f"/admin/auth/user/{boss.pk}/change/"

        client.post(page, {"username": "boss", **form})

        boss.refresh_from_db()
        assert (boss.is_active, boss.is_staff, boss.groups.count()) == (True, True, 1)
        assert "is the only administrator" in client.get(page).content.decode()

    def test_the_pages_do_not_delete_the_last_administrator_nor_the_group(self, boss, team):
        client = logged_in_client(boss)

        client.post(f"/admin/auth/user/{boss.pk}/delete/", {"post": "yes"})
        client.post(f"/admin/auth/group/{team.pk}/delete/", {"post": "yes"})
        client.post("/admin/auth/user/", {"action": "delete_selected", "_selected_action": [boss.pk], "post": "yes"})
        client.post(f"/admin/auth/user/{boss.pk}/password/", {"usable_password": "false"})

        boss.refresh_from_db()
        assert boss.groups.get() == team
        assert boss.has_usable_password()
