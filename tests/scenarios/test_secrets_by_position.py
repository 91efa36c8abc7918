"""Secrets are resolved only where the author of the step wrote them; any other text is data, whatever it contains."""

import pytest

from conductor_app.core.definition import STEP_STRUCTURES
from conductor_app.core.errors import Invalid
from conductor_app.core.secret_places import SECRET_PLACES
from conductor_app.runs.commands import debugging
from conductor_app.runs.models import Task
from conductor_app.system_tasks.registry import run_built_in_workers
from conductor_app.tasks.commands.claims import claim_tasks
from conductor_app.tasks.secrets import secrets_for_worker
from tests.builders import each, fork, loop, policy, set_variable, step
from tests.recording_web_server import json_answer, running_web_server
from tests.scenario import ACTOR, Scenario, run_commit_hooks

NAMED = "${workflow.secrets.DB}"
VALUE = "TopSecret-4711"
QUEUED = sorted(type for type, structure in STEP_STRUCTURES.items() if structure.is_built_in or structure.names_task)


@pytest.fixture(autouse=True)
def a_secret(monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_DB", VALUE)
    monkeypatch.setenv("CONDUCTOR_SECRET_OTHER", "another-secret")


def handed_out(task_type: str) -> dict:
    """Return the input that a worker of this type receives."""
    [attempt] = claim_tasks(task_type, wait_ms=0)
    return secrets_for_worker(attempt).input or attempt.input


def author(**inputs) -> dict:
    """Return a step whose author wrote a secret beside these inputs."""
    return step("a", inputs={"key": NAMED, **inputs}, policy=policy(retries=3))


@pytest.mark.parametrize("type", QUEUED)
def test_a_secret_is_resolved_at_its_place_in_the_tasks_of_every_type(clock, type):
    inputs = {"key": f"Bearer {NAMED}", "data": "${workflow.input.data}", "both": f"{NAMED} ${{workflow.input.data}}"}
    structure = STEP_STRUCTURES[type]
    required = dict.fromkeys((*structure.required_inputs[:1], *getattr(structure, "needed_inputs", ())), "x")
    required |= {"taskId": "x"} if type == "UPDATE_TASK" else {}
    named = {"dynamicTaskNameParam": "name"} if type == "DYNAMIC" else {"sink": "sqs:x"} if type == "EVENT" else {}
    written = step("a", inputs={**required, **inputs, "name": "a"})
    Scenario(clock, {**written, "type": type, **named}, input={"data": NAMED})

    received = handed_out("a" if STEP_STRUCTURES[type].names_task else type)

    assert received["key"] == f"Bearer {VALUE}"
    assert received["data"] == NAMED
    assert received["both"] == f"{VALUE} {NAMED}"


def from_output(clock, data):
    scenario = Scenario(clock, step("source"), author(data="${source.output.text}"))
    scenario.worker("source").completes(text=data)
    return scenario


def from_variable(clock, data):
    steps = (set_variable("set", text="${workflow.input.text}"), author(data="${workflow.variables.text}"))
    return Scenario(clock, *steps, input={"text": data})


def from_the_input_of_another_task(clock, data):
    scenario = Scenario(clock, step("source", inputs={"text": NAMED}), author(data="${source.input.text}"))
    scenario.worker("source").completes()
    return scenario


def from_a_script(clock, data):
    script = {**step("source", inputs={"expression": "$.text", "text": "${workflow.input.text}"}), "type": "INLINE"}
    return Scenario(clock, script, author(data="${source.output.result}"), input={"text": data})


def from_the_name_of_an_expression(clock, data):
    return Scenario(clock, author(data="${workflow.secrets.${workflow.input.text}}"), input={"text": "DB"})


def from_a_jump(clock, data):
    scenario = Scenario(clock, step("source"), author())
    scenario.jump("a", data=data)
    return scenario


def from_a_rerun(clock, data):
    scenario = Scenario(clock, author())
    scenario.worker("a").completes()
    scenario.rerun("a", task_input={"key": NAMED, "data": data})
    return scenario


def from_the_debugger(clock, data):
    scenario = Scenario(clock, step("source"), author())
    debugging.set_breakpoint(scenario.id, debugging.BreakpointRequest("a", "before"), ACTOR)
    scenario.worker("source").completes()
    given = {"key": NAMED, "data": data}
    debugging.continue_run(scenario.id, debugging.ContinueRequest(scenario.task("a").pk, input=given), ACTOR)
    return scenario


def from_the_template_of_the_task(clock, data):
    written = step("a", inputs={"data": "${workflow.input.text}"}, policy=policy(input_template={"key": NAMED}))
    return Scenario(clock, written, input={"text": data})


def from_the_retried_task(clock, data):
    scenario = Scenario(clock, author(data="${workflow.input.text}"), input={"text": data})
    scenario.worker("a").fails()
    return scenario


def from_the_retried_task_with_a_template(clock, data):
    written = policy(input_template={"key": NAMED}, retries=3)
    scenario = Scenario(
        clock, step("a", inputs={"data": "${workflow.input.text}"}, policy=written), input={"text": data}
    )
    scenario.worker("a").fails()
    return scenario


def from_an_item(clock, data):
    return Scenario(
        clock, each("each", author(data="${each.output.item}"), items="${workflow.input.l}"), input={"l": [data]}
    )


def in_a_loop(clock, data):
    return Scenario(clock, loop("loop", author(data="${workflow.input.text}"), times=2), input={"text": data})


def in_a_branch(clock, data):
    return Scenario(clock, *fork([author(data="${workflow.input.text}")], [step("b")]), input={"text": data})


def after_a_breakpoint(clock, data):
    scenario = Scenario(clock, step("source"), author(data="${source.output.text}"))
    debugging.set_breakpoint(scenario.id, debugging.BreakpointRequest("a", "before"), ACTOR)
    scenario.worker("source").completes(text=data)
    debugging.continue_run(scenario.id, debugging.ContinueRequest(scenario.task("a").pk), ACTOR)
    return scenario


WAYS = [
    from_an_item,
    in_a_loop,
    in_a_branch,
    after_a_breakpoint,
    from_output,
    from_variable,
    from_the_input_of_another_task,
    from_a_script,
    from_the_name_of_an_expression,
    from_a_jump,
    from_a_rerun,
    from_the_debugger,
    from_the_template_of_the_task,
    from_the_retried_task,
    from_the_retried_task_with_a_template,
]


@pytest.mark.parametrize("way", WAYS)
def test_text_that_comes_from_elsewhere_is_data(clock, way):
    way(clock, NAMED)

    assert handed_out("a") == {"key": VALUE, "data": NAMED}


def test_the_input_of_a_sub_workflow_is_data_in_it(clock):
    child = {"name": "child", "version": 1, "schemaVersion": 2, "tasks": [author(data="${workflow.input.token}")]}
    start = {"type": "SUB_WORKFLOW", "subWorkflowParam": {"name": "child", "workflowDefinition": child}}
    Scenario(clock, {**step("sub", inputs={"token": NAMED}), **start})

    assert handed_out("a") == {"key": VALUE, "data": NAMED}


def test_a_started_definition_with_data_in_it_names_only_secrets_that_the_author_wrote(clock):
    started = {
        "name": "child",
        "version": 1,
        "schemaVersion": 2,
        "tasks": [step("a", inputs={"data": "${workflow.input.x}"})],
    }
    request = {"startWorkflow": {"name": "child", "workflowDef": started}, "key": NAMED}
    Scenario(clock, {**step("s", inputs=request), "type": "START_WORKFLOW"}, input={"x": NAMED})

    assert handed_out("a") == {"data": NAMED}


@pytest.mark.parametrize(
    ("written", "data", "received"),
    [
        (f"${{workflow.input.d}}{NAMED}", "$", VALUE),
        (f"${{workflow.input.d}}{NAMED}", "$$", f"${VALUE}"),
        (f"${{workflow.input.d}} {NAMED}", "$${x}", f"${{x}} {VALUE}"),
        (f"{NAMED}${{workflow.input.d}}{NAMED}", NAMED, f"{VALUE}{NAMED}{VALUE}"),
        (f"${{workflow.input.d}}{NAMED}", "${workflow.secrets.", f"${{workflow.secrets.{VALUE}"),
        (f"$${{workflow.secrets.DB}} {NAMED}", "", f"{NAMED} {VALUE}"),
    ],
)
def test_the_place_is_found_in_any_text(clock, written, data, received):
    Scenario(clock, step("a", inputs={"x": written}), input={"d": data})

    assert handed_out("a") == {"x": received}


def test_a_task_of_an_earlier_version_keeps_its_secrets_where_its_definition_has_the_text(clock):
    Scenario(clock, author(data="${workflow.input.d}", both=f"{NAMED} ${{workflow.input.d}}"), input={"d": NAMED})
    task = Task.objects.get(ref="a")
    Task.objects.filter(pk=task.pk).update(
        step_state={name: value for name, value in task.step_state.items() if name != SECRET_PLACES}
    )

    # Without recorded places the server does not know which of the two is the author's.
    assert handed_out("a") == {"key": VALUE, "data": NAMED, "both": f"{NAMED} {NAMED}"}


def http(ref="call", **request) -> dict:
    return {**step(ref, inputs={"http_request": {"method": "POST", **request}}), "type": "HTTP"}


REQUEST = {"uri": "http://bank.example/", "headers": {"X-Key": NAMED}, "body": {"amount": 1}}


def ended_call(clock) -> Scenario:
    scenario = Scenario(clock, http(**REQUEST))
    scenario.reports("call")
    return scenario


def test_a_rerun_with_another_address_is_refused_while_it_keeps_a_secret(clock):
    scenario = ended_call(clock)
    leak = {"http_request": {**REQUEST, "method": "POST", "uri": "http://evil.example/"}}

    with pytest.raises(Invalid, match=r"`http_request.uri` is changed.*`http_request.headers.X-Key`"):
        scenario.rerun("call", task_input=leak)

    assert scenario.status == "COMPLETED"


def test_a_rerun_that_changes_other_parts_keeps_the_secret(clock):
    scenario = ended_call(clock)
    scenario.rerun(
        "call", task_input={"http_request": {**REQUEST, "method": "POST", "body": {"amount": 2, "x": NAMED}}}
    )

    received = handed_out("HTTP")["http_request"]
    assert (received["headers"], received["body"]) == ({"X-Key": VALUE}, {"amount": 2, "x": NAMED})


def test_a_rerun_with_another_address_and_no_secret_names_its_text_as_data(clock):
    scenario = ended_call(clock)
    other = {"uri": f"http://mine.example/?s={NAMED}", "method": "GET", "headers": {"X-Mine": NAMED}}
    scenario.rerun("call", task_input={"http_request": other})

    assert handed_out("HTTP") == {"http_request": other}


def test_a_masked_value_stays_with_its_address(clock):
    body = {"card": "${workflow.input.card}"}
    request = {"uri": "http://bank.example/", "method": "POST", "body": body}
    scenario = Scenario(clock, http(**request), input={"card": "4111"}, maskedFields=["card"])
    scenario.reports("call")
    hidden = {**request, "body": {"card": "***", "note": "again"}}

    with pytest.raises(Invalid, match=r"`http_request.uri` is changed.*`http_request.body.card`"):
        scenario.rerun("call", task_input={"http_request": {**hidden, "uri": "http://evil.example/"}})
    scenario.rerun("call", task_input={"http_request": hidden})

    assert handed_out("HTTP")["http_request"]["body"] == {"card": "4111", "note": "again"}


def test_a_masked_input_is_kept_in_a_changed_one_only_if_no_address_is_data(clock):
    steps = (http(uri="${workflow.input.uri}", body={"card": "${workflow.input.card}"}),)
    scenario = Scenario(clock, *steps, input={"card": "4111", "uri": "http://bank.example/"}, maskedFields=["card"])
    scenario.reports("call")

    with pytest.raises(Invalid, match="step call depends on data"):
        scenario.rerun(input={"card": "***", "uri": "http://evil.example/"})
    scenario.rerun(input={"card": "***", "uri": "http://bank.example/"})
    assert handed_out("HTTP")["http_request"]["body"] == {"card": "4111"}


def test_an_upgrade_changes_no_input_whose_masked_values_could_go_to_another_address(clock):
    call = http(uri="${workflow.input.uri}", body={"card": "${workflow.input.card}"})
    sent = {"card": "4111", "uri": "http://bank.example/"}
    scenario = Scenario(clock, step("first"), call, input=sent, maskedFields=["card"])

    with pytest.raises(Invalid, match="step call depends on data"):
        scenario.upgrade(step("first"), call, input={"uri": "http://evil.example/"})
    scenario.upgrade(step("first"), call, version=3, input={"uri": "http://mine.example/", "card": "1"})

    scenario.worker("first").completes()
    assert handed_out("HTTP")["http_request"] == {
        **call["inputParameters"]["http_request"],
        "uri": "http://mine.example/",
        "body": {"card": "1"},
    }


def test_a_jump_to_another_address_is_refused_while_the_step_has_a_secret(clock):
    flat = {
        **step("call", inputs={"uri": "http://bank.example/", "method": "GET", "headers": {"X": NAMED}}),
        "type": "HTTP",
    }
    scenario = Scenario(clock, step("first"), flat)

    with pytest.raises(Invalid, match="`uri` is changed"):
        scenario.jump("call", uri="http://evil.example/")
    scenario.jump("call", uri="http://mine.example/", headers={"X": NAMED})

    assert handed_out("HTTP")["headers"] == {"X": NAMED}


@pytest.mark.parametrize(
    "change", [{"callbackUrl": "http://evil.example"}, {"target": {"host": "evil"}}, {"at": "x://y"}]
)
def test_a_worker_gets_no_secret_with_an_input_that_looks_like_another_address(clock, change):
    scenario = Scenario(clock, author(callbackUrl="http://good.example", amount=1))
    scenario.worker("a").completes()
    stored = scenario.task("a").input

    with pytest.raises(Invalid, match="is changed"):
        scenario.rerun("a", task_input={**stored, **change})
    scenario.rerun("a", task_input={**stored, "amount": 2})
    assert handed_out("a") == {"key": VALUE, "callbackUrl": "http://good.example", "amount": 2}


def test_an_input_that_an_operator_set_keeps_its_secrets_in_later_attempts(clock):
    scenario = Scenario(clock, author(amount=1))
    scenario.worker("a").completes()
    scenario.rerun("a", task_input={"key": NAMED, "amount": NAMED})
    scenario.worker("a").fails()

    assert handed_out("a") == {"key": VALUE, "amount": NAMED}


@pytest.mark.parametrize("masked", [[], ["client"]])
def test_a_redirect_to_another_origin_gets_neither_secret_headers_nor_a_body_with_one(clock, settings, masked):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8", "::1")
    with running_web_server() as server:
        elsewhere = f"http://localhost:{server.server_port}/b"
        server.answers |= {"/a": (307, {"location": elsewhere}, b""), "/b": json_answer({})}
        headers = {"X-Key": NAMED, "X-Plain": "1"}
        body = {"client": "${workflow.input.client}" if masked else NAMED}
        scenario = Scenario(
            clock,
            http("plain", uri=f"{server.url}/a", headers=headers, body={"amount": 1}),
            http(uri=f"{server.url}/a", headers=headers, body=body),
            input={"client": "4111"},
            maskedFields=masked,
        )
        for _ in range(2):
            with run_commit_hooks():
                run_built_in_workers()

        [first, second, third] = server.asked
    assert (first["headers"]["x-key"], second["headers"]["x-key"], second["headers"]["x-plain"]) == (VALUE, None, "1")
    assert (second["path"], third["path"]) == ("/b", "/a")
    assert scenario.task("call").status == "FAILED"
    assert "redirected to another origin" in scenario.task("call").reason
    assert VALUE not in scenario.task("call").reason
