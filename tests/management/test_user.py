"""`conductor-app user`: the first administrator, and new passwords."""

from io import StringIO

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client, RequestFactory

pytestmark = pytest.mark.django_db


def execute(*arguments: str) -> str:
    output = StringIO()
    call_command("user", *arguments, stdout=output)
    return output.getvalue()


def sign_in(username: str, password: str) -> User | None:
    return authenticate(RequestFactory().post("/admin/login/"), username=username, password=password)


def test_it_creates_an_administrator_with_the_password_that_it_prints():
    output = execute("ann", "--email=ann@example.org")

    user = sign_in("ann", output.split("Password: ")[1].split()[0])
    assert user is not None
    assert (user.is_staff, user.is_superuser, user.email) == (True, True, "ann@example.org")


def test_it_resets_a_password_only_on_request_and_ends_the_sessions_of_the_user():
    get_user_model().objects.create_superuser("ann", "", "the-previous-one-1")
    browser = Client()
    browser.force_login(get_user_model().objects.get(username="ann"))

    with pytest.raises(CommandError, match="add --reset-password"):
        execute("ann")
    output = execute("ann", "--reset-password")

    assert sign_in("ann", output.split("Password: ")[1].split()[0]) is not None
    assert sign_in("ann", "the-previous-one-1") is None
    assert browser.get("/admin/").status_code == 302


def test_it_prints_no_password_of_the_environment_and_refuses_a_weak_one(monkeypatch):
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "a-longer-passphrase")
    assert "passphrase" not in execute("ann")

    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "short")
    with pytest.raises(CommandError, match="too short"):
        execute("bob")
    assert not get_user_model().objects.filter(username="bob").exists()


def test_it_resets_no_password_of_an_unknown_user():
    with pytest.raises(CommandError, match="There is no user bob"):
        execute("bob", "--reset-password")
