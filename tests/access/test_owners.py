"""Schedules, event handlers, webhooks and bulk operations act as their owner, and stop when it loses a right."""

import pytest
from django.test import Client

from conductor_app.access.authentication import acting_as_owner
from conductor_app.access.commands.users import Subject, revoke
from conductor_app.bulk import commands as bulk_commands
from conductor_app.bulk import executor as bulk_executor
from conductor_app.events.commands import intake as event_intake
from conductor_app.events.models import EventAction, EventHandler, Webhook
from conductor_app.processes.sweeps import sweep_once
from conductor_app.runs.models import Run
from conductor_app.schedules.models import Schedule, ScheduleExecution
from tests.access.users import api_client_of, create_application, grant_access
from tests.builders import simple
from tests.scenario import run_commit_hooks

ALL = ("CREATE", "READ", "UPDATE", "EXECUTE", "DELETE")
SCHEDULE = {"name": "hourly", "cronExpression": "0 0 * * * *", "startWorkflowRequest": {"name": "ship"}}
HANDLER = {
    "name": "on-paid",
    "event": "conductor:paid",
    "active": True,
    "actions": [{"action": "start_workflow", "start_workflow": {"name": "ship", "input": {}}}],
}
WEBHOOK = {
    "name": "shop",
    "verifier": "HEADER_BASED",
    "headers": {"X-Key": "secret"},
    "workflowsToStart": {"ship": 1},
    "receiverWorkflowNamesToVersions": {},
}


@pytest.fixture(autouse=True)
def required_logins(with_logins, clock):
    api_client_of(create_application("root", "ADMIN")).define(simple("pack"), name="ship")


@pytest.fixture
def team():
    """Return an application that may write schedules, handlers and webhooks, and start one workflow."""
    made = create_application("team")
    for target in ("WORKFLOW_SCHEDULE", "EVENT_HANDLER", "WEBHOOK"):
        grant_access(made, target, "*", *ALL)
    grant_access(made, "WORKFLOW_DEF", "ship", "EXECUTE")
    return made


@pytest.fixture
def api(team):
    return api_client_of(team)


def lose(team):
    revoke(Subject(user_id=team.user_id), "WORKFLOW_DEF", "ship", ["EXECUTE"], team.name, "olga")


def pass_an_hour(clock):
    clock.advance(seconds=3600)
    with run_commit_hooks():
        sweep_once()


def publish(id):
    with run_commit_hooks():
        event_intake.receive_event("conductor:paid", id, {}, "api")


def send_to_webhook():
    with run_commit_hooks():
        return Client().post(
            f"/webhook/{Webhook.objects.get().pk}", {}, "application/json", headers={"X-Key": "secret"}
        )


def test_a_schedule_starts_runs_as_its_owner_and_is_paused_when_the_owner_loses_the_permission(api, team, clock):
    assert api.post("/scheduler/schedules", SCHEDULE).status_code == 200
    pass_an_hour(clock)
    assert Run.objects.get().starter_id == team.user_id

    lose(team)
    pass_an_hour(clock)

    row = Schedule.objects.get()
    assert (Run.objects.count(), row.is_paused) == (1, True)
    assert "team lacks the permission EXECUTE on WORKFLOW_DEF 'ship'" in row.paused_reason
    assert "team lacks" in ScheduleExecution.objects.order_by("slot_at").last().reason


def test_a_schedule_stops_when_its_owner_is_deleted(api, team, clock):
    api.post("/scheduler/schedules", SCHEDULE)
    team.user.delete()

    pass_an_hour(clock)

    assert (Run.objects.count(), Schedule.objects.get().is_paused) == (0, True)


def test_running_a_schedule_by_hand_needs_no_other_permission_than_its_owner_has(api, team, clock):
    api.post("/scheduler/schedules", SCHEDULE)
    operator = create_application("operator")
    grant_access(operator, "WORKFLOW_SCHEDULE", "hourly", "EXECUTE")

    assert api_client_of(operator).post("/scheduler/schedules/hourly/run", {}).status_code == 200

    assert Run.objects.get().starter_id == team.user_id


def test_whoever_changes_a_schedule_becomes_its_owner(api, team, clock):
    api.post("/scheduler/schedules", SCHEDULE)
    other = create_application("other")
    grant_access(other, "WORKFLOW_SCHEDULE", "hourly", "UPDATE")
    changed = {**SCHEDULE, "description": "new"}

    assert api_client_of(other).post("/scheduler/schedules", changed).status_code == 403
    grant_access(other, "WORKFLOW_DEF", "ship", "EXECUTE")
    assert api_client_of(other).post("/scheduler/schedules", changed).status_code == 200

    assert Schedule.objects.get().owner_id == other.user_id


def test_a_handler_acts_as_its_owner_and_records_a_refusal(api, team, clock):
    assert api.post("/event", HANDLER).status_code == 200
    publish("1")
    assert Run.objects.get().starter_id == team.user_id

    lose(team)
    publish("2")

    assert Run.objects.count() == 1
    assert "team lacks the permission EXECUTE on WORKFLOW_DEF 'ship'" in EventAction.objects.latest("id").error


@pytest.mark.parametrize("action", ["terminate_workflow", "update_workflow_variables", "complete_task"])
def test_a_handler_changes_only_runs_that_its_owner_may_control(api, team, clock, action):
    root = api_client_of(create_application("another root", "ADMIN"))
    root.define(simple("wait"), name="foreign")
    run_id = root.post("/workflow/foreign", {}).content.decode()
    params = {"workflowId": run_id, "taskRefName": "wait", "variables": {"a": 1}}
    api.post("/event", {**HANDLER, "actions": [{"action": action, action: params}]})

    publish("1")
    assert EventAction.objects.latest("id").error.startswith("team lacks the permission")

    grant_access(team, "WORKFLOW_DEF", "foreign", "EXECUTE")
    publish("2")
    assert EventAction.objects.latest("id").status == "COMPLETED"


def test_a_webhook_acts_as_its_owner(api, team, clock):
    assert api.post("/metadata/webhook", WEBHOOK).status_code == 200
    assert send_to_webhook().status_code == 200
    assert Run.objects.get().starter_id == team.user_id

    lose(team)
    send_to_webhook()

    assert Run.objects.count() == 1
    assert "team lacks" in EventAction.objects.latest("id").error


@pytest.mark.parametrize(
    ("path", "document"), [("/scheduler/schedules", SCHEDULE), ("/event", HANDLER), ("/metadata/webhook", WEBHOOK)]
)
def test_saving_requires_the_permission_to_start_what_is_started(api, team, path, document):
    lose(team)

    reply = api.post(path, document)

    assert (reply.status_code, "EXECUTE on WORKFLOW_DEF 'ship'" in reply.json()["message"]) == (403, True)
    assert not Schedule.objects.exists() and not EventHandler.objects.exists() and not Webhook.objects.exists()


def test_a_webhook_that_completes_tasks_needs_the_permission_on_their_workflows(api):
    document = {**WEBHOOK, "workflowsToStart": {}, "receiverWorkflowNamesToVersions": {"foreign": 1}}

    assert api.post("/metadata/webhook", document).status_code == 403


def test_a_bulk_operation_changes_the_runs_that_its_owner_may_control_when_their_turn_comes(api, team, clock):
    root = api_client_of(create_application("second", "ADMIN"))
    root.define(simple("pack"), name="other")
    grant_access(team, "WORKFLOW_DEF", "ship", "READ")
    runs = [root.start("ship"), root.start("other")]

    _start_bulk_operation(team, "pause", "RUNNING")
    _run_bulk_operations(clock)
    paused = [Run.objects.get(pk=run).status for run in runs]
    _start_bulk_operation(team, "resume", "PAUSED")
    lose(team)
    _run_bulk_operations(clock)

    assert paused == ["PAUSED", "RUNNING"]
    assert Run.objects.get(pk=runs[0]).status == "PAUSED"


def _start_bulk_operation(team, action, status):
    with acting_as_owner(team.user_id):
        bulk_commands.start(bulk_commands.BulkRequest(action, {"status": [status]}, "a reason"), team.name)


def _run_bulk_operations(clock):
    for _ in range(20):
        clock.advance(seconds=0.5)
        with run_commit_hooks():
            bulk_executor.run_due_operations()
