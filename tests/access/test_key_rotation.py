"""Rotation of SECRET_KEY: what the previous key has signed stays valid while it is listed in SECRET_KEY_FALLBACKS."""

import pytest
from django.test import Client

from conductor_app.access import tokens as access_keys
from conductor_app.access import tokens as signed_links
from conductor_app.core.errors import Forbidden, Unauthenticated
from conductor_app.taskcluster.auth import scopes as clients
from conductor_app.taskcluster.auth import signatures as temporary_credentials
from conductor_app.utils import process_state
from tests.taskcluster.signing import identified_caller

NEW_KEY = "the next key of this server"


@pytest.fixture(autouse=True)
def with_authentication(settings, db):
    settings.CONDUCTOR_API_ACCESS = "token"


@pytest.fixture
def rotate(settings):
    """Return a function that replaces SECRET_KEY and restarts the server, with or without the previous key."""

    def rotate_key(*, with_fallback: bool) -> None:
        settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY] if with_fallback else []
        settings.SECRET_KEY = NEW_KEY
        process_state.reset()

    return rotate_key


def exchange(key_id, secret):
    return Client().post("/api/token", {"keyId": key_id, "keySecret": secret}, content_type="application/json")


@pytest.mark.parametrize("with_fallback", [True, False])
def test_access_keys_do_not_depend_on_the_secret_key(rotate, clock, with_fallback):
    key = access_keys.create_key("billing")

    rotate(with_fallback=with_fallback)

    assert exchange(*key).status_code == 200


def test_a_token_is_valid_while_the_previous_key_is_listed(rotate, settings, clock):
    token = exchange(*access_keys.create_key("billing")).json()["token"]
    call = Client(headers={"X-Authorization": token})

    rotate(with_fallback=True)
    assert call.get("/api/metadata/taskdefs").status_code == 200

    rotate(with_fallback=False)
    assert call.get("/api/metadata/taskdefs").json()["error"] == "INVALID_TOKEN"


def test_a_signed_link_is_valid_while_the_previous_key_is_listed(rotate, clock):
    link = signed_links.sign_link("payload", "READ")

    rotate(with_fallback=True)
    signed_links.verify_link("payload", "READ", link)

    rotate(with_fallback=False)
    with pytest.raises(Forbidden):
        signed_links.verify_link("payload", "READ", link)


def test_credentials_of_a_claimed_task_are_valid_while_the_previous_key_is_listed(rotate, clock):
    now, scope = clock.now(), "queue:resolve-task:x/0"
    issued = dict(
        temporary_credentials.issue_credentials(
            clients.ISSUER_CLIENT_ID, clients.issuing_keys()[0], "task-client/x", [scope], start=now, expiry=now + 1000
        )
    )

    rotate(with_fallback=True)
    assert scope in identified_caller(issued).scope_list

    rotate(with_fallback=False)
    with pytest.raises(Unauthenticated):
        identified_caller(issued)
