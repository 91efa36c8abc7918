"""Single sign-on with a real OpenID Connect provider, which runs in its own process."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from django.contrib.auth.models import Group, User
from django.test import Client

from conductor_app.access.commands.applications import create_application
from conductor_app.access.models import AuditEntry, ExternalIdentity
from conductor_app.access.permissions import permission_set_of, role_group
from conductor_app.access.sign_in import openid_provider
from tests.access.users import logged_in_client
from tests.free_port import free_port

START, CALLBACK = "/admin/login/openid/", "/admin/login/openid/callback/"
PROGRAM = Path(__file__).with_name("openid_provider.py")
pytestmark = [pytest.mark.slow, pytest.mark.django_db]


class Provider:
    """A running provider, and its users."""

    def __init__(self, port: int, folder: Path) -> None:
        self.issuer, self._users = f"http://127.0.0.1:{port}/o", folder / "users.json"

    def set_users(self, **users: dict[str, Any]) -> None:
        self._users.write_text(json.dumps(users))

    def sign_in(self, client: Client, name: str, start: str = START) -> Any:
        """Sign in at the provider as a browser does, and return the response of this server to the callback."""
        answer = requests.get(self.authorization_address(client, start), allow_redirects=False, timeout=10)
        browser = requests.Session()
        browser.cookies.update(answer.cookies)
        step = requests.compat.urljoin(self.issuer, answer.headers["Location"]) + f"&user={name}"
        while step.startswith(self.issuer.removesuffix("/o")):
            answer = browser.get(step, allow_redirects=False, timeout=10)
            assert answer.is_redirect, answer.text
            step = requests.compat.urljoin(step, answer.headers["Location"])
        parts = urlsplit(step)
        return client.get(f"{parts.path}?{parts.query}")

    def authorization_address(self, client: Client, start: str = START) -> str:
        response = client.get(start)
        assert response.status_code == 302, response.content
        return response["Location"]


@pytest.fixture(scope="module")
def running_provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with running_openid_provider(tmp_path_factory.mktemp("provider"), f"http://testserver{CALLBACK}") as provider:
        yield provider


@contextmanager
def running_openid_provider(folder: Path, *callbacks: str) -> Iterator[Provider]:
    """Run the provider, with a client for each callback: `conductor`, `conductor-2`, …"""
    port = free_port()
    provider = Provider(port, folder)
    provider.set_users()
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), str(port), str(folder), *callbacks], stderr=subprocess.DEVNULL
    )
    try:
        _wait_until_it_answers(f"{provider.issuer}/.well-known/openid-configuration", process)
        yield provider
    finally:
        process.kill()
        process.wait()


def _wait_until_it_answers(address: str, process: subprocess.Popen) -> None:
    for _ in range(600):
        assert process.poll() is None, "the provider has ended"
        try:
            return requests.get(address, timeout=5).raise_for_status()
        except requests.ConnectionError:
            time.sleep(0.05)
    raise AssertionError("the provider does not answer")


@pytest.fixture
def provider(running_provider: Provider, settings: Any) -> Provider:
    openid_provider.configured_client.cache_clear()
    settings.CONDUCTOR_OIDC_ISSUER = running_provider.issuer
    settings.CONDUCTOR_OIDC_CLIENT_ID, settings.CONDUCTOR_OIDC_CLIENT_SECRET = "conductor", "client-secret"
    settings.CONDUCTOR_OIDC_NAME = "Example Inc."
    settings.CONDUCTOR_EXTERNAL_GROUP_ROLES = {"platform": ["ADMIN"], "readers": ["USER_READ_ONLY"]}
    running_provider.set_users(
        olga={
            "preferred_username": "olga",
            "given_name": "Olga",
            "family_name": "Smith",
            "email": "olga@example.org",
            "groups": ["platform", "billing"],
        }
    )
    return running_provider


def test_a_user_signs_in_with_the_provider_and_gets_the_roles_of_its_groups(provider):
    billing = Group.objects.create(name="billing")
    client = Client()

    response = provider.sign_in(client, "olga", f"{START}?next=/admin/queues/")

    assert (response.status_code, response["Location"]) == (302, "/admin/queues/")
    assert client.get("/admin/queues/").status_code == 200
    user = User.objects.get(username="olga")
    assert (user.first_name, user.last_name, user.email) == ("Olga", "Smith", "olga@example.org")
    assert {*user.groups.all()} == {billing, role_group("ADMIN")}
    assert permission_set_of(user.pk).is_admin
    assert not (user.is_superuser or user.has_usable_password())


def test_the_sign_in_is_in_the_audit_log(provider):
    provider.sign_in(Client(), "olga")

    rows = AuditEntry.objects.filter(object_type="user", object_id="olga").order_by("id")
    actions = [(row.action, row.reason) for row in rows]
    assert actions == [("link identity", ""), ("update groups at sign-in", ""), ("sign in", "OpenID Connect")]


def test_a_user_loses_a_role_with_the_group_of_the_provider_at_the_next_sign_in(provider):
    provider.sign_in(Client(), "olga")
    provider.set_users(olga={"preferred_username": "olga", "groups": ["readers"]})

    provider.sign_in(Client(), "olga")

    user = User.objects.get(username="olga")
    assert {*user.groups.all()} == {role_group("USER_READ_ONLY")}
    assert not permission_set_of(user.pk).is_admin


def test_a_user_of_no_permitted_group_is_refused_and_can_no_longer_open_pages(provider):
    client = Client()
    provider.sign_in(client, "olga")
    provider.set_users(olga={"preferred_username": "olga", "groups": ["visitors"]})

    response = provider.sign_in(Client(), "olga")

    assert response.status_code == 403
    assert "olga belongs to no group that may sign in here." in response.content.decode()
    assert client.get("/admin/preferences/").status_code == 302


def test_a_user_keeps_the_account_when_the_name_changes_at_the_provider(provider):
    provider.sign_in(Client(), "olga")
    provider.set_users(olga={"preferred_username": "olga.jones", "groups": ["platform"]})

    assert provider.sign_in(Client(), "olga").status_code == 302
    assert [*User.objects.filter(is_staff=True).values_list("username", flat=True)] == ["olga"]


def test_a_local_account_with_a_password_is_not_taken_over(provider):
    User.objects.create_superuser("olga", password="x")

    response = provider.sign_in(Client(), "olga")

    assert response.status_code == 403
    assert "Another account of this server has the name olga." in response.content.decode()
    assert not ExternalIdentity.objects.exists()


@pytest.fixture
def prepared() -> User:
    """A user that an administrator has created, with the API or on the page, and that cannot sign in yet."""
    return User.objects.create_user("olga", password=None)


@pytest.fixture
def administrator(db) -> Client:
    return logged_in_client(User.objects.create_superuser("root"))


def permit(administrator: Client, user: User) -> Any:
    page = f"/admin/auth/user/{user.pk}/change/"
    form = administrator.get(page).context["adminform"].form.initial
    sent = {"username": form["username"], "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00", "is_active": "on"}
    return administrator.post(page, sent | {"_permit_link": "1"}, follow=True)


def test_a_user_without_a_password_is_not_taken_over_by_its_name(provider, prepared):
    response = provider.sign_in(Client(), "olga")

    assert response.status_code == 403
    assert "Another account of this server has the name olga." in response.content.decode()
    assert not ExternalIdentity.objects.exists()


def test_an_administrator_permits_the_link_of_a_prepared_user_once(provider, administrator, prepared):
    response = permit(administrator, prepared)
    assert "The next single sign-on with this name uses this account." in response.content.decode()

    assert provider.sign_in(Client(), "olga").status_code == 302
    assert ExternalIdentity.objects.get().user == prepared
    assert AuditEntry.objects.get(action="permit single sign-on").actor == "root"
    ExternalIdentity.objects.all().delete()
    assert provider.sign_in(Client(), "olga").status_code == 403


def test_the_permission_to_link_expires(provider, administrator, prepared, clock):
    permit(administrator, prepared)
    clock.advance(seconds=7 * 86_400 + 1)

    assert provider.sign_in(Client(), "olga").status_code == 403


def test_a_local_account_cannot_be_permitted_to_be_linked(provider, administrator):
    user = User.objects.create_user("olga", password="x")

    assert "has a way to sign in already" in permit(administrator, user).content.decode()
    assert provider.sign_in(Client(), "olga").status_code == 403


@pytest.mark.parametrize("name", ["Olga", "ＯＬＧＡ", "ol\u200bga"])
def test_a_name_that_looks_like_that_of_another_account_is_refused(provider, prepared, name):
    provider.set_users(olga={"preferred_username": name, "groups": ["platform"]})

    assert provider.sign_in(Client(), "olga").status_code == 403
    assert User.objects.count() == 1


def test_the_name_of_an_application_is_refused(provider):
    create_application("Olga", "ann")

    response = provider.sign_in(Client(), "olga")

    assert response.status_code == 403
    assert "An application has the name olga." in response.content.decode()


def test_a_second_identity_cannot_use_the_name_of_a_linked_user(provider):
    provider.sign_in(Client(), "olga")
    provider.set_users(mallory={"preferred_username": "olga", "groups": ["platform"]})

    assert provider.sign_in(Client(), "mallory").status_code == 403


def test_a_deactivated_user_is_refused(provider):
    provider.sign_in(Client(), "olga")
    User.objects.update(is_active=False)

    assert provider.sign_in(Client(), "olga").status_code == 403


def test_the_name_of_an_applications_user_is_refused(provider):
    provider.set_users(olga={"preferred_username": "app:shop", "groups": ["platform"]})

    assert provider.sign_in(Client(), "olga").status_code == 403


def test_a_code_of_another_browser_is_refused(provider):
    victim, attacker = Client(), Client()
    address = provider.authorization_address(attacker)
    state = parse_qs(urlsplit(address).query)["state"][0]

    response = victim.get(CALLBACK, {"code": "code-of-the-attacker", "state": state})

    assert response.status_code == 403
    assert victim.get("/admin/preferences/").status_code == 302


def test_the_request_to_the_provider_has_a_nonce_and_a_challenge(provider):
    query = parse_qs(urlsplit(provider.authorization_address(Client())).query)

    assert query["code_challenge_method"] == ["S256"]
    assert query["nonce"] and query["state"] and query["code_challenge"]
    assert query["redirect_uri"] == [f"http://testserver{CALLBACK}"]


@pytest.mark.parametrize("query", ["", "?code=x", "?state=x", "?error=access_denied&error_description=%00%ff<b>"])
def test_an_invalid_callback_shows_the_sign_in_page_with_an_error(provider, query):
    response = Client().get(CALLBACK + query)

    assert response.status_code == 403
    assert "The sign-in was cancelled, has expired, or was not valid. Sign in again." in response.content.decode()


def test_a_provider_that_does_not_respond_is_reported_on_the_sign_in_page(provider, settings):
    settings.CONDUCTOR_OIDC_ISSUER = "http://127.0.0.1:9"

    response = Client().get(START)

    assert response.status_code == 403
    assert "The sign-in server does not respond." in response.content.decode()
    assert "Sign in with Example Inc." in response.content.decode()


def test_the_second_step_of_this_server_is_not_required_from_users_of_the_provider(provider, settings):
    settings.CONDUCTOR_SECOND_FACTOR_REQUIRED = True
    client = Client()

    provider.sign_in(client, "olga")

    assert client.get("/admin/").status_code == 200
    assert client.get("/admin/second-factor/").status_code == 403
