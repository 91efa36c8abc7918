"""Secrets and variables, as clients call them."""

import json

import pytest

from conductor_app.access.models import AuditEntry, Secret
from conductor_app.runs.models import Attempt, TaskLog
from tests.access.users import api_client_of, create_application, grant_access
from tests.builders import simple
from tests.conftest import NOON
from tests.payloads.test_payloads import upload

VALUE = "s3cret value"


@pytest.fixture
def secret_api(api, clock):
    """Create one secret."""
    assert api.put("/secrets/DB", VALUE.encode()).status_code == 200
    return api


def test_a_secret_is_stored_listed_by_name_and_deleted(secret_api):
    reply = secret_api.get("/secrets/DB")
    assert (reply.content.decode(), reply["Content-Type"]) == (VALUE, "text/plain;charset=UTF-8")
    assert secret_api.get("/secrets/DB/exists").json() is True

    assert secret_api.delete("/secrets/DB").content == b""
    assert secret_api.delete("/secrets/DB").status_code == 200

    assert secret_api.get("/secrets/DB").status_code == 404
    assert secret_api.get("/secrets/DB/exists").json() is False


def test_no_cache_may_store_a_secret_a_token_or_any_other_reply(secret_api, settings):
    replies = [
        secret_api.get("/secrets/DB"),
        secret_api.post("/token", {"keyId": "x", "keySecret": "y"}),
        secret_api.get("/metadata/taskdefs"),
        secret_api.get("/workflow/unknown"),
    ]

    assert {reply["Cache-Control"] for reply in replies} == {"no-store"}


def test_an_existence_check_returns_null_for_clients_that_read_false_as_true(secret_api):
    for agent in ("node", "undici"):
        reply = secret_api.client.get("/api/secrets/NOTHING/exists", headers={"User-Agent": agent})
        assert reply.json() is None
        assert secret_api.client.get("/api/secrets/DB/exists", headers={"User-Agent": agent}).json() is True


def test_secrets_are_named_and_never_listed_with_their_values(secret_api, monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_API", "from the environment")

    lists = [
        secret_api.get("/secrets"),
        secret_api.post("/secrets", {}),
        secret_api.get("/secrets/v2"),
        secret_api.get("/secrets-v2"),
    ]

    assert [reply.json() for reply in lists] == [
        ["API", "DB"],
        ["API", "DB"],
        [{"name": "DB", "partial": "***", "created_at": NOON, "updated_at": NOON}],
        [{"name": "DB", "tags": []}],
    ]


def test_a_json_string_value_is_unwrapped(secret_api):
    secret_api.put("/secrets/DB", b'"he said \\"hi\\"\\nand left"')

    assert secret_api.get("/secrets/DB").content.decode() == 'he said "hi"\nand left'


@pytest.mark.parametrize("value", ['{"user": "u"}', "123", "true", '"half', "[1]", "ä€"])
def test_any_other_value_is_stored_as_sent(secret_api, value):
    secret_api.put("/secrets/DB", value.encode())

    assert secret_api.get("/secrets/DB").content.decode() == value


BAD = {
    "a bad name": ("/secrets/a%20b", b"x"),
    "a name with a dot": ("/secrets/a.b", b"x"),
    "no value": ("/secrets/A", b""),
    "an empty text": ("/secrets/A", b'""'),
    "a long value": ("/secrets/A", b"x" * 65_536),
    "no text": ("/secrets/A", b"\xff\xfe"),
}


@pytest.mark.parametrize(("path", "value"), BAD.values(), ids=BAD)
def test_an_invalid_secret_is_rejected(api, clock, path, value):
    assert api.put(path, value).status_code == 400
    assert api.put(path.replace("secrets", "environment"), value).status_code == 400
    assert api.get("/secrets").json() == []


def test_a_secret_of_the_environment_is_read_only_and_visible_to_tasks_only(api, clock, monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_API", "from the environment")

    replies = [api.put("/secrets/API", b"x"), api.delete("/secrets/API"), api.get("/secrets/API")]

    assert [reply.status_code for reply in replies] == [409, 409, 403]
    assert not any(b"from the environment" in reply.content for reply in replies)
    assert api.get("/secrets/API/exists").json() is True


def test_tags_are_replaced_and_removed(secret_api):
    tags = [{"key": "team", "value": "a"}, {"key": "cost", "value": "b"}]
    secret_api.put("/secrets/DB/tags", tags)
    secret_api.delete("/secrets/DB/tags", tags[:1])

    assert [tag["key"] for tag in secret_api.get("/secrets/DB/tags").json()] == ["cost"]
    assert secret_api.get("/secrets/NOTHING/tags").status_code == 404
    assert secret_api.put("/secrets/NOTHING/tags", tags).status_code == 404
    assert secret_api.put("/secrets/DB/tags", "x").status_code == 400


def test_caches_are_cleared(secret_api):
    for name in ("clearLocalCache", "clearRedisCache"):
        assert secret_api.get(f"/secrets/{name}").json() == {"status": "done"}


def test_a_worker_receives_the_secret_and_the_run_page_does_not(secret_api):
    secret_api.put("/secrets/OTHER", b"not for this step")
    secret_api.define(
        simple("pay", inputParameters={"key": "${workflow.secrets.DB}", "data": "${workflow.input.text}"})
    )
    run = secret_api.start(input={"text": "${workflow.secrets.OTHER}"})

    [task] = secret_api.poll("pay")

    assert task["inputData"] == {"key": VALUE, "data": "${workflow.secrets.OTHER}"}
    assert VALUE not in secret_api.get(f"/workflow/{run}").content.decode()
    assert VALUE not in secret_api.get(f"/tasks/{task['taskId']}").content.decode()
    assert VALUE not in Secret.objects.get(pk="DB").sealed


@pytest.mark.parametrize("guesser", ["a person", "an operator"])
def test_only_a_worker_of_the_task_has_its_secrets_replaced_so_that_nobody_else_confirms_a_guess(
    secret_api, admin_client, settings, guesser
):
    secret_api.define(simple("pay", inputParameters={"key": "${workflow.secrets.DB}"}))
    run = secret_api.start()
    [task] = secret_api.poll("pay")
    settings.CONDUCTOR_API_ACCESS = "token"
    operator = create_application("operator")
    grant_access(operator, "WORKFLOW_DEF", "order", "READ", "EXECUTE")
    client = admin_client if guesser == "a person" else api_client_of(operator).client

    client.post(f"/api/tasks/{task['taskId']}/log", VALUE, "text/plain")
    client.post(f"/api/tasks/{run}/pay/IN_PROGRESS", {"guess": VALUE}, "application/json")

    assert TaskLog.objects.get().line == VALUE
    assert Attempt.objects.get().output == {"guess": VALUE}


def test_a_worker_that_reports_a_secret_by_reference_has_it_replaced(secret_api):
    secret_api.define(simple("pay", inputParameters={"key": "${workflow.secrets.DB}"}))
    run = secret_api.start()
    secret_api.poll("pay")

    secret_api.post(f"/tasks/{run}/pay/COMPLETED", {"key": VALUE, f"a {VALUE}": 1})

    assert Attempt.objects.get().output == {"key": "***", "a ***": 1}


def test_a_worker_that_uploads_a_secret_has_it_replaced(secret_api):
    secret_api.define(simple("pay", inputParameters={"key": "${workflow.secrets.DB}"}))
    run = secret_api.start()
    [task] = secret_api.poll("pay")
    path = upload(secret_api, json.dumps({"key": VALUE, "rest": 1}).encode())

    assert secret_api.report(task, outputData=None, externalOutputPayloadStoragePath=path).status_code == 200

    [shown] = secret_api.workflow(run)["tasks"]
    assert (shown["outputData"], shown.get("externalOutputPayloadStoragePath")) == ({"key": "***", "rest": 1}, None)


def test_an_uploaded_output_without_secrets_stays_where_it_is(secret_api):
    secret_api.define(simple("pay", inputParameters={"key": "${workflow.secrets.DB}"}))
    run = secret_api.start()
    [task] = secret_api.poll("pay")
    path = upload(secret_api, b'{"rest": 1}')

    secret_api.report(task, outputData=None, externalOutputPayloadStoragePath=path)

    assert secret_api.workflow(run)["tasks"][0]["externalOutputPayloadStoragePath"] == path


METADATA = {"name": "pay", "runtimeMetadata": ["DB"]}


@pytest.mark.parametrize(
    "step",
    [simple("pay", inputParameters={"key": "${workflow.secrets.DB}"}), simple("pay", taskDefinition=METADATA)],
    ids=["in an input", "in the metadata of a task definition"],
)
def test_the_start_of_an_inline_definition_with_a_secret_is_in_the_audit_log(secret_api, step):
    document = {"name": "once", "version": 1, "schemaVersion": 2, "tasks": [step]}

    run = secret_api.post("/workflow", {"name": "once", "workflowDef": document}).content.decode()

    [entry] = AuditEntry.objects.filter(object_type="run")
    assert (entry.object_id, entry.action) == (run, "start")
    assert entry.facts == {"inline definition": True, "secrets": ["DB"]}


def test_the_start_of_another_inline_definition_is_not(secret_api):
    document = {"name": "once", "version": 1, "schemaVersion": 2, "tasks": [simple("pay")]}

    assert secret_api.post("/workflow", {"name": "once", "workflowDef": document}).status_code == 200

    assert not AuditEntry.objects.filter(object_type="run").exists()


def test_variables_are_stored_listed_and_deleted(api, clock, monkeypatch):
    monkeypatch.setenv("CONDUCTOR_ENV_ZONE", "a")
    assert api.put("/environment/REGION", b"eu").content == b""

    assert {"name": "REGION", "value": "eu"} in api.get("/environment").json()
    assert {"name": "ZONE", "value": "a"} in api.get("/environment").json()
    reply = api.get("/environment/REGION")
    assert (reply.content, reply["Content-Type"]) == (b"eu", "text/plain;charset=UTF-8")
    assert api.get("/environment/ZONE").content == b"a"
    assert api.delete("/environment/REGION").content == b"eu"

    assert api.get("/environment/REGION").content == b""
    assert [api.put("/environment/ZONE", b"x").status_code, api.delete("/environment/ZONE").status_code] == [409, 409]


def test_variables_have_tags(api, clock):
    api.put("/environment/REGION", b"eu")
    tag = {"key": "team", "value": "a"}

    api.put("/environment/REGION/tags", [tag])
    assert [each["key"] for each in api.get("/environment/REGION/tags").json()] == ["team"]
    api.delete("/environment/REGION/tags", [tag])

    assert api.get("/environment/REGION/tags").json() == []
    assert api.get("/environment/NOTHING/tags").json() == []


def test_a_variable_that_does_not_exist_can_have_tags_which_it_keeps_once_it_exists(api, clock):
    tag = {"key": "team", "value": "a", "type": "METADATA"}
    assert api.delete("/environment/REGION/tags", [tag]).status_code == 200

    assert api.put("/environment/REGION/tags", [tag]).status_code == 200
    assert api.get("/environment/REGION/tags").json() == [tag]
    assert "REGION" not in {each["name"] for each in api.get("/environment").json()}
    api.put("/environment/REGION", b"eu")

    assert api.get("/environment/REGION/tags").json() == [tag]
    api.delete("/environment/REGION")
    assert api.get("/environment/REGION/tags").json() == []
    assert api.put("/environment/A%20B/tags", [tag]).status_code == 400
    assert api.put("/environment/REGION/tags", [{"key": "x" * 129, "value": ""}]).status_code == 400
    assert api.put("/secrets/NOTHING/tags", [tag]).status_code == 404


def test_people_read_no_secret_back_whatever_their_role(secret_api, admin_client, settings):
    settings.CONDUCTOR_API_ACCESS = "token"
    program = api_client_of(create_application("vault", "ADMIN"))

    refused = admin_client.get("/api/secrets/DB")

    assert refused.status_code == 403
    assert "People cannot read the value of a secret" in refused.json()["message"]
    assert VALUE not in refused.content.decode()
    assert program.get("/secrets/DB").content.decode() == VALUE


@pytest.mark.parametrize("address", ["/api/tasks/poll/pay", "/api/tasks/poll/batch/pay?timeout=0"])
def test_people_receive_no_tasks_whatever_their_role(secret_api, admin_client, settings, address):
    secret_api.define(simple("pay", inputParameters={"key": "${workflow.secrets.DB}"}))
    secret_api.start()
    settings.CONDUCTOR_API_ACCESS = "token"
    program = api_client_of(create_application("vault", "ADMIN"))

    refused = admin_client.get(address)

    assert refused.status_code == 403
    assert "People cannot poll for tasks" in refused.json()["message"]
    [task] = program.poll("pay")
    assert task["inputData"] == {"key": VALUE}


def test_a_person_who_reports_a_result_receives_no_other_task(secret_api, admin_client, settings):
    secret_api.define(simple("pay", inputParameters={"key": "${workflow.secrets.DB}"}))
    secret_api.start()
    [task] = secret_api.poll("pay")
    secret_api.start()
    settings.CONDUCTOR_API_ACCESS = "token"
    report = {"taskId": task["taskId"], "workflowInstanceId": task["workflowInstanceId"], "status": "COMPLETED"}

    reply = admin_client.post("/api/tasks/update-v2", report, content_type="application/json")

    assert (reply.status_code, reply.content) == (204, b"")
