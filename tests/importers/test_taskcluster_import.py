"""`conductor-app import-taskcluster`: the official client reads roles and clients from a deployment."""

import json
import stat

import pytest
from django.core.management import CommandError

from conductor_app.access.models import AuditEntry, Client
from conductor_app.taskcluster.auth.commands import ClientSettings, create_client, create_role
from conductor_app.taskcluster.auth.scopes import NEVER_EXPIRES, decrypt_token
from conductor_app.taskcluster.models import ScopeRole
from tests.clients.live_server import running_server
from tests.importers.commands import execute
from tests.recording_web_server import json_answer, running_web_server

pytestmark = pytest.mark.django_db
LATER, EARLIER = "2999-01-01T00:00:00.000Z", "2020-01-01T00:00:00.000Z"
AUTH, QUEUE = "/api/auth/v1", "/api/queue/v1"


def role(id, *scopes, expanded=None):
    facts = {"created": EARLIER, "lastModified": EARLIER, "expandedScopes": list(expanded or scopes)}
    return {"roleId": id, "scopes": list(scopes), "description": f"The role {id}.", **facts}


def client(id, *scopes, **fields):
    facts = {"created": EARLIER, "lastModified": EARLIER, "lastDateUsed": EARLIER, "lastRotated": EARLIER}
    document = {"clientId": id, "scopes": list(scopes), "description": "", "expires": LATER, "disabled": False, **facts}
    return document | {"deleteOnExpiration": False, "expandedScopes": list(scopes)} | fields


class Deployment:
    """The auth service and the queue of a deployment."""

    def __init__(self, web):
        self.web, self.address = web, web.url
        self.reply(
            f"{AUTH}/roles2/", {"roles": [role("worker", "queue:claim-work:proj/*"), role("build", "assume:worker")]}
        )
        self.reply(f"{AUTH}/clients/", {"clients": [client("ci/1", "assume:build"), client("ci/off", disabled=True)]})
        self.reply(f"{QUEUE}/task-queues", {"taskQueues": [{"taskQueueId": "proj/linux"}]})

    def reply(self, path, *values, status=200):
        self.web.answers[path] = [json_answer(value, status) for value in values]


@pytest.fixture
def deployment():
    with running_web_server() as web:
        yield Deployment(web)


def import_taskcluster(address, *arguments):
    how = () if "--dry-run" in arguments else ("--yes",)
    return execute("import_taskcluster", "--from", address, *how, "--json", *arguments)


def test_it_imports_roles_and_clients(deployment):
    done = import_taskcluster(deployment.address)

    assert done.items("role") == {"worker": "created", "build": "created"}
    assert done.items("client") == {"ci/1": "created", "ci/off": "created"}
    assert ScopeRole.objects.get(pk="build").scopes == ["assume:worker"]
    assert Client.objects.get(pk="ci/1").scopes == ["assume:build"]
    assert done.status == 0


def test_a_new_client_is_disabled_because_its_token_cannot_be_read(deployment):
    done = import_taskcluster(deployment.address)

    assert set(Client.objects.values_list("is_disabled", flat=True)) == {True}
    tokens = [decrypt_token(each.id, each.sealed) for each in Client.objects.all()]
    assert not any(token in done.output + done.errors for token in tokens)


def test_tokens_are_written_on_demand_to_a_file_that_only_its_owner_can_read(deployment, tmp_path):
    path = tmp_path / "tokens"

    import_taskcluster(deployment.address, f"--tokens-to={path}")

    written = {each["clientId"]: each["accessToken"] for each in map(json.loads, path.read_text().splitlines())}
    assert written == {each.id: decrypt_token(each.id, each.sealed) for each in Client.objects.all()}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {each.id: each.is_disabled for each in Client.objects.all()} == {"ci/1": False, "ci/off": True}


def test_a_file_of_tokens_is_never_overwritten_and_not_left_empty(deployment, tmp_path):
    path = tmp_path / "tokens"
    path.write_text("precious")
    with pytest.raises(CommandError, match="exists"):
        import_taskcluster(deployment.address, f"--tokens-to={path}")
    assert path.read_text() == "precious"

    import_taskcluster(deployment.address)
    import_taskcluster(deployment.address, f"--tokens-to={tmp_path / 'none'}")
    assert not (tmp_path / "none").exists()


def test_a_second_import_changes_nothing_and_keeps_enabled_clients(deployment):
    import_taskcluster(deployment.address)
    Client.objects.filter(pk="ci/1").update(is_disabled=False)
    entries = AuditEntry.objects.count()

    again = import_taskcluster(deployment.address)

    assert again.report["counts"] == {"unchanged": 4}
    assert AuditEntry.objects.count() == entries
    assert not Client.objects.get(pk="ci/1").is_disabled


def test_a_role_that_differs_stays_unless_it_is_replaced(deployment):
    create_role("worker", ["queue:claim-work:own/*"], "Ours.", "olga")

    kept = execute("import_taskcluster", "--from", deployment.address, "--yes")
    assert kept.status == 4
    assert "! role worker: differs, kept as it is here" in kept.output
    assert "      scope queue:claim-work:proj/* added\n      scope queue:claim-work:own/* removed\n" in kept.output

    import_taskcluster(deployment.address, "--on-conflict=replace")
    assert ScopeRole.objects.get(pk="worker").scopes == ["queue:claim-work:proj/*"]


def test_replacing_a_client_keeps_its_token(deployment):
    _, token = create_client("ci/1", ClientSettings(["queue:ping"], NEVER_EXPIRES), "olga")

    import_taskcluster(deployment.address, "--on-conflict=replace")

    row = Client.objects.get(pk="ci/1")
    assert (row.scopes, decrypt_token(row.id, row.sealed), row.is_disabled) == (["assume:build"], token, False)


def test_all_pages_of_the_lists_are_read(deployment):
    deployment.reply(
        f"{AUTH}/roles2/",
        {"roles": [role("one", "a:b")], "continuationToken": "t1"},
        {"roles": [], "continuationToken": "t2"},
        {"roles": [role("two", "a:b")]},
    )

    assert import_taskcluster(deployment.address).items("role") == {"one": "created", "two": "created"}


def test_a_page_that_repeats_is_an_error(deployment):
    deployment.reply(f"{AUTH}/roles2/", {"roles": [], "continuationToken": "t1"})

    with pytest.raises(CommandError, match="repeats a page of roles"):
        import_taskcluster(deployment.address)


def test_a_cycle_of_roles_is_broken_where_it_closes_with_the_reason(deployment):
    roles = [role("one", "assume:two"), role("two", "assume:three"), role("three", "assume:one"), role("four", "a:b")]
    deployment.reply(f"{AUTH}/roles2/", {"roles": roles})

    done = import_taskcluster(deployment.address)

    assert done.items("role") == {"one": "created", "two": "created", "three": "skipped", "four": "created"}
    reasons = [each["reason"] for each in done.report["items"] if each["name"] == "three"]
    assert reasons == ["The role three would assume itself, directly or through other roles."]
    assert done.status == 4


def test_invalid_roles_and_clients_are_left_out_one_by_one(deployment):
    deployment.reply(f"{AUTH}/roles2/", {"roles": [role("bad", "scope\n"), {"roleId": 7}, {}, role("good", "a:b")]})
    late = client("late", expires="tomorrow")
    deployment.reply(f"{AUTH}/clients/", {"clients": [client("a b", "x:y"), late, client("fine", "x:y")]})

    done = import_taskcluster(deployment.address)

    assert [each.id for each in ScopeRole.objects.exclude(pk="anonymous")] == ["good"]
    assert [each.id for each in Client.objects.all()] == ["fine"]
    assert "expires must be a time with a time zone." in done.output


def test_clients_of_the_services_and_expired_ones_are_not_imported(deployment):
    clients = [client("static/taskcluster/root", "*"), client("old", "a:b", expires=EARLIER), client("ci/1", "a:b")]
    deployment.reply(f"{AUTH}/clients/", {"clients": clients})

    output = execute("import_taskcluster", "--from", deployment.address, "--yes").output

    assert [each.id for each in Client.objects.all()] == ["ci/1"]
    assert "Not imported: 1 clients of Taskcluster's own services (static/taskcluster/*).\n" in output
    assert "Not imported: 1 clients that have expired.\n" in output


def test_scopes_that_expand_to_others_here_are_reported(deployment):
    create_role("worker", ["queue:claim-work:own/*"], "Ours.", "olga")
    wanted = client("ci/1", "assume:worker", expandedScopes=["assume:worker", "queue:claim-work:proj/*"])
    deployment.reply(f"{AUTH}/clients/", {"clients": [wanted]})

    found = import_taskcluster(deployment.address, "--dry-run").report["items"]

    assert [each["text"] for item in found if item["name"] == "ci/1" for each in item["findings"]] == [
        "grants fewer scopes here than in the source: queue:claim-work:proj/*",
        "grants more scopes here than in the source: queue:claim-work:own/*",
    ]


def test_a_dry_run_changes_nothing_and_names_the_queues(deployment):
    plan = execute("import_taskcluster", "--from", deployment.address, "--dry-run")

    assert "Task queues of the source, which appear here with their first task: proj/linux.\n" in plan.output
    assert plan.status == 3
    assert not Client.objects.exists()


def test_the_official_client_signs_its_requests_to_another_server_of_this_kind(transactional_db, settings, monkeypatch):
    create_role("worker", ["queue:claim-work:proj/*"], "", "olga")
    _, token = create_client("reader", ClientSettings(["auth:list-*"], NEVER_EXPIRES), "olga")
    settings.CONDUCTOR_API_ACCESS = "token"
    with running_server() as address:
        with pytest.raises(CommandError, match=r"need the scope auth:list-roles"):
            import_taskcluster(address)
        monkeypatch.setenv("TASKCLUSTER_CLIENT_ID", "reader")
        monkeypatch.setenv("TASKCLUSTER_ACCESS_TOKEN", token)

        done = import_taskcluster(address)

    assert done.items("role")["worker"] == done.items("client")["reader"] == "unchanged"


@pytest.mark.parametrize("address", ["tc.example.com", "https://tc.example.com/api", "https://a:b@tc.example.com"])
def test_an_address_that_is_no_root_url_is_refused(address):
    with pytest.raises(CommandError, match="must be a root URL"):
        import_taskcluster(address)


def test_a_server_that_is_not_taskcluster_is_an_error(deployment):
    deployment.web.answers[f"{AUTH}/roles2/"] = (200, {"content-type": "text/html"}, b"<html>")
    with pytest.raises(CommandError, match=deployment.address):
        import_taskcluster(deployment.address)

    deployment.web.answers.clear()
    with pytest.raises(CommandError, match="is not a Taskcluster deployment"):
        import_taskcluster(deployment.address)
