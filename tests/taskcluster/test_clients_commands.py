"""Commands for clients and scope roles: stored values, secrets shown once, rejected requests."""

import pytest
from django.core.management import call_command

from conductor_app.access.models import AuditEntry, Client
from conductor_app.core.errors import Conflict, Invalid, NotFound
from conductor_app.processes.sweeps import prune_finished
from conductor_app.taskcluster.auth import commands as clients
from conductor_app.taskcluster.auth import commands as scope_roles
from conductor_app.taskcluster.auth import scopes as known
from conductor_app.taskcluster.auth.commands import ClientSettings, ensure_first_access
from conductor_app.taskcluster.models import ScopeRole

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]
WANTED = ClientSettings(["b", "a", "b"], known.NEVER_EXPIRES, "a fleet")


def test_a_repeated_creation_returns_the_same_token(clock):
    row, token = clients.create_client("fleet", WANTED, "olga")
    clock.advance(seconds=14 * 60)

    assert clients.create_client("fleet", WANTED, "olga") == (row, token)
    assert row.scopes == ["a", "b"]


OTHERWISE = {
    "somebody else": (WANTED, "otto", 0),
    "other scopes": (ClientSettings(["a"], known.NEVER_EXPIRES, "a fleet"), "olga", 0),
    "a later time": (WANTED, "olga", 16 * 60),
}


@pytest.mark.parametrize("case", OTHERWISE)
def test_a_client_is_not_made_a_second_time_by(case, clock):
    wanted, by, seconds = OTHERWISE[case]
    clients.create_client("fleet", WANTED, "olga")
    clock.advance(seconds=seconds)

    with pytest.raises(Conflict):
        clients.create_client("fleet", wanted, by)


def test_a_changed_client_does_not_reveal_its_token():
    clients.create_client("fleet", WANTED, "olga")
    clients.set_disabled("fleet", True, "otto")
    clients.set_disabled("fleet", False, "otto")
    Client.objects.update(updated_at=1)

    with pytest.raises(Conflict):
        clients.create_client("fleet", WANTED, "olga")


@pytest.mark.parametrize("id", ["", "a b", "é", "a\n", "x" * 256, known.ISSUER_CLIENT_ID])
def test_a_client_cannot_be_called(id):
    with pytest.raises(Invalid):
        clients.create_client(id, WANTED, "olga")


def test_a_missing_client_cannot_be_changed():
    for command in (
        lambda: clients.update_client("fleet", WANTED, "olga"),
        lambda: clients.set_disabled("fleet", True, "olga"),
        lambda: clients.reset_token("fleet", "olga"),
        lambda: scope_roles.update_role("fleet", [], "", "olga"),
    ):
        with pytest.raises(NotFound):
            command()
    clients.delete_client("fleet", "olga")
    scope_roles.delete_role("fleet", "olga")
    assert not AuditEntry.objects.exists()


def test_tokens_are_sealed_each_for_its_client():
    _, token = clients.create_client("fleet", WANTED, "olga")
    clients.create_client("ship", WANTED, "olga")
    Client.objects.filter(pk="ship").update(sealed=Client.objects.get(pk="fleet").sealed)

    assert known.find_client_key("fleet").key == token
    assert known.find_client_key("ship") is None


def test_tokens_are_reencrypted_with_the_newest_key(settings, capsys):
    _, token = clients.create_client("fleet", WANTED, "olga")
    before = Client.objects.get().sealed
    settings.CONDUCTOR_SECRETS_KEYS = ("another key of more than 32 characters",)

    call_command("reseal_secrets")

    assert capsys.readouterr().out == "Encrypted 1 secrets with the current key.\n"
    assert Client.objects.get().sealed != before
    assert known.decrypt_token("fleet", Client.objects.get().sealed) == token


def test_expired_clients_are_deleted_if_configured(clock):
    soon = clock.now() + 1000
    clients.create_client("short", ClientSettings([], soon, "", True), "olga")
    clients.create_client("kept", ClientSettings([], soon), "olga")

    prune_finished(10)
    assert Client.objects.count() == 2
    clock.advance(seconds=1)
    prune_finished(10)

    assert [row.id for row in Client.objects.all()] == ["kept"]


def test_creating_an_identical_role_again_succeeds():
    made = scope_roles.create_role("repo:*", ["a:<..>"], "", "olga")

    assert scope_roles.create_role("repo:*", ["a:<..>"], "", "otto") == made
    with pytest.raises(Conflict):
        scope_roles.create_role("repo:*", ["b"], "", "olga")


def test_a_role_cannot_assume_itself():
    scope_roles.create_role("a", ["assume:b"], "", "olga")

    with pytest.raises(Invalid):
        scope_roles.create_role("b", ["assume:a"], "", "olga")
    with pytest.raises(Invalid):
        scope_roles.update_role("a", ["assume:*"], "", "olga")
    assert [role.id for role in ScopeRole.objects.exclude(pk="anonymous")] == ["a"]


class TestTheFirstClient:
    @pytest.fixture(autouse=True)
    def named_by_the_environment(self, settings):
        settings.CONDUCTOR_TASKCLUSTER_ROOT_CLIENT_ID = "static/root"
        settings.CONDUCTOR_TASKCLUSTER_ROOT_ACCESS_TOKEN = "x" * 22

    def test_the_first_client_is_created_one_time_with_all_scopes(self):
        ensure_first_access()
        ensure_first_access()

        assert known.find_client_key("static/root").key == "x" * 22
        assert known.find_client_key("static/root").scopes == ("*",)
        assert AuditEntry.objects.count() == 1

    def test_the_first_client_has_the_token_of_the_environment(self, settings):
        ensure_first_access()
        clients.update_client("static/root", WANTED, "olga")
        settings.CONDUCTOR_TASKCLUSTER_ROOT_ACCESS_TOKEN = "y" * 22

        ensure_first_access()

        assert known.find_client_key("static/root").key == "y" * 22
        assert known.find_client_key("static/root").scopes == ("a", "b")


def test_a_role_that_expands_to_too_many_scopes_cannot_be_saved():
    for level in range(14, 0, -1):
        scopes = [f"assume:r{level + 1}:<..>{letter}" for letter in "ab"] if level < 14 else ["x:<..>"]
        scope_roles.create_role(f"r{level}:*", scopes, "", by="ann")

    with pytest.raises(Invalid, match=r"r0 cannot be saved\. The scopes expand to more than 10000 scopes"):
        scope_roles.create_role("r0", ["assume:r1:x"], "", by="ann")


def test_public_artifacts_are_readable_by_default():
    assert known.expand_saved_scopes(["assume:anonymous"]) == ["assume:anonymous", "queue:get-artifact:public/*"]
    scope_roles.update_role("anonymous", [], "", "olga")

    ensure_first_access()

    assert known.expand_saved_scopes(["assume:anonymous"]) == ["assume:anonymous"]
