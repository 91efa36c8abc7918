"""People and programs with a role and a scope: invitations, changes, and the pages as a person sees them."""

import re
import subprocess
import sys

import pytest
from django.contrib.auth.models import Permission, User
from django.core import mail
from django.test import Client

from conductor_app.access.authentication import Actor, acting_as
from conductor_app.access.commands import people
from conductor_app.access.commands.people import AUTHOR, CUSTOM, NO_ACCESS, OPERATOR, VIEWER, WORKER, Access
from conductor_app.access.commands.users import Subject, grant, grant_to_creator
from conductor_app.access.models import Application, AuditEntry, Grant
from conductor_app.access.permissions import ADMIN, permission_set_of, role_group
from conductor_app.access.sign_in.commands import permit_link
from conductor_app.core.errors import Conflict, Forbidden, Invalid
from tests.access.users import logged_in_client
from tests.builders import human, simple
from tests.page_text import html, page_text
from tests.scenario import define_workflow, start_run

pytestmark = pytest.mark.django_db
SMTP = "django.core.mail.backends.smtp.EmailBackend"
INVITE, NEW_PROGRAM = "/admin/people/invite/", "/admin/people/new-program/"
SHOP = Access(VIEWER, ("shop_*",))
DAY_MS = 86_400_000
PASSWORD = "correct horse 47"


@pytest.fixture
def ada() -> User:
    """Return an administrator who is no superuser."""
    user = User.objects.create_user("ada", password="x", is_staff=True)
    user.groups.add(role_group(ADMIN))
    return user


@pytest.fixture
def administrator(ada) -> Client:
    return logged_in_client(ada)


def page_of(user: User) -> str:
    return f"/admin/people/{user.pk}/"


def form(role: str = VIEWER, names: str = "", tags: str = "", **fields: str) -> dict[str, str]:
    return {"role": role, "scope": "some" if names or tags else "all", "names": names, "tags": tags, **fields}


def invited_by(client: Client, **fields: str) -> tuple[User, str]:
    """Invite bob, and return him and his link."""
    page = client.post(INVITE, form(name="bob", email="bob@example.org", **fields))
    [link] = re.findall(r"http://testserver(/admin/login/invitation/[\w/-]+)<", html(page))
    return User.objects.get(username="bob"), link


def accept(link: str, password: str = PASSWORD) -> object:
    client = Client()
    step = client.get(link, follow=True)
    if not step.redirect_chain:
        return step
    address = step.redirect_chain[-1][0]
    return client.post(address, {"new_password1": password, "new_password2": password}, follow=True)


class TestInvitations:
    def test_a_person_gets_a_role_on_all_workflows_by_the_group_of_the_role(self, administrator):
        bob, _ = invited_by(administrator, role=OPERATOR)

        assert [group.name for group in bob.groups.all()] == ["Operators"]
        assert bob.is_staff and not bob.has_usable_password()
        assert not Grant.objects.exists()

    def test_a_person_gets_a_role_on_some_workflows_by_grants(self, administrator):
        bob, _ = invited_by(administrator, role=OPERATOR, names="shop_*\norder", tags="team:shop")

        assert bob.is_staff and not bob.groups.exists()
        permissions = permission_set_of(bob.pk)
        assert permissions.allows("EXECUTE", "WORKFLOW_DEF", "shop_refund")
        assert permissions.allows("READ", "WORKFLOW_SCHEDULE", "shop_nightly")
        assert permissions.allows("EXECUTE", "WORKFLOW_DEF", "order")
        assert not permissions.allows("UPDATE", "WORKFLOW_DEF", "shop_refund")
        assert not permissions.allows("EXECUTE", "TASK_DEF", "shop_pack")
        assert not permissions.allows("READ", "WORKFLOW_DEF", "payroll")

    def test_a_person_may_read_the_tasks_of_the_workflows(self, administrator):
        define_workflow("order", simple("pay"), version=1)
        define_workflow("order", simple("pack"), human("call"), simple("shop_ship"), version=2)
        define_workflow("payroll", simple("book"))

        page = administrator.post(INVITE, form(name="bob", names="order, shop_*", with_tasks="on"))

        bob = User.objects.get(username="bob")
        assert people.access_of(bob) == Access(VIEWER, ("order", "shop_*"), tasks=("pack",))
        allowed = permission_set_of(bob.pk).allows
        assert allowed("READ", "TASK_DEF", "pack") and not allowed("EXECUTE", "TASK_DEF", "pack")
        assert not any(allowed("READ", "TASK_DEF", name) for name in ("pay", "call", "book"))
        assert "And the tasks pack" in page_text(page)
        text = html(administrator.get(page_of(bob)))
        assert re.search(r'name="with_tasks"[^>]* checked', text) and "And the tasks" in text
        assert re.search(r'name="with_tasks"[^>]* checked', html(administrator.get(INVITE)))

    def test_a_person_page_offers_the_tasks_of_a_new_version(self, administrator):
        define_workflow("order", simple("pay"))
        define_workflow("payroll", simple("book"))
        administrator.post(INVITE, form(name="bob", names="order", with_tasks="on"))
        bob = User.objects.get(username="bob")
        assert "These workflows use tasks" not in page_text(administrator.get(page_of(bob)))

        define_workflow("order", simple("pay"), simple("pack"), version=2)
        assert "does not see definition, queue and workers: pack." in page_text(administrator.get(page_of(bob)))
        assert logged_in_client(bob).post(page_of(bob), {"do": "tasks"}).status_code == 403
        administrator.post(page_of(bob), {"do": "tasks"})

        assert people.access_of(bob) == Access(VIEWER, ("order",), tasks=("pack", "pay"))
        assert "These workflows use tasks" not in page_text(administrator.get(page_of(bob)))

    def test_a_person_sees_the_queues_and_workers_of_the_tasks_of_the_workflows(self, administrator):
        define_workflow("order", simple("pack"))
        start_run("order")
        define_workflow("payroll", simple("book"))
        start_run("payroll")
        bob = people.invite("bob", "", people.with_tasks(Access(OPERATOR, ("order",))), "ada")
        client = logged_in_client(bob)

        text = page_text(client.get("/admin/queues/"))
        assert "pack" in text and "book" not in text
        assert client.get("/admin/queue/?name=pack").status_code == 200
        assert client.get("/admin/queue/?name=book").status_code == 404

    def test_a_person_who_may_read_task_types_only_has_not_everything(self, administrator):
        bob = User.objects.create_user("bob")
        grant(Subject(user_id=bob.pk), "TASK_DEF", "pack", ["READ"], "bob", "ada")

        assert people.access_of(bob) == Access(CUSTOM)

    def test_the_link_lets_the_person_set_a_password_once(self, administrator):
        _, link = invited_by(administrator, names="shop_*")

        page = page_text(accept(link))
        assert "Your password is set. Your name for the sign-in is bob." in page and "Overview" in page

        assert User.objects.get(username="bob").check_password(PASSWORD)
        assert "This link is not valid." in page_text(accept(link))

    def test_a_weak_password_is_refused(self, administrator):
        _, link = invited_by(administrator)

        assert "This password is too short" in page_text(accept(link, "bob1"))
        assert not User.objects.get(username="bob").has_usable_password()

    def test_the_link_can_be_copied_where_no_mail_is_sent(self, administrator, settings):
        settings.EMAIL_BACKEND, settings.EMAIL_HOST, settings.EMAIL_PORT = SMTP, "127.0.0.1", 1

        page = administrator.post(INVITE, form(name="bob", email="bob@example.org"))

        assert "did not accept the mail. Copy the link and send it yourself." in page_text(page)
        assert 'data-copy="http://testserver/admin/login/invitation/' in html(page)

    def test_without_a_mail_server_the_page_does_not_blame_one(self, administrator, settings):
        settings.EMAIL_BACKEND, settings.EMAIL_HOST, settings.EMAIL_PORT = SMTP, "localhost", 1

        assert "No mail server is set (EMAIL_HOST): you get the link" in page_text(administrator.get(INVITE))
        page = page_text(administrator.post(INVITE, form(name="bob", email="bob@example.org")))

        assert "No mail server is set (EMAIL_HOST). Copy the link" in page and "did not accept" not in page

    def test_the_link_expires_after_three_days(self, administrator, clock):
        _, link = invited_by(administrator)

        clock.advance(seconds=3 * 86_400 + 1)

        assert "This link is not valid." in page_text(accept(link))

    def test_a_new_link_replaces_the_earlier_one(self, administrator):
        bob, first = invited_by(administrator)

        page = administrator.post(page_of(bob), {"do": "invite"})
        [second] = re.findall(r"http://testserver(/admin/login/invitation/[\w/-]+)<", html(page))

        assert "This link is not valid." in page_text(accept(first))
        assert "Your password is set." in page_text(accept(second))

    def test_a_deactivated_person_cannot_use_the_link(self, administrator):
        bob, link = invited_by(administrator)

        administrator.post(page_of(bob), {"do": "deactivate"})

        assert "This link is not valid." in page_text(accept(link))

    def test_the_link_is_mailed(self, administrator):
        _, link = invited_by(administrator)

        [message] = mail.outbox
        assert message.to == ["bob@example.org"]
        assert link in message.body

    def test_without_passwords_a_link_is_refused(self, administrator, settings):
        _, link = invited_by(administrator)
        settings.CONDUCTOR_LOCAL_SIGN_IN = False

        assert Client().get(link).status_code == 403

    def test_with_a_provider_the_person_may_use_single_sign_on(self, administrator, settings):
        settings.CONDUCTOR_OIDC_ISSUER = "https://login.example.org"

        page = administrator.post(INVITE, form(name="bob", sign_in="single sign-on", names="shop_*"))

        assert "bob signs in with single sign-on within seven days" in page_text(page)
        bob = User.objects.get(username="bob")
        assert bob.profile.link_until and bob.profile.is_invited
        with pytest.raises(Conflict):
            bob.set_password("x")
            permit_link(bob, "ada")

    @pytest.mark.parametrize(
        ("fields", "text"),
        [
            ({"scope": "some"}, "Enter a name, a prefix or a tag, or choose all."),
            ({"names": "*"}, "Choose all of them instead."),
            ({"names": "sh*p"}, "Not a name or prefix: 'sh*p'."),
            ({"tags": "shop"}, "Not a tag: 'shop'."),
            ({"role": ADMIN, "names": "shop_*"}, "An administrator has access to everything."),
            ({"role": WORKER}, "is not one of the available choices."),
            ({"name": "ADA"}, "Another user has the name ADA."),
            ({"name": "a b"}, "Enter a valid username."),
            ({"name": "app:1"}, "Enter a valid username."),
        ],
    )
    def test_what_is_not_valid_is_named_in_the_form(self, administrator, fields, text):
        page = administrator.post(INVITE, form(**{"name": "bob", **fields}) | fields)

        assert text in page_text(page)
        assert not User.objects.filter(username="bob").exists()

    def test_the_audit_log_has_the_role_and_the_scope(self, administrator):
        invited_by(administrator, names="shop_*")

        acts = AuditEntry.objects.filter(object_type="user", object_id="bob").order_by("id")
        assert [(act.actor, act.action) for act in acts] == [
            ("ada", "invite"),
            ("ada", "set access"),
            ("ada", "create invitation"),
        ]
        assert acts[1].facts == {"from": {}, "to": {"role": VIEWER, "names": ["shop_*"]}}


class TestEscalation:
    @pytest.fixture
    def manager(self) -> User:
        """Return a user who may invite people, and may itself operate one team's workflows."""
        user = User.objects.create_user("mia", is_staff=True)
        names = ("add_user", "view_user", "change_user", "add_grant")
        user.user_permissions.add(*Permission.objects.filter(codename__in=names))
        for row in people.grants_of(Access(OPERATOR, ("shop_*",))):
            grant(Subject(user_id=user.pk), row[0], row[1], [row[2]], "mia", "root")
        return user

    def test_a_manager_gives_what_it_has(self, manager):
        bob, _ = invited_by(logged_in_client(manager), role=OPERATOR, names="shop_eu_*")

        assert permission_set_of(bob.pk).allows("EXECUTE", "WORKFLOW_DEF", "shop_eu_order")

    @pytest.mark.parametrize(
        "fields", [{"role": VIEWER}, {"role": ADMIN}, {"names": "payroll"}, {"role": AUTHOR, "names": "shop_*"}]
    )
    def test_a_manager_cannot_give_more(self, manager, fields):
        page = logged_in_client(manager).post(INVITE, form(name="bob", **fields))

        assert "cannot give a permission that it does not have" in page_text(page)
        assert not User.objects.filter(username="bob").exists()

    def test_a_manager_cannot_change_a_person_with_more(self, manager, ada):
        client = logged_in_client(manager)

        for command in ({"do": "access", **form(names="shop_*")}, {"do": "deactivate"}, {"do": "invite"}):
            client.post(page_of(ada), command)

        ada.refresh_from_db()
        assert ada.is_active and people.access_of(ada) == Access(ADMIN)

    def test_without_the_permission_nobody_is_invited(self):
        viewer = User.objects.create_user("vic", is_staff=True)
        viewer.groups.add(role_group(VIEWER))

        assert logged_in_client(viewer).post(INVITE, form(name="bob")).status_code == 403
        assert logged_in_client(viewer).get("/admin/people/").status_code == 403

    def test_a_manager_gives_the_tasks_that_it_may_read(self, manager):
        define_workflow("shop_order", simple("pack"), simple("pay"))
        grant(Subject(user_id=manager.pk), "TASK_DEF", "pay", ["READ"], "mia", "root")

        bob, _ = invited_by(logged_in_client(manager), names="shop_order", with_tasks="on")

        assert people.access_of(bob).tasks == ("pay",)

    def test_an_application_gets_no_more_than_its_creator_has(self, manager):
        actor = Actor("mia", permission_set_of(manager.pk), manager.pk)

        with acting_as(lambda: actor), pytest.raises(Forbidden):
            people.add_program("fleet", Access(WORKER, ("payroll_*",)), "mia")

        assert not Application.objects.exists()


class TestChanges:
    @pytest.mark.parametrize("role", people.PERSON_ROLES)
    def test_a_role_on_all_is_read_back(self, role):
        bob = people.invite("bob", "", Access(role), "ada")

        assert people.access_of(bob) == Access(role)

    @pytest.mark.parametrize("role", [VIEWER, OPERATOR, AUTHOR])
    def test_a_role_on_some_is_read_back(self, role):
        access = Access(role, ("order", "shop_*"), ("team:shop",))

        assert people.access_of(people.invite("bob", "", access, "ada")) == access

    def test_a_worker_with_task_types_is_read_back(self):
        made, _, _ = people.add_program("fleet", Access(WORKER, ("shop_*",)), "ada")

        assert people.access_of(made.user) == Access(WORKER, ("shop_*",))

    def test_what_a_person_has_created_does_not_make_the_access_custom(self):
        bob = people.invite("bob", "", Access(AUTHOR, ("shop_*",)), "ada")

        grant_to_creator(Actor("bob", permission_set_of(bob.pk), bob.pk), [("WORKFLOW_DEF", "shop_order")])

        assert people.access_of(bob) == Access(AUTHOR, ("shop_*",))

    def test_other_grants_are_custom_and_changed_elsewhere(self, administrator):
        bob = people.invite("bob", "", SHOP, "ada")
        grant(Subject(user_id=bob.pk), "SECRET_NAME", "shop_key", ["EXECUTE"], "bob", "ada")

        assert people.access_of(bob) == Access(CUSTOM)
        page = administrator.get(page_of(bob))
        assert 'name="role"' not in html(page) and "changed under Advanced" in page_text(page)
        with pytest.raises(Conflict):
            people.set_access(bob.pk, Access(VIEWER), "ada")

    def test_a_person_moves_from_one_team_to_another(self, administrator):
        bob = people.invite("bob", "", Access(AUTHOR, ("shop_*",)), "ada")
        grant_to_creator(Actor("bob", permission_set_of(bob.pk), bob.pk), [("WORKFLOW_DEF", "shop_order")])

        administrator.post(page_of(bob), {"do": "access", **form(VIEWER, "bank_*")})

        assert people.access_of(bob) == Access(VIEWER, ("bank_*",))
        assert not permission_set_of(bob.pk).allows("READ", "WORKFLOW_DEF", "shop_order")

    def test_a_user_without_access_gets_some(self, administrator):
        bob = User.objects.create_user("bob")
        assert people.access_of(bob) == NO_ACCESS

        administrator.post(page_of(bob), {"do": "access", **form(OPERATOR)})

        bob.refresh_from_db()
        assert bob.is_staff and people.access_of(bob) == Access(OPERATOR)

    @pytest.mark.parametrize("change", [{"do": "access", **form(VIEWER)}, {"do": "deactivate"}])
    def test_the_last_administrator_stays_one(self, administrator, ada, change):
        people.invite("eve", "", Access(ADMIN), "ada")

        page = administrator.post(page_of(ada), change, follow=True)

        assert "is the only administrator who can sign in" in page_text(page)
        ada.refresh_from_db()
        assert ada.is_active and people.access_of(ada) == Access(ADMIN)

    def test_one_of_two_administrators_can_be_lowered(self, administrator):
        eve = people.invite("eve", "", Access(ADMIN), "ada")
        eve.set_password("x")
        eve.save()

        administrator.post(page_of(eve), {"do": "access", **form(VIEWER)})

        assert people.access_of(eve) == Access(VIEWER)

    def test_a_superuser_is_not_changed_here(self):
        root = User.objects.create_superuser("root", password="x")

        with pytest.raises(Conflict):
            people.set_access(root.pk, Access(VIEWER), "ada")

    def test_a_scope_of_an_administrator_is_refused(self):
        with pytest.raises(Invalid):
            people.invite("bob", "", Access(ADMIN, ("shop_*",)), "ada")


class TestList:
    def test_the_list_has_role_scope_activity_and_sign_in(self, administrator, clock):
        people.invite("bob", "bob@example.org", Access(OPERATOR, ("shop_*",), ("team:shop",)), "ada")
        people.add_program("fleet", Access(WORKER, ("shop_*",)), "ada")

        text = page_text(administrator.get("/admin/people/"))

        assert "bob Operator shop_*, team:shop – has not signed in yet" in text, text
        assert re.search(r"ada Administrator all \S+ \S+ ago password only|ada Administrator all .*password only", text)
        assert "fleet Worker shop_*" in text

    @pytest.mark.slow
    def test_the_number_of_statements_does_not_depend_on_the_number_of_people(
        self, administrator, django_assert_max_num_queries
    ):
        for number in range(30):
            people.invite(f"p{number}", "", SHOP, "ada")
            people.add_program(f"a{number}", Access(WORKER, ("shop_*",)), "ada")
        administrator.get("/admin/people/")

        with django_assert_max_num_queries(32):
            administrator.get("/admin/people/")

    def test_people_are_found_by_a_part_of_the_email_address(self, administrator):
        people.invite("bob", "bob@shop.example", SHOP, "ada")

        text = page_text(administrator.get("/admin/people/?q=shop.ex"))

        assert "bob" in text and "ada Administrator" not in text

    def test_the_person_has_the_names_of_the_scope(self, administrator):
        for name in ("shop_order", "shop_refund", "payroll"):
            define_workflow(name, simple("pack"))
        bob = people.invite("bob", "", SHOP, "ada")

        text = page_text(administrator.get(page_of(bob)))

        assert "Workflows now shop_order, shop_refund" in text and "payroll" not in text

    @pytest.mark.parametrize("user_id", ["0", "9" * 30])
    def test_an_unknown_person_is_not_found(self, administrator, user_id):
        assert administrator.get(f"/admin/people/{user_id}/").status_code == 404


class TestPrograms:
    def test_the_key_of_a_worker_polls_its_task_types_only(self, administrator, settings):
        settings.CONDUCTOR_API_ACCESS = "token"
        page = html(administrator.post(NEW_PROGRAM, form(WORKER, "shop_*", name="fleet")))
        key, secret = (re.search(rf"export CONDUCTOR_AUTH_{name}=([^\s\"<]+)", page)[1] for name in ("KEY", "SECRET"))
        reply = Client().post("/api/token", {"keyId": key, "keySecret": secret}, "application/json")
        client = Client(headers={"X-Authorization": reply.json()["token"]})

        assert client.get("/api/tasks/poll/batch/shop_pack").status_code == 200
        assert client.get("/api/tasks/poll/batch/payroll_pay").status_code == 403
        assert "task_definition_name=&quot;shop_example&quot;" in page

    @pytest.mark.parametrize("role", people.PROGRAM_ROLES)
    def test_the_code_is_valid_python(self, administrator, role):
        page = html(administrator.post(NEW_PROGRAM, form(role, name="fleet")))
        assert page.count('class="code"') == 2
        source = administrator.post(NEW_PROGRAM, form(role, name="other")).context["sample"]

        assert (
            subprocess.run([sys.executable, "-m", "py_compile", "/dev/stdin"], input=source, text=True).returncode == 0
        )

    def test_the_name_of_an_application_is_free(self, administrator):
        people.add_program("fleet", Access(WORKER), "ada")

        assert "Another application has the name fleet." in page_text(
            administrator.post(NEW_PROGRAM, form(WORKER, name="fleet"))
        )


class TestShownPages:
    @pytest.fixture
    def bob(self) -> User:
        for name in ("shop_order", "payroll"):
            define_workflow(name, simple("pack"))
            start_run(name)
        return people.invite("bob", "", Access(OPERATOR, ("shop_*",)), "ada")

    @pytest.fixture
    def shown(self, administrator, bob) -> Client:
        """Return the client of an administrator who sees the pages as bob."""
        assert administrator.post(page_of(bob), {"do": "show"}).status_code == 302
        return administrator

    def test_the_pages_are_those_of_the_person(self, shown):
        page = shown.get("/admin/")

        assert "You see the pages as bob . Nothing can be changed." in page_text(page)
        assert "/admin/people/" not in re.findall(r'href="([^"]*)"', html(page))
        assert shown.get("/admin/people/").status_code == 403

    @pytest.mark.parametrize(
        "path", ["/admin/views/", "/admin/preferences/", "/admin/password_change/", "/admin/conductor/run/"]
    )
    def test_nothing_can_be_changed(self, shown, path):
        page = shown.post(path, {"zone": "Europe/Berlin"})

        assert page.status_code == 403
        assert "Nothing can be changed while you see the pages as bob." in page.content.decode()
        assert page.headers["Content-Security-Policy"]

    @pytest.mark.parametrize("path", ["/admin/second-factor/", "/admin/password_change/"])
    def test_pages_about_the_own_account_are_closed(self, shown, path):
        assert shown.get(path).status_code == 403

    def test_every_part_of_the_overview_is_displayed(self, shown):
        assert "could not be displayed" not in page_text(shown.get("/admin/"))

    def test_the_way_back_restores_the_own_pages(self, shown):
        page = shown.post("/admin/people/stop-showing/", follow=True)

        assert "You see the pages as" not in page_text(page)
        actions = AuditEntry.objects.filter(object_id="bob").order_by("id").values_list("actor", "action")
        assert list(actions)[-2:] == [("ada", "start showing pages"), ("ada", "stop showing pages")]

    def test_signing_out_ends_it(self, shown, ada):
        shown.post("/admin/logout/")
        shown.force_login(ada)

        assert "You see the pages as" not in page_text(shown.get("/admin/"))

    def test_the_api_is_not_affected(self, shown, settings):
        settings.CONDUCTOR_API_ACCESS = "token"

        assert shown.get("/api/token/userInfo").json()["id"] == "ada"

    @pytest.mark.parametrize("change", ["deactivate", "lower"])
    def test_it_ends_when_it_is_no_longer_permitted(self, shown, bob, ada, change):
        if change == "deactivate":
            User.objects.filter(pk=bob.pk).update(is_active=False)
        else:
            ada.groups.set([role_group(VIEWER)])

        assert "You see the pages as" not in page_text(shown.get("/admin/"))

    def test_only_administrators_see_pages_of_others(self, bob):
        mia = User.objects.create_user("mia", is_staff=True)
        mia.user_permissions.add(*Permission.objects.filter(content_type__app_label="auth"))

        assert logged_in_client(mia).post(page_of(bob), {"do": "show"}).status_code == 403

    def test_nobody_sees_the_pages_of_a_superuser_or_of_a_program(self, administrator, ada):
        root = User.objects.create_superuser("root")
        made, _, _ = people.add_program("fleet", Access(WORKER), "ada")

        for user in (root, made.user, ada):
            assert administrator.post(page_of(user), {"do": "show"}).status_code == 403
            assert administrator.get(page_of(user)).status_code == 200
