"""A server with authentication: access keys, tokens, and the errors on which clients renew a token (api §7)."""

import jwt
import pytest
from django.contrib.auth.models import User
from django.test import Client

from conductor_app.access import permissions as permission_cache
from conductor_app.access import tokens
from conductor_app.access import tokens as access_keys
from conductor_app.access.models import AccessKey, Application, AuditEntry


@pytest.fixture(autouse=True)
def needs_a_token(settings, db):
    settings.CONDUCTOR_API_ACCESS = "token"


@pytest.fixture
def key():
    return access_keys.create_key("billing")


def ask(key_id, secret):
    return Client().post("/api/token", {"keyId": key_id, "keySecret": secret}, content_type="application/json")


def definitions(token):
    return Client(headers={"X-Authorization": token}).get("/api/metadata/taskdefs")


def test_a_key_and_its_secret_are_exchanged_for_a_token(key, clock):
    reply = ask(*key)

    assert (reply.status_code, reply["Content-Type"]) == (200, "application/json")
    assert definitions(reply.json()["token"]).status_code == 200


def test_a_token_is_valid_long_enough_for_every_client(key, clock):
    token = ask(*key).json()["token"]

    claims = jwt.decode(token, options={"verify_signature": False})
    assert (claims["sub"], claims["exp"] - clock.now() // 1000) == (key[0], 86_400)
    clock.advance(seconds=46 * 60)
    assert definitions(token).status_code == 200


def test_an_old_token_has_expired(key, clock):
    token = ask(*key).json()["token"]
    definitions(token)
    clock.advance(seconds=86_400)

    reply = definitions(token)

    assert (reply.status_code, reply.json()["status"], reply.json()["error"]) == (401, 401, "EXPIRED_TOKEN")


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "Bearer x", "é", "x" * 10_000])
def test_a_malformed_token_is_invalid(token):
    reply = definitions(token)

    assert (reply.status_code, reply.json()["status"], reply.json()["error"]) == (401, 401, "INVALID_TOKEN")


def test_a_token_signed_by_another_key_is_invalid(key, clock):
    claims = {"sub": key[0], "name": "billing", "exp": clock.now() // 1000 + 1000}

    for forged in (jwt.encode(claims, "x" * 32, "HS256"), jwt.encode(claims, None, "none")):
        assert definitions(forged).json()["error"] == "INVALID_TOKEN"


def test_a_token_without_an_end_is_not_valid(key):
    endless = jwt.encode({"sub": key[0], "name": "billing"}, tokens.signing_keys()[0], "HS256")

    assert definitions(endless).json()["error"] == "INVALID_TOKEN"


def test_a_missing_token_is_rejected_with_the_same_message():
    reply = Client().get("/api/metadata/taskdefs")

    assert (reply.status_code, reply.json()["error"]) == (401, "INVALID_TOKEN")


@pytest.mark.parametrize("path", ["/health", "/api/health", "/api/version"])
def test_public_paths_require_no_token(path):
    assert Client().get(path).status_code == 200


WRONG = {
    "another secret": lambda key: (key[0], "guess"),
    "another key": lambda key: ("nobody", key[1]),
    "a NUL": lambda key: (key[0] + "\0", key[1] + "\0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_credentials_are_rejected_without_a_retry_of_the_client(key, case):
    reply = ask(*WRONG[case](key))

    assert (reply.status_code, reply.json()["status"], reply.json()["error"]) == (401, 401, "INVALID_CREDENTIALS")


def test_credentials_of_another_kind_are_refused():
    assert ask(None, 3).status_code == 400


def test_a_revoked_key_gets_no_token_and_its_tokens_expire_soon(key, clock):
    token = ask(*key).json()["token"]
    definitions(token)
    withdrawn = AccessKey.objects.get()
    withdrawn.is_active = False
    withdrawn.save()

    assert ask(*key).status_code == 401
    assert definitions(token).json()["error"] == "INVALID_TOKEN"


def test_another_process_rejects_a_revoked_key_within_a_second(key, clock):
    token = ask(*key).json()["token"]
    definitions(token)
    remembered = permission_cache.current_cache()
    AccessKey.objects.get().delete()
    permission_cache._known.value = remembered

    assert definitions(token).status_code == 200
    clock.advance(seconds=1)
    assert definitions(token).json()["error"] == "INVALID_TOKEN"


def test_a_manual_change_takes_effect_within_half_a_minute(key, clock):
    token = ask(*key).json()["token"]
    definitions(token)
    AccessKey.objects.update(is_active=False)

    clock.advance(seconds=31)
    assert definitions(token).json()["error"] == "INVALID_TOKEN"


def test_a_disabled_application_is_rejected(key, clock):
    token = ask(*key).json()["token"]
    user = Application.objects.get().user
    user.is_active = False
    user.save()

    assert definitions(token).status_code == 401
    assert ask(*key).status_code == 401


def test_a_secret_is_stored_hashed(key):
    assert key[1] not in str(AccessKey.objects.values_list().get())


def test_actions_of_a_client_are_audited_under_its_application(key, clock):
    client = Client(headers={"X-Authorization": ask(*key).json()["token"]})

    client.post("/api/metadata/taskdefs", [{"name": "pay"}], content_type="application/json")

    assert AuditEntry.objects.get().actor == "billing"


class TestInABrowser:
    """A signed-in user of the operators' pages calls the API from the browser."""

    @pytest.fixture
    def browser(self):
        browser = Client(enforce_csrf_checks=True)
        browser.force_login(User.objects.create_superuser("ann"))
        return browser

    def test_an_administrator_can_use_the_api_documentation(self, browser):
        assert browser.get("/api/metadata/taskdefs").status_code == 200

    def test_a_form_of_another_site_may_not_change_anything(self, browser):
        reply = browser.post("/api/metadata/taskdefs", [{"name": "pay"}], content_type="application/json")

        assert (reply.status_code, reply.json()["status"]) == (403, 403)

    def test_our_own_page_may(self, browser):
        browser.get("/admin/login/")
        browser.get("/admin/password_change/")
        token = browser.cookies["csrftoken"].value

        reply = browser.post(
            "/api/metadata/taskdefs",
            [{"name": "pay"}],
            content_type="application/json",
            headers={"X-CSRFToken": token},
        )

        assert (reply.status_code, AuditEntry.objects.exclude(object_type="user").get().actor) == (200, "ann")

    def test_the_api_documentation_requires_a_login(self, browser):
        assert browser.get("/api/docs").status_code == 200
        assert browser.get("/api/openapi.json").status_code == 200
        assert Client().get("/api/docs")["Location"] == "/admin/login/?next=/api/docs"
        assert Client().get("/api/openapi.json").status_code == 401

    def test_an_account_that_is_not_of_the_staff_is_refused(self):
        browser = Client()
        browser.force_login(User.objects.create_user("bob"))

        assert browser.get("/api/metadata/taskdefs").status_code == 401
