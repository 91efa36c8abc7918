"""The first start with an empty database."""

import pytest
from django.contrib.auth import get_user_model

from conductor_app.processes.serving import prepare_server

pytestmark = pytest.mark.django_db


def test_the_first_start_creates_an_administrator_with_a_valid_password():
    administrator = prepare_server()

    user = get_user_model().objects.get(username="admin")
    assert user.is_superuser and user.check_password(administrator.generated_password)


def test_the_environment_can_define_the_administrator(monkeypatch):
    monkeypatch.setenv("DJANGO_SUPERUSER_USERNAME", "ops")
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "a password of mine")
    monkeypatch.setenv("DJANGO_SUPERUSER_EMAIL", "ops@example.org")

    administrator = prepare_server()

    assert administrator.generated_password is None
    user = get_user_model().objects.get(username="ops", email="ops@example.org")
    assert user.check_password("a password of mine")


def test_there_is_no_second_administrator():
    prepare_server()

    assert prepare_server() is None
    assert get_user_model().objects.count() == 1


def test_an_inactive_administrator_is_not_replaced():
    prepare_server()
    get_user_model().objects.update(is_active=False)

    assert prepare_server() is None
