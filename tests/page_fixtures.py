"""Users of the pages: an operator with all permissions, a viewer who reads everything, an author of definitions."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from tests.access.users import client_with, logged_in_client


@pytest.fixture(autouse=True)
def clock_before_sessions(request: pytest.FixtureRequest) -> None:
    """Freeze the time before users sign in, because a session stores its use again when time passes."""
    if "clock" in request.fixturenames:
        request.getfixturevalue("clock")


@pytest.fixture
def operator(db) -> Client:
    """Return a client of a user with all permissions."""
    return logged_in_client(User.objects.create_superuser("olga"))


@pytest.fixture
def viewer(db) -> Client:
    """Return a client of a user who can view everything and change nothing."""
    user = User.objects.create_user("vera", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    return logged_in_client(user)


@pytest.fixture
def author(db) -> Client:
    """Return a client of otto, who may edit definitions."""
    return client_with(role="METADATA_MANAGER", name="otto")
