"""Sign-in with a password: its throttle, its audit entries, and the expiry of sessions."""

from datetime import timedelta

import pytest
import time_machine
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse

from conductor_app.access.models import AuditEntry
from tests.conftest import NOON

LOGIN = "/admin/login/"
PASSWORD = "correct horse"
pytestmark = pytest.mark.django_db


@pytest.fixture
def user() -> User:
    user = User.objects.create_user("olga", password=PASSWORD, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    return user


def sign_in(client: Client, password: str = PASSWORD, name: str = "olga", address: str = "192.0.2.7", **form: str):
    return client.post(LOGIN, {"username": name, "password": password, **form}, REMOTE_ADDR=address)


def is_signed_in(client: Client) -> bool:
    return client.get("/admin/preferences/").status_code == 200


def entries(*actions: str) -> list[tuple[str, str, str]]:
    rows = AuditEntry.objects.filter(object_type="user", action__in=actions).order_by("id")
    return [(row.object_id, row.action, row.reason) for row in rows]


def fail_to_sign_in(times: int, name: str = "olga", address: str = "192.0.2.7") -> list[int]:
    return [sign_in(Client(), "wrong", name, address).status_code for _ in range(times)]


def test_the_sign_in_page_names_the_environment(client, settings):
    settings.CONDUCTOR_ENVIRONMENT_NAME = "staging"

    assert ">staging</p>" in client.get(LOGIN).content.decode()


def test_the_sign_in_page_says_how_a_password_is_reset(client):
    assert "conductor-app user NAME --reset-password" in client.get(LOGIN).content.decode()


def test_a_user_signs_in_and_opens_the_requested_page(user):
    client = Client()

    response = sign_in(client, next="/admin/queues/?x=1")

    assert (response.status_code, response["Location"]) == (302, "/admin/queues/?x=1")
    assert is_signed_in(client)


@pytest.mark.parametrize("target", ["https://evil.example.org/", "//evil.example.org", "javascript:alert(1)", "\0"])
def test_a_page_of_another_server_is_not_opened_after_sign_in(user, target):
    assert sign_in(Client(), next=target)["Location"] == "/admin/"


def test_five_failures_lock_the_account_for_the_address_even_with_the_right_password(user):
    assert fail_to_sign_in(6) == [200, 200, 200, 200, 429, 429]
    refused = sign_in(Client())

    assert (refused.status_code, refused["Retry-After"]) == (429, "900")
    assert "Too many failed sign-ins. Try again in 15 minutes." in refused.content.decode()
    assert sign_in(Client(), address="192.0.2.8").status_code == 302


def test_failures_from_many_addresses_lock_the_account_for_all(user):
    for number in range(20):
        fail_to_sign_in(1, address=f"198.51.100.{number}")

    assert sign_in(Client(), address="203.0.113.1").status_code == 429


def test_failures_for_many_accounts_lock_the_address(user):
    for number in range(50):
        fail_to_sign_in(1, name=f"user{number}")

    assert sign_in(Client()).status_code == 429
    assert sign_in(Client(), address="203.0.113.1").status_code == 302


def test_the_hosts_of_a_network_of_version_six_count_as_one_address(user):
    for number in range(5):
        fail_to_sign_in(1, address=f"2001:db8::{number:x}")

    assert sign_in(Client(), address="2001:db8::abcd").status_code == 429
    assert sign_in(Client(), address="2001:db8:0:1::1").status_code == 302


def test_another_user_agent_does_not_evade_the_lock(user):
    for number in range(5):
        Client(headers={"User-Agent": f"Guess {number}" + "x" * 400}).post(
            LOGIN, {"username": "olga", "password": "wrong"}, REMOTE_ADDR="192.0.2.7"
        )

    assert sign_in(Client()).status_code == 429


def test_the_lock_ends_after_its_time(user):
    with time_machine.travel(NOON / 1000, tick=False) as traveller:
        fail_to_sign_in(5)
        traveller.shift(timedelta(minutes=14, seconds=59))
        assert sign_in(Client()).status_code == 429

        traveller.shift(timedelta(seconds=2))
        assert sign_in(Client()).status_code == 302


def test_a_sign_in_forgets_earlier_failures_of_the_account_but_not_those_of_others_at_the_address(user):
    for number in range(45):
        fail_to_sign_in(1, name=f"user{number}")
    fail_to_sign_in(4)
    sign_in(Client())

    assert fail_to_sign_in(4) == [200, 200, 200, 200]
    assert fail_to_sign_in(1, name="user99") == [429]


def test_an_attempt_while_the_account_is_locked_does_not_extend_the_lock(user):
    with time_machine.travel(NOON / 1000, tick=False) as traveller:
        fail_to_sign_in(5)
        traveller.shift(timedelta(minutes=10))
        fail_to_sign_in(3)
        traveller.shift(timedelta(minutes=5, seconds=1))

        assert sign_in(Client()).status_code == 302


def test_the_address_of_the_client_is_the_last_one_that_no_trusted_proxy_has_added(user, settings):
    settings.CONDUCTOR_TRUSTED_PROXIES = ("10.0.0.0/8",)
    forwarded = {"REMOTE_ADDR": "10.1.2.3", "headers": {"X-Forwarded-For": "1.1.1.1, 192.0.2.7, 10.0.0.9"}}
    Client().post(LOGIN, {"username": "olga", "password": "wrong"}, **forwarded)

    assert AuditEntry.objects.get(action="fail to sign in").facts == {"address": "192.0.2.7"}


def test_a_client_cannot_choose_its_address(user):
    for number in range(5):
        Client(headers={"X-Forwarded-For": f"1.1.1.{number}"}).post(
            LOGIN, {"username": "olga", "password": "wrong"}, REMOTE_ADDR="192.0.2.7"
        )

    assert sign_in(Client()).status_code == 429


def test_sign_ins_failures_locks_and_sign_outs_are_in_the_audit_log(user):
    client = Client()
    fail_to_sign_in(1)
    sign_in(client)
    client.post("/admin/logout/")
    fail_to_sign_in(7)

    recorded = entries("sign in", "fail to sign in", "sign out")
    assert recorded[:3] == [
        ("olga", "fail to sign in", ""),
        ("olga", "sign in", "Password"),
        ("olga", "sign out", ""),
    ]
    assert recorded[3:] == [("olga", "fail to sign in", "")] * 4 + [
        ("olga", "fail to sign in", "Locked for 15 minutes.")
    ]


def test_a_password_in_the_field_for_the_name_is_not_recorded(user, caplog):
    sign_in(Client(), "wrong", name="hunter2-secret")

    assert entries("fail to sign in") == [("(unknown user)", "fail to sign in", "")]
    assert "hunter2" not in caplog.text


def test_an_administrator_unlocks_an_account(operator):
    other = User.objects.create_user("otto", password=PASSWORD, is_staff=True)
    fail_to_sign_in(5, name="otto")
    address = reverse("admin:auth_user_change", args=[other.pk])
    assert "Sign-in is locked" in operator.get(address).content.decode()

    form = {"username": "otto", "is_staff": "on", "is_active": "on", "_unlock": ""}
    assert operator.post(address, form).status_code == 302

    assert sign_in(Client(), name="otto").status_code == 302


@pytest.fixture
def session_limits(settings) -> None:
    settings.CONDUCTOR_SESSION_IDLE_MINUTES, settings.CONDUCTOR_SESSION_HOURS = 120, 12


def test_a_session_ends_after_two_hours_without_use(user, session_limits, clock):
    client = Client()
    sign_in(client)
    clock.advance(seconds=119 * 60)
    assert is_signed_in(client)
    clock.advance(seconds=119 * 60)
    assert is_signed_in(client)
    clock.advance(seconds=120 * 60)

    assert not is_signed_in(client)
    assert "Your session has expired. Sign in again." in client.get(LOGIN).content.decode()


def test_requests_that_a_page_sends_by_itself_do_not_keep_a_session_alive(user, session_limits, clock):
    client = Client()
    sign_in(client)
    for _ in range(8):
        clock.advance(seconds=15 * 60)
        client.get("/admin/status-bar/", headers={"X-Requested-With": "fetch"})

    assert not is_signed_in(client)


def test_a_session_ends_after_twelve_hours_of_use(user, session_limits, clock):
    client = Client()
    sign_in(client)
    for _ in range(11):
        clock.advance(seconds=60 * 60)
        assert is_signed_in(client)
    clock.advance(seconds=60 * 60)

    assert not is_signed_in(client)


def test_a_request_of_the_api_with_an_expired_session_is_not_authenticated(user, session_limits, clock, settings):
    settings.CONDUCTOR_API_ACCESS = "token"
    client = Client()
    sign_in(client)
    assert client.get("/api/metadata/workflow").status_code == 200
    clock.advance(seconds=121 * 60)

    assert client.get("/api/metadata/workflow").status_code == 401


def test_expired_sessions_are_deleted(user):
    from conductor_app.processes.background import prune

    sign_in(Client())
    with time_machine.travel(timedelta(days=2)):
        prune()

    assert not Session.objects.exists()


def test_passwords_can_be_disabled(user, settings):
    settings.CONDUCTOR_LOCAL_SIGN_IN = False

    assert sign_in(Client()).status_code == 403
    assert "password" not in Client().get(LOGIN).content.decode()
