"""Masked fields in storage: no table and no file has such a value in plain text, whichever way it came."""

import json

import pytest
from django.core.files.base import ContentFile
from django.db import connection

from conductor_app.access.models import AuditEntry
from conductor_app.core import commands
from conductor_app.core.decide import Report
from conductor_app.core.masking import REDACTED
from conductor_app.events.commands import handlers as event_handlers
from conductor_app.events.commands import handlers as event_replays
from conductor_app.events.models import EventDelivery, HandlerEvaluation
from conductor_app.payloads import commands as payload_storage
from conductor_app.payloads import store as payload_store
from conductor_app.payloads.models import StoredPayload
from conductor_app.runs.commands import messages
from conductor_app.runs.commands import repair as run_commands_repair
from conductor_app.runs.commands.change import RunCommand, change_run
from conductor_app.runs.commands.start import StartRequest, start_run
from conductor_app.runs.models import Run
from conductor_app.schedules import commands as schedules_commands
from conductor_app.schedules import firing as schedules_firing
from conductor_app.schedules.models import Schedule
from conductor_app.system_tasks.registry import run_built_in_workers
from conductor_app.tasks.commands import reports as task_commands
from conductor_app.tasks.commands.claims import claim_tasks
from tests.builders import definition, dynamic_fork, event, policy, step, sub_workflow
from tests.scenario import ACTOR, Scenario, register_definitions, run_commit_hooks

NUMBER = "4711-0815"
CARD = {"card": {"number": NUMBER, "holder": "Ada"}}
MASKED = {"maskedFields": ["number"]}
HOLDS_CLEAR = {"taskdefinition", "workflowdefinition", "resolveddefinition"}
"""Tables that hold texts of authors, which are displayed as written."""


def clear_places() -> set[str]:
    """Return the tables that contain the value in clear text, and whether an external payload does."""
    tables = [name for name in connection.introspection.table_names() if name.startswith("conductor_")]
    found = set()
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"SELECT * FROM {table}")
            if any(NUMBER in str(value) for row in cursor.fetchall() for value in row):
                found.add(table.removeprefix("conductor_"))
    for path in StoredPayload.objects.filter(size__isnull=False, expires_at=None).values_list("path", flat=True):
        found |= {path} if NUMBER.encode() in payload_store.fetch_payload(path) else set()
    return found - HOLDS_CLEAR


def event_handler(name: str = "conductor:order:tell", **handler) -> dict:
    """Return an event handler for the events of this module's runs."""
    return {"name": "h", "event": name, "active": True, "actions": [], **handler}


def upload(value: dict) -> str:
    path = payload_storage.reserve_path("task/output")
    payload_storage.store_reserved(path, ContentFile(json.dumps(value).encode()))
    return path


def test_an_event_payload_is_encrypted_until_a_handler_processes_it(clock):
    starts = {"name": "other", "input": {"number": "${card.number}", "seen": "${card.holder}"}}
    action = {"action": "start_workflow", "start_workflow": starts}
    condition = "$.card.number.length == 9 && $.card.holder == 'Ada'"
    event_handlers.create_handlers([event_handler(condition=condition, actions=[action])], ACTOR)
    tells = event("tell", "conductor", inputs={"card": "${workflow.input.card}"})

    scenario = Scenario(clock, tells, others=[definition(step("pay"), name="other", **MASKED)], input=CARD, **MASKED)

    assert scenario.status == "COMPLETED"
    assert clear_places() == set()
    assert EventDelivery.objects.get().payload["card"] == {"number": REDACTED, "holder": "Ada"}
    verdict = HandlerEvaluation.objects.get()
    assert (verdict.outcome, verdict.value) == ("MATCHED", True)
    assert NUMBER not in str(verdict.seen)
    assert verdict.seen["$.card.holder"] == "Ada"
    [started] = claim_tasks("pay", wait_ms=0)
    assert Run.objects.get(pk=started.run_id).input["number"] == REDACTED


def test_a_replayed_event_has_its_original_payload(clock):
    starts = {"name": "other", "input": {"number": "${card.number}"}}
    handler = event_handler(
        condition=f"$.card.number == '{NUMBER}'", actions=[{"action": "start_workflow", "start_workflow": starts}]
    )
    tells = event("tell", "conductor", inputs={"card": "${workflow.input.card}"})
    Scenario(
        clock,
        tells,
        others=[definition(step("pay", inputs={"number": "${workflow.input.number}"}), name="other", **MASKED)],
        input=CARD,
        **MASKED,
    )
    event_handlers.create_handlers([handler], ACTOR)

    original = EventDelivery.objects.get()
    [foreseen] = event_replays.plan_replay(original)
    with run_commit_hooks():
        event_replays.replay(original.pk, ["h"], ACTOR, "it was not heard")

    assert (foreseen.verdict.outcome, foreseen.acts[0].params["input"]) == ("MATCHED", {"number": REDACTED})
    [started] = claim_tasks("pay", wait_ms=0)
    assert started.input == {"number": NUMBER}
    # An author's condition is displayed as written.
    assert clear_places() == {"eventhandler", "handlerevaluation"}


def test_an_event_that_waits_in_the_outbox_is_sealed(clock):
    tells = event("tell", "conductor", inputs={"card": "${workflow.input.card}"})
    scenario = Scenario(clock, step("first"), tells, input=CARD, **MASKED)
    worker = scenario.worker("first")
    worker.polls()

    # The transaction is not committed: commit hooks do not run, and the message stays.
    task_commands.report_task(scenario.id, worker.held.id, Report("COMPLETED"), ACTOR)

    assert clear_places() == set()


def test_a_message_is_encrypted_until_a_step_consumes_it(clock):
    pull = {**step("pull", inputs={"batchSize": 2}), "type": "PULL_WORKFLOW_MESSAGES"}
    after = step("after", inputs={"n": "${pull.output.messages[0].payload.number}"})
    scenario = Scenario(clock, step("first"), pull, after, **MASKED)
    with run_commit_hooks():
        messages.send_inbox_message(scenario.id, {"number": NUMBER, "open": 1})
    assert clear_places() == set()

    scenario.worker("first").completes()

    assert scenario.task("pull").output["messages"][0]["payload"] == {"number": REDACTED, "open": 1}
    assert scenario.task("after").input == {"n": NUMBER}


def test_an_uploaded_input_is_encrypted_in_place(clock):
    Scenario(clock, step("pay", inputs={"number": "${workflow.input.card.number}"}), input=CARD, **MASKED)
    path = upload(CARD)

    with run_commit_hooks():
        id = start_run(StartRequest("order", input_path=path), ACTOR)

    assert clear_places() == set()
    assert StoredPayload.objects.get(pk=path).expires_at == 0
    row = Run.objects.get(pk=id)
    assert (row.input, row.input_path) == ({"card": {"number": REDACTED, "holder": "Ada"}}, "")
    given = [attempt.input for attempt in claim_tasks("pay", count=5, wait_ms=0)]
    assert given == [{"number": NUMBER}, {"number": NUMBER}]


def test_a_large_uploaded_input_is_stored_externally_again(clock, settings):
    settings.CONDUCTOR_WORKFLOW_PAYLOAD_SOFT_BYTES = 1000
    Scenario(clock, step("pay", inputs={"number": "${workflow.input.card.number}"}), input=CARD, **MASKED)
    path = upload({**CARD, "text": "x" * 3000})

    with run_commit_hooks():
        id = start_run(StartRequest("order", input_path=path), ACTOR)

    row = Run.objects.get(pk=id)
    assert row.input_path not in ("", path)
    assert clear_places() == set()
    assert [attempt.input for attempt in claim_tasks("pay", count=5, wait_ms=0)][1] == {"number": NUMBER}


def test_an_uploaded_output_is_encrypted_in_place(clock):
    scenario = Scenario(clock, step("pay"), step("after", inputs={"number": "${pay.output.number}"}), **MASKED)
    worker = scenario.worker("pay")
    worker.polls()
    path = upload({"number": NUMBER})

    with run_commit_hooks():
        task_commands.report_task(
            scenario.id, worker.held.id, Report("COMPLETED"), ACTOR, task_commands.ReportOptions(output_path=path)
        )

    assert clear_places() == set()
    assert (scenario.task("pay").output, scenario.task("pay").output_path) == ({"number": REDACTED}, "")
    assert [attempt.input for attempt in claim_tasks("after", wait_ms=0)] == [{"number": NUMBER}]


def test_an_upload_without_masked_fields_is_not_rewritten(clock):
    scenario = Scenario(clock, step("pay"), **MASKED)
    worker = scenario.worker("pay")
    worker.polls()
    path = upload({"sum": 3})

    with run_commit_hooks():
        task_commands.report_task(
            scenario.id, worker.held.id, Report("COMPLETED"), ACTOR, task_commands.ReportOptions(output_path=path)
        )

    assert (scenario.status, scenario.task("pay").output_path) == ("COMPLETED", path)


def test_dynamic_branches_store_encrypted_inputs_and_retry_with_them(clock):
    branches = [step(name, policy=policy(retries=1)) for name in ("a", "b")]
    inputs = {"a": {"number": NUMBER, "open": 1}, "b": {"deep": {"number": NUMBER}}}
    scenario = Scenario(clock, *dynamic_fork(), input={"tasks": branches, "inputs": inputs}, **MASKED)
    assert clear_places() == set()

    scenario.worker("a").fails()
    [again] = claim_tasks("a", wait_ms=0)

    assert again.input == {"number": NUMBER, "open": 1}
    assert clear_places() == set()


def test_values_entered_by_operators_are_encrypted(clock):
    scenario = Scenario(clock, step("pay", policy=policy(retries=1)), step("after"), input=CARD, **MASKED)
    scenario.worker("pay").fail_terminally()

    scenario.rerun("pay", task_input={"number": NUMBER}, input={"number": NUMBER})
    assert clear_places() == set()
    scenario.worker("pay").fails()

    assert [attempt.input for attempt in claim_tasks("pay", wait_ms=0)] == [{"number": NUMBER}]
    scenario.terminate()
    scenario.restart()
    scenario.skip("after", input={"number": NUMBER}, output={"number": NUMBER})
    assert clear_places() == set()


def test_a_masked_value_that_is_sent_back_preserves_the_original(clock):
    inputs = {"number": "${workflow.input.card.number}", "n": 1}
    scenario = Scenario(clock, step("pay", inputs=inputs), input=CARD, **MASKED)
    scenario.worker("pay").fail_terminally()
    shown = {**scenario.row.input, "more": 2}

    scenario.rerun(input=shown)
    [first] = claim_tasks("pay", wait_ms=0)
    scenario.terminate()
    scenario.rerun("pay", task_input={**scenario.task("pay").input, "n": 7})
    [second] = claim_tasks("pay", wait_ms=0)

    assert (scenario.row.input["card"]["number"], scenario.row.input["more"]) == (REDACTED, 2)
    assert (first.input["number"], second.input) == (NUMBER, {"number": NUMBER, "n": 7})


def test_a_rerun_of_a_child_keeps_the_input_of_its_parent_encrypted(clock):
    child = definition(step("pay"), name="child", **MASKED)
    scenario = Scenario(clock, sub_workflow("s"), others=[child], input=CARD, **MASKED)
    scenario.worker("pay").fails()

    # The transaction is not committed: the result for the parent run stays a message.
    run_commands_repair.rerun(
        scenario.id, ACTOR, attempt_id=scenario.child("s").task("pay").id, input={"number": NUMBER}
    )

    assert clear_places() == set()


def test_a_failure_workflow_receives_the_input_with_its_masked_values(clock):
    undo = definition(step("undo", inputs={"holder": "${workflow.input.card.holder}"}), name="undo")
    scenario = Scenario(clock, step("pay"), others=[undo], input=CARD, failureWorkflow="undo", **MASKED)

    scenario.worker("pay").fails()

    started = Run.objects.get(pk=scenario.row.output["conductor.failure_workflow"])
    assert started.input["card"] == {"number": REDACTED, "holder": "Ada"}
    assert clear_places() == set()


def test_a_schedule_passes_no_encrypted_value_to_another_workflow(clock):
    register_definitions(definition(step("pay"), **MASKED), definition(step("tell"), name="leak", **MASKED))
    request = {"name": "order", "input": CARD}
    document = {"name": "nightly", "cronExpression": "0 0 3 * * *", "startWorkflowRequest": request}
    shown = schedules_commands.save_schedule(document, ACTOR).document["startWorkflowRequest"]["input"]

    schedules_commands.save_schedule({**document, "startWorkflowRequest": {"name": "leak", "input": shown}}, ACTOR)
    with run_commit_hooks():
        id = schedules_commands.run_now("nightly", ACTOR)

    assert payload_storage.decrypt_masked(payload_storage.load_stored_input(id))["card"]["number"] == REDACTED


def test_a_schedule_stores_its_input_encrypted_and_starts_runs_with_it(clock):
    register_definitions(definition(step("pay", inputs={"number": "${workflow.input.card.number}"}), **MASKED))
    request = {"name": "order", "input": {**CARD, "list": [{"number": 1}, {"number": 2}]}}
    document = {"name": "nightly", "cronExpression": "0 0 3 * * *", "startWorkflowRequest": request}

    saved = schedules_commands.save_schedule(document, ACTOR)
    assert saved.document["startWorkflowRequest"]["input"]["card"] == {"number": REDACTED, "holder": "Ada"}
    # A client that changes another field sends back the masked value that it received.
    changed = {**Schedule.objects.get().document["startWorkflowRequest"]["input"], "more": {"number": 3}}
    schedules_commands.save_schedule({**document, "startWorkflowRequest": {**request, "input": changed}}, ACTOR)
    schedules_firing.pause_schedule("nightly", ACTOR)
    schedules_firing.resume_schedule("nightly", ACTOR)
    with run_commit_hooks():
        id = schedules_commands.run_now("nightly", ACTOR)

    assert clear_places() == set()
    assert [attempt.input for attempt in claim_tasks("pay", wait_ms=0)] == [{"number": NUMBER}]
    assert payload_storage.decrypt_masked(payload_storage.load_stored_input(id))["list"] == [
        {"number": 1},
        {"number": 2},
    ]
    assert payload_storage.decrypt_masked(payload_storage.load_stored_input(id))["more"] == {"number": 3}


def test_a_built_in_worker_does_not_repeat_it_in_its_reason(clock):
    number = "${workflow.input.card.number}"
    request = {"http_request": {"uri": f"http://127.0.0.1:1/cards/{number}", "method": "GET"}, "number": number}
    scenario = Scenario(
        clock, {**step("get", inputs=request), "type": "HTTP"}, input=CARD, maskedFields=["uri", "number"]
    )

    with run_commit_hooks():
        run_built_in_workers()

    assert f"(GET {REDACTED})" in scenario.task("get").reason
    assert clear_places() == set()


@pytest.mark.parametrize("road", ["start", "rerun", "variables", "report"])
def test_the_plain_roads_are_sealed(clock, road):
    scenario = Scenario(clock, step("pay"), step("after"), input=CARD if road == "start" else {}, **MASKED)

    if road == "rerun":
        scenario.terminate()
        scenario.rerun(input=CARD)
    elif road == "variables":
        with run_commit_hooks():
            change_run(RunCommand(scenario.id, commands.set_variables(CARD), ACTOR))
    elif road == "report":
        scenario.worker("pay").completes(**CARD)

    assert clear_places() == set()


def test_a_rerun_records_that_a_masked_value_changed_but_not_the_value(clock):
    pay = step("pay", inputs={"card": "${workflow.input.card}", "key": "${workflow.secrets.KEY}"})
    scenario = Scenario(clock, pay, input={"card": {"number": "1234-5678", "holder": "Ada"}}, **MASKED)
    scenario.worker("pay").fails("no money")
    shown = scenario.task("pay").input

    scenario.rerun("pay", task_input={**shown, "card": {"number": NUMBER, "holder": "Ben"}})

    facts = AuditEntry.objects.get(action="rerun").facts
    assert facts["before"] == {"task input.card.number": REDACTED, "task input.card.holder": "Ada"}
    assert facts["after"] == {"task input.card.number": f"{REDACTED} (changed)", "task input.card.holder": "Ben"}
    assert (facts["task"], facts["status"], facts["failure"]) == ("pay", "FAILED", "no money")
    assert clear_places() == set()
