"""People who look at the pages: an operator who may do everything, a viewer who may only look."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client


@pytest.fixture
def operator(db) -> Client:
    """Somebody who may act."""
    client = Client()
    client.force_login(User.objects.create_superuser("olga", password="x"))
    return client


@pytest.fixture
def viewer(db) -> Client:
    """Somebody who may see everything and change nothing."""
    user = User.objects.create_user("vera", password="x", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    client = Client()
    client.force_login(user)
    return client
