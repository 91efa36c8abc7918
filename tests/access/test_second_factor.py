"""The second factor of local accounts: setup, sign-in with codes and recovery codes, and removal."""

import re

import pyotp
import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from conductor_app.access.models import AuditEntry, RecoveryCode, SecondFactor
from conductor_app.access.sign_in.commands import has_second_factor
from tests.access.test_passwords import PASSWORD, is_signed_in, sign_in
from tests.access.users import logged_in_client

SETUP, CODE, REQUIRED = "/admin/second-factor/", "/admin/login/code/", "/admin/login/setup/"
INTERVAL = 30
pytestmark = pytest.mark.django_db


@pytest.fixture
def user() -> User:
    user = User.objects.create_user("olga", password=PASSWORD, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    return user


@pytest.fixture
def client(user, clock) -> Client:
    client = Client()
    sign_in(client)
    return client


def key_on(html: str) -> str:
    return re.search(r'<code class="key">([A-Z2-7 ]+)</code>', html)[1].replace(" ", "")


def codes_on(html: str) -> list[str]:
    return re.findall(r"<code>([a-z0-9]{5}-[a-z0-9]{5}-[a-z0-9]{5})</code>", html)


def set_up(client: Client, clock) -> tuple[pyotp.TOTP, list[str]]:
    """Set up the second factor in the browser. Returns the app and the recovery codes."""
    app = pyotp.TOTP(key_on(client.get(SETUP).content.decode()))
    response = client.post(SETUP, {"code": app.at(clock.now() // 1000)})
    clock.advance(seconds=INTERVAL)
    return app, codes_on(response.content.decode())


def test_a_user_sets_up_an_app_and_then_needs_its_code_to_sign_in(client, clock):
    app, codes = set_up(client, clock)
    assert len(codes) == len({*codes}) == 10

    browser = Client()
    assert sign_in(browser, next="/admin/queues/")["Location"] == CODE
    assert not is_signed_in(browser)
    response = browser.post(CODE, {"code": app.at(clock.now() // 1000)})

    assert (response.status_code, response["Location"]) == (302, "/admin/queues/")
    assert is_signed_in(browser)


def test_the_setup_shows_a_picture_for_the_app(client):
    page = client.get(SETUP).content.decode()

    assert 'src="data:image/svg+xml' in page
    assert client.get(SETUP).content.decode().count(key_on(page)[:4]) == 1, "another key"


def test_the_setup_is_not_complete_until_a_code_is_correct(client, user):
    response = client.post(SETUP, {"code": "000000"}, follow=True)

    assert "The code is wrong." in response.content.decode()
    assert not has_second_factor(user)
    assert sign_in(Client())["Location"] == "/admin/"


def test_a_code_is_accepted_only_once(client, clock):
    app, _ = set_up(client, clock)
    code = app.at(clock.now() // 1000)
    first, second = Client(), Client()
    sign_in(first)
    sign_in(second)

    assert first.post(CODE, {"code": code}).status_code == 302
    assert "The code is wrong" in second.post(CODE, {"code": code}).content.decode()


@pytest.mark.parametrize(("seconds", "is_accepted"), [(-60, False), (-30, True), (0, True), (30, True), (60, False)])
def test_a_code_is_accepted_up_to_one_interval_before_and_after_its_own(client, clock, seconds, is_accepted):
    app, _ = set_up(client, clock)
    clock.advance(seconds=600)
    browser = Client()
    sign_in(browser)
    browser.post(CODE, {"code": app.at(clock.now() // 1000 + seconds)})

    assert is_signed_in(browser) is is_accepted


def test_a_recovery_code_replaces_one_code_of_the_app(client, clock):
    _, codes = set_up(client, clock)
    first, second = Client(), Client()
    sign_in(first)
    first.post(CODE, {"code": f" {codes[0].upper()} "})
    sign_in(second)
    second.post(CODE, {"code": codes[0]})

    assert is_signed_in(first)
    assert not is_signed_in(second)
    assert AuditEntry.objects.get(action="use recovery code").facts == {"left": 9}


def test_wrong_codes_lock_the_account_like_wrong_passwords(client, clock):
    app, _ = set_up(client, clock)
    browser = Client()
    sign_in(browser, address="127.0.0.1")
    answers = [browser.post(CODE, {"code": f"00000{number}"}).status_code for number in range(5)]

    assert answers == [200, 200, 200, 200, 429]
    assert browser.post(CODE, {"code": app.at(clock.now() // 1000)}).status_code == 429
    assert not is_signed_in(browser)


def test_a_sign_in_must_be_completed_within_five_minutes(client, clock):
    app, _ = set_up(client, clock)
    browser = Client()
    sign_in(browser)
    clock.advance(seconds=300)

    assert browser.post(CODE, {"code": app.at(clock.now() // 1000)})["Location"] == "/admin/login/"


def test_a_sign_in_that_waits_for_the_code_ends_when_the_password_changes(client, user, clock):
    app, _ = set_up(client, clock)
    browser = Client()
    sign_in(browser)
    user.set_password("another one")
    user.save()

    assert browser.post(CODE, {"code": app.at(clock.now() // 1000)})["Location"] == "/admin/login/"


@pytest.mark.parametrize("address", [CODE, REQUIRED])
def test_the_second_step_is_not_reachable_without_the_first(user, address):
    assert Client().get(address)["Location"] == "/admin/login/"
    assert Client().post(address, {"code": "123456"})["Location"] == "/admin/login/"


def test_other_sessions_of_the_user_end_when_the_second_factor_is_turned_on(client, clock):
    other = Client()
    sign_in(other)
    set_up(client, clock)

    assert is_signed_in(client)
    assert not is_signed_in(other)


def test_keys_are_stored_encrypted_and_recovery_codes_as_hashes(client, clock):
    app, codes = set_up(client, clock)

    assert app.secret not in SecondFactor.objects.get().sealed_key
    stored = " ".join(RecoveryCode.objects.values_list("code_hash", flat=True))
    assert not any(code in stored or code.replace("-", "") in stored for code in codes)
    assert app.secret not in str([*AuditEntry.objects.values_list("facts", flat=True)])


def test_a_user_turns_the_second_factor_off_with_a_code(client, user, clock):
    app, _ = set_up(client, clock)

    client.post(SETUP, {"remove": "", "code": "000000"})
    assert has_second_factor(user)
    client.post(SETUP, {"remove": "", "code": app.at(clock.now() // 1000)})

    assert not has_second_factor(user)
    assert not RecoveryCode.objects.exists()
    assert AuditEntry.objects.filter(action="remove second factor", actor="olga").exists()


def test_the_code_that_turns_it_off_cannot_be_guessed(client, clock):
    app, _ = set_up(client, clock)
    for number in range(5):
        client.post(SETUP, {"remove": "", "code": f"00000{number}"})

    page = client.post(SETUP, {"remove": "", "code": app.at(clock.now() // 1000)}, follow=True)
    assert "Too many wrong codes. Try again in 15 minutes." in page.content.decode()


def test_a_server_can_require_it_from_all_users_with_a_password(user, clock, settings):
    settings.CONDUCTOR_SECOND_FACTOR_REQUIRED = True
    browser = Client()
    assert sign_in(browser, next="/admin/queues/")["Location"] == REQUIRED
    assert not is_signed_in(browser)

    app = pyotp.TOTP(key_on(browser.get(REQUIRED).content.decode()))
    page = browser.post(REQUIRED, {"code": app.at(clock.now() // 1000)}).content.decode()

    assert len(codes_on(page)) == 10
    assert 'href="/admin/queues/"' in page
    assert is_signed_in(browser)
    assert browser.post(SETUP, {"remove": "", "code": "1"}).status_code == 403


def test_an_administrator_removes_the_second_factor_of_a_user(client, user, clock, operator_of_users):
    set_up(client, clock)
    address = reverse("admin:auth_user_change", args=[user.pk])

    operator_of_users.post(
        address, {"username": "olga", "is_staff": "on", "is_active": "on", "_remove_second_factor": ""}
    )

    assert not has_second_factor(user)
    assert not is_signed_in(client)
    assert AuditEntry.objects.get(action="remove second factor").actor == "root"


@pytest.fixture
def operator_of_users(db) -> Client:
    return logged_in_client(User.objects.create_superuser("root"))


def test_the_command_resets_the_sign_in_of_a_user(client, user, clock, capsys):
    set_up(client, clock)

    call_command("reset_sign_in", "olga")

    assert capsys.readouterr().out == "olga signs in with the password alone.\n"
    assert sign_in(Client())["Location"] == "/admin/"


def test_keys_are_encrypted_again_with_a_new_key(client, clock, settings, capsys):
    app, _ = set_up(client, clock)
    settings.CONDUCTOR_SECRETS_KEYS = ("a new key of more than thirty-two characters",)
    before = SecondFactor.objects.get().sealed_key

    call_command("reseal_secrets")

    assert SecondFactor.objects.get().sealed_key != before
    browser = Client()
    sign_in(browser)
    assert browser.post(CODE, {"code": app.at(clock.now() // 1000)}).status_code == 302


@pytest.mark.parametrize("has_factor", [True, False])
def test_the_key_of_the_session_changes_between_the_password_and_the_second_factor(client, clock, settings, has_factor):
    """Otherwise an attacker who has given the victim a session could enroll a factor of his own in it."""
    settings.CONDUCTOR_SECOND_FACTOR_REQUIRED = True
    if has_factor:
        set_up(client, clock)
    attacker, victim = Client(), Client()
    attacker.get("/admin/login/?next=/admin/")
    session = attacker.session
    session["a"] = 1
    session.save()
    victim.cookies["sessionid"] = attacker.cookies["sessionid"] = session.session_key

    assert sign_in(victim)["Location"] == (CODE if has_factor else REQUIRED)

    assert victim.cookies["sessionid"].value != attacker.cookies["sessionid"].value
    assert victim.get(CODE if has_factor else REQUIRED).status_code == 200
    assert attacker.get(CODE if has_factor else REQUIRED)["Location"] == "/admin/login/"
