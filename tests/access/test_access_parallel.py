"""Changes of clients and scope roles at the same time: the second one is decided on the result of the first."""

import threading

import pytest
from django.db import connection

from conductor_app.access.models import Client
from conductor_app.taskcluster.auth import commands as clients
from conductor_app.taskcluster.auth import commands as scope_roles
from conductor_app.taskcluster.auth import scopes as known
from conductor_app.taskcluster.auth.commands import ClientSettings
from conductor_app.taskcluster.models import ScopeRole

pytestmark = pytest.mark.django_db(transaction=True)


def client_settings(*scopes):
    return ClientSettings(list(scopes), known.NEVER_EXPIRES, "")


class OtherThread(threading.Thread):
    """A change that begins during another one."""

    def __init__(self, change, *args) -> None:
        super().__init__()
        self._change, self._args = change, args

    def run(self) -> None:
        self._change(*self._args)
        connection.close()

    def begin(self) -> bool:
        """Start, and return True if the change then waits for the current transaction."""
        self.start()
        self.join(timeout=0.3)
        return self.is_alive()


def test_a_client_does_not_change_between_the_check_of_added_scopes_and_the_update():
    clients.create_client("fleet", client_settings("a"), "olga")
    other, waits = OtherThread(clients.update_client, "fleet", client_settings("c"), "otto"), []

    def authorize(row):
        waits.append(other.begin())
        return client_settings(*row.scopes, "b")

    changed = clients.authorize_and_update_client("fleet", authorize, "olga")
    other.join(timeout=60)

    assert waits == [True]
    assert changed.scopes == ["a", "b"]
    assert Client.objects.get(pk="fleet").scopes == ["c"]


def test_a_role_does_not_change_between_the_check_of_added_scopes_and_the_update():
    scope_roles.create_role("r", ["a"], "", "olga")
    other, waits = OtherThread(scope_roles.update_role, "r", ["c"], "", "otto"), []

    def authorize(row):
        waits.append((row.scopes, other.begin()))

    scope_roles.update_role("r", ["a", "b"], "", "olga", authorize=authorize)
    other.join(timeout=60)

    assert waits == [(["a"], True)]
    assert ScopeRole.objects.get(pk="r").scopes == ["c"]
