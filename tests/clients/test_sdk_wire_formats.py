"""The requests of the Java, Go and JavaScript SDKs, byte by byte, and the replies that they can parse (api §8)."""

import json
from urllib.parse import quote

import pytest

from conductor_app.access.tokens import create_key
from tests.clients.raw_requests import SDKS, Wire
from tests.clients.shop_workflow import Shop

pytestmark = pytest.mark.one_database

EMPTY_BODIES = {"java": "", "go": None, "javascript": None, "python": "{}"}
"""The body that each SDK sends for an empty request."""


@pytest.fixture(params=SDKS)
def sdk(request) -> str:
    return request.param


@pytest.fixture
def wire(server, sdk) -> Wire:
    return Wire(server, sdk)


@pytest.fixture
def javascript(server) -> Wire:
    return Wire(server, "javascript")


@pytest.fixture
def java(server) -> Wire:
    return Wire(server, "java")


@pytest.fixture
def go(server) -> Wire:
    return Wire(server, "go")


def test_an_id_is_bare_text_whatever_the_client_accepts(wire: Wire, shop: Shop):
    shop.define("cut")

    by_name = wire.post("/api/workflow/order", '{"size": 2}').plain_text
    by_request = wire.post("/api/workflow", '{"name": "order", "input": {"size": 2}}').plain_text

    assert [shop.show(run_id).input for run_id in (by_name, by_request)] == [{"size": 2}, {"size": 2}]


def test_actions_accept_the_empty_bodies_that_clients_send(wire: Wire, sdk: str, shop: Shop):
    shop.define("cut")
    run_id, nothing = shop.start(), EMPTY_BODIES[sdk]

    pause = wire.send("PUT", f"/api/workflow/{run_id}/pause", nothing)
    resume = wire.send("PUT", f"/api/workflow/{run_id}/resume", nothing)
    terminate = wire.send("DELETE", f"/api/workflow/{run_id}?reason=enough", nothing)
    retry = wire.send("POST", f"/api/workflow/{run_id}/retry?resumeSubworkflowTasks=False", nothing)
    wire.send("DELETE", f"/api/workflow/{run_id}", nothing)
    remove = wire.send("DELETE", f"/api/workflow/{run_id}/remove?archiveWorkflow=True", nothing)

    assert [reply.status for reply in (pause, resume, terminate, retry, remove)] == [200, 200, 200, 204, 200]
    assert all(reply.is_empty for reply in (pause, resume, terminate, retry, remove))


def test_empty_answers_are_not_labelled_json(wire: Wire, shop: Shop):
    shop.define("cut")
    shop.start()
    task = shop.take("cut")
    report = {"workflowInstanceId": task.workflow_instance_id, "taskId": task.task_id, "status": "COMPLETED"}

    no_task = wire.get("/api/tasks/poll/nobody")
    no_next = wire.post("/api/tasks/update-v2", json.dumps(report))
    no_logs = wire.get(f"/api/tasks/{task.task_id}/log")

    assert [reply.status for reply in (no_task, no_next, no_logs)] == [204, 204, 204]
    assert all(reply.is_empty for reply in (no_task, no_next, no_logs))


def test_a_batch_poll_that_finds_nothing_is_an_empty_list(wire: Wire):
    assert wire.get("/api/tasks/poll/batch/cut?workerid=&count=1&timeout=10").json == []


def test_a_refusal_is_json_with_its_status_and_its_message(wire: Wire):
    for reply in (wire.get("/api/workflow/nothing"), wire.get("/api/no/such/place"), wire.post("/api/tasks", "{")):
        assert reply.json["status"] == reply.status
        assert reply.json["message"]


def test_a_url_with_an_extra_slash_is_not_found_and_not_redirected(wire: Wire):
    assert wire.post("/api/workflow/", '{"name": "order"}').status == 404
    assert wire.get("/api/tasks/poll/batch/cut/").status == 404


def test_an_unsupported_method_returns_405_so_that_clients_try_another(wire: Wire):
    reply = wire.send("PATCH", "/api/workflow")

    assert (reply.status, reply.json["status"]) == (405, 405)


def test_every_number_of_a_task_is_an_integer(go: Wire, shop: Shop):
    shop.define("cut")
    shop.start()

    (task,) = go.get("/api/tasks/poll/batch/cut?workerid=builder-7&count=1").json

    numbers = {name: value for name, value in task.items() if isinstance(value, (int, float))}
    assert {"scheduledTime", "startTime", "updateTime", "pollCount", "responseTimeoutSeconds"} <= numbers.keys()
    assert all(isinstance(value, int) for value in numbers.values())


def test_the_java_sdk_reports_with_all_its_fields_and_their_nulls(java: Wire, shop: Shop):
    shop.define("cut")
    run_id = shop.start()
    (task,) = java.get("/api/tasks/poll/batch/cut?workerid=builder-7&count=1&timeout=100").json
    report = {
        "workflowInstanceId": run_id, "taskId": task["taskId"], "reasonForIncompletion": None,
        "callbackAfterSeconds": 0, "workerId": "builder-7", "status": "COMPLETED", "outputData": {"pieces": 4},
        "outputMessage": None, "logs": [{"log": "done", "taskId": None, "createdTime": 1700000000000}],
        "externalOutputPayloadStoragePath": None, "subWorkflowId": None, "extendLease": False,
        "executionMetadata": {"clientSendTime": 1700000000000, "additionalContext": {}}, "supportsCancellation": False,
    }  # fmt: skip

    assert java.post("/api/tasks", json.dumps(report)).plain_text == task["taskId"]

    assert java.get(f"/api/workflow/{run_id}").json["output"] == {"pieces": 4}
    assert java.get(f"/api/tasks/{task['taskId']}/log").json[0]["log"] == "done"


def test_the_java_sdk_extends_a_lease_with_ids_only(java: Wire, shop: Shop):
    shop.define("cut")
    shop.start()
    task = shop.take("cut")
    report = {
        "workflowInstanceId": task.workflow_instance_id, "taskId": task.task_id, "status": "IN_PROGRESS",
        "extendLease": True,
    }  # fmt: skip

    assert java.post("/api/tasks", json.dumps(report)).plain_text == task.task_id

    assert java.get(f"/api/tasks/{task.task_id}").json["status"] == "IN_PROGRESS"


def test_the_javascript_sdk_registers_a_task_definition_with_put(javascript: Wire, shop: Shop):
    assert javascript.send("PUT", "/api/metadata/taskdefs", '{"name": "cut", "retryCount": 7}').is_empty

    assert shop.metadata.get_task_def("cut").retry_count == 7


@pytest.mark.parametrize("sdk, sent", [("javascript", '"he said \\"hi\\""'), ("java", 'he said "hi"')])
def test_a_log_line_is_stored_without_its_json_quotes(server, shop: Shop, sdk, sent):
    shop.define("cut")
    shop.start()
    task_id = shop.take("cut").task_id

    assert Wire(server, sdk).post(f"/api/tasks/{task_id}/log", sent).is_empty

    assert [line.log for line in shop.tasks.get_task_logs(task_id)] == ['he said "hi"']


@pytest.mark.parametrize(
    "body", ['{"outputData": {"pieces": 4}}', '{"taskOutput": {"pieces": 4}}', '{"pieces": 4}', "{}", ""]
)
def test_the_output_of_a_task_named_by_its_reference_is_stored_as_given(javascript: Wire, shop: Shop, body):
    shop.define("cut")
    run_id = shop.start()

    task_id = javascript.post(f"/api/tasks/{run_id}/cut_ref/COMPLETED?workerid=", body).plain_text

    assert javascript.get(f"/api/tasks/{task_id}").json["outputData"] == json.loads(body or "{}")


def test_a_reference_that_no_task_has_is_not_found(javascript: Wire, shop: Shop):
    shop.define("cut")
    run_id = shop.start()

    reply = javascript.post(f"/api/tasks/{run_id}/sew_ref/COMPLETED", "{}")

    assert reply.status == 404


def test_lists_in_a_query_are_repeated_keys_or_have_commas(javascript: Wire, shop: Shop):
    shop.define("cut")
    shop.start()

    assert javascript.get("/api/tasks/queue/sizes?taskType=cut&taskType=sew").json == {"cut": 1, "sew": 0}
    assert javascript.get("/api/tasks/queue/sizes?taskType=cut,sew").json == {"cut": 1, "sew": 0}


def test_unknown_query_parameters_are_ignored(javascript: Wire, shop: Shop):
    shop.define("cut")

    definition = javascript.get("/api/metadata/workflow/order?version=1&metadata=true&skipCache=false").json

    assert (definition["name"], definition["version"]) == ("order", 1)


def test_a_name_with_a_blank_is_percent_encoded(javascript: Wire, shop: Shop):
    shop.define("cut and sew", name="an order")

    run_id = javascript.post("/api/workflow/an%20order?correlationId=A%2F1", "{}").plain_text

    (task,) = javascript.get("/api/tasks/poll/batch/cut%20and%20sew").json
    assert (task["workflowInstanceId"], task["correlationId"]) == (run_id, "A/1")


def test_a_client_that_names_its_content_type_with_a_charset_is_understood(java: Wire, shop: Shop):
    shop.define("cut")
    headers = {"Content-Type": "application/json; charset=utf-8"}

    run_id = java.post("/api/workflow/order", '{"customer": "Chloé"}', **headers).plain_text

    assert shop.show(run_id).input == {"customer": "Chloé"}


def test_a_server_without_keys_lets_clients_with_a_key_continue_without_a_token(wire: Wire):
    reply = wire.post("/api/token", '{"keyId": "key", "keySecret": "secret"}')

    assert (reply.status, reply.json["status"]) == (404, 404)


def test_the_command_line_client_finds_the_server_and_its_version(go: Wire):
    assert go.get("/health").json["healthy"] is True
    assert go.get("/api/health").json["healthy"] is True
    assert go.get("/api/version").plain_text


SKIPS = {
    "python": (f"?skipTaskRequest={quote(str({'taskInput': None, 'taskOutput': {'seams': 3}}))}", "{}"),
    "javascript": ("", '{"taskOutput": {"seams": 3}}'),
    "java": ("", '{"taskInput": null, "taskOutput": {"seams": 3}}'),
    "go": (f"?skipTaskRequest={quote('{map[] map[seams:3]}')}", None),
}  # fmt: skip


def test_each_client_skips_a_task_in_its_own_format(wire: Wire, sdk: str, shop: Shop):
    shop.define("cut", "sew")
    run_id = shop.start()
    query, body = SKIPS[sdk]

    assert wire.send("PUT", f"/api/workflow/{run_id}/skiptask/sew_ref{query}", body).is_empty

    shop.report(shop.take("cut"))
    sewn = shop.wait_for_end(run_id).tasks[1]
    assert (sewn.status, sewn.output_data) == ("SKIPPED", {"seams": 3})


def test_the_go_sdk_leaves_its_pattern_in_the_path_and_names_the_task_in_the_query(go: Wire, shop: Shop):
    shop.define("cut", "sew")
    run_id = shop.start()

    path = f"/api/workflow/{run_id}/jump/{{taskReferenceName}}?taskReferenceName=sew_ref"
    assert go.post(path, '{"size": 2}').is_empty

    assert shop.take("sew").input_data["size"] == 2


def test_the_go_sdk_requests_correlated_workflows_with_get(go: Wire, shop: Shop):
    shop.define("cut")
    run_id = shop.start(correlation_id="A-1")

    found = go.get("/api/workflow/order/correlated?correlationIds=A-1&correlationIds=A-2").json

    assert [run["workflowId"] for run in found["A-1"]] == [run_id]


@pytest.mark.parametrize("verb", ["GET", "PUT"])
def test_a_schedule_is_paused_and_resumed_by_either_verb(wire: Wire, sdk: str, shop: Shop, verb):
    shop.define("cut")
    schedule = {"name": "yearly", "cronExpression": "0 0 0 1 1 *", "startWorkflowRequest": {"name": "order"}}
    wire.post("/api/scheduler/schedules", json.dumps(schedule))
    body = None if verb == "GET" else EMPTY_BODIES[sdk]

    assert wire.send(verb, "/api/scheduler/schedules/yearly/pause", body).is_empty
    assert wire.get("/api/scheduler/schedules/yearly").json["paused"] is True
    assert wire.send(verb, "/api/scheduler/schedules/yearly/resume", body).is_empty
    assert wire.get("/api/scheduler/schedules/yearly").json["paused"] is False


@pytest.mark.parametrize("verb", ["GET", "POST"])
def test_all_schedules_are_stopped_by_either_verb(go: Wire, verb):
    assert go.send(verb, "/api/scheduler/admin/pause").status == 200
    assert go.send(verb, "/api/scheduler/admin/resume").status == 200


RAW_TEXTS = {"javascript": '"say \\"hi\\""', "java": 'say "hi"', "go": 'say "hi"'}


@pytest.mark.parametrize("sdk", RAW_TEXTS)
def test_a_secret_is_stored_without_its_json_quotes(wire: Wire, sdk: str):
    assert wire.send("PUT", "/api/secrets/TILL", RAW_TEXTS[sdk]).is_empty

    assert wire.get("/api/secrets/TILL").plain_text == 'say "hi"'
    assert wire.get("/api/secrets/TILL/exists").json is True


@pytest.mark.parametrize("sdk", ["java", "go"])
def test_a_variable_is_sent_as_plain_text(wire: Wire):
    assert wire.send("PUT", "/api/environment/REGION", "eu west", **{"Content-Type": "text/plain"}).is_empty

    assert wire.get("/api/environment/REGION").plain_text == "eu west"
    assert wire.send("DELETE", "/api/environment/REGION").plain_text == "eu west"
    assert wire.get("/api/environment/REGION").plain_text == ""


def test_definitions_are_lists_for_clients_that_send_lists(wire: Wire, shop: Shop):
    step = {"name": "cut", "taskReferenceName": "cut_ref", "type": "SIMPLE"}
    definition = {"name": "order", "version": 1, "tasks": [step], "schemaVersion": 2}

    assert wire.send("PUT", "/api/metadata/workflow?overwrite=True", json.dumps([definition])).status == 200
    assert wire.send("POST", "/api/metadata/taskdefs", '[{"name": "cut", "retryCount": 7}]').is_empty

    assert wire.get("/api/metadata/workflow/order").json["tasks"][0]["name"] == "cut"
    assert wire.get("/api/metadata/taskdefs/cut").json["retryCount"] == 7


@pytest.mark.parametrize("unset", ["", "&waitUntilTaskRef=", "&requestId=None&waitUntilTaskRef=None"])
def test_an_execution_ignores_empty_parameters(wire: Wire, shop: Shop, unset):
    wait = {"name": "pay", "taskReferenceName": "pay", "type": "WAIT"}
    definition = {"name": "order", "version": 1, "tasks": [wait], "schemaVersion": 2}
    wire.post("/api/metadata/workflow", json.dumps(definition))

    reply = wire.post(f"/api/workflow/execute/order/1?waitForSeconds=0{unset}", '{"name": "order"}').json

    assert (reply["status"], [task["referenceTaskName"] for task in reply["tasks"]]) == ("RUNNING", ["pay"])


@pytest.mark.parametrize("sent", ['{"taskOutput": {"amount": 3}}', '{"amount": 3}', "{}", ""])
def test_a_signal_is_stored_as_given_and_answered_with_an_empty_body(wire: Wire, shop: Shop, sent):
    wait = {"name": "pay", "taskReferenceName": "pay", "type": "WAIT"}
    wire.post(
        "/api/metadata/workflow", json.dumps({"name": "order", "version": 1, "tasks": [wait], "schemaVersion": 2})
    )
    run_id = wire.post("/api/workflow/order", "{}").plain_text

    assert wire.post(f"/api/tasks/{run_id}/COMPLETED/signal", sent).is_empty

    assert shop.show(run_id).tasks[0].output_data == json.loads(sent or "{}")


def test_a_plus_is_a_plus_in_a_path_and_a_blank_in_a_query(java: Wire, shop: Shop):
    shop.define("cut", name="made+sold")

    run_id = java.post("/api/workflow/made+sold?correlationId=A+1", "{}").plain_text

    assert java.get(f"/api/workflow/{run_id}").json["correlationId"] == "A 1"
    assert java.post("/api/workflow/made%2Bsold", "{}").status == 200
    assert java.post("/api/workflow/made%20sold", "{}").status == 404


def test_a_key_is_changed_for_a_token_that_opens_every_address(wire: Wire, settings):
    settings.CONDUCTOR_API_ACCESS = "token"
    key, secret = create_key("tests")
    refused = wire.get("/api/metadata/workflow")
    wrong = wire.post("/api/token", json.dumps({"keyId": key, "keySecret": "guessed"}))

    token = wire.post("/api/token", json.dumps({"keyId": key, "keySecret": secret})).json["token"]

    assert (refused.status, refused.json["error"]) == (401, "INVALID_TOKEN")
    assert (wrong.status, wrong.json["status"]) == (401, 401)
    assert wire.get("/api/metadata/workflow", **{"X-Authorization": token}).json == []
    bad = wire.get("/api/metadata/workflow", **{"X-Authorization": token + "x"})
    assert (bad.status, bad.json["error"]) == (401, "INVALID_TOKEN")
