"""Roles and permissions: one table of roles and actions."""

import pytest

from conductor_app.runs.models import Attempt
from tests.access.users import api_client_of, create_application
from tests.builders import simple

pytestmark = pytest.mark.usefixtures("with_logins")

DEFINITION = {"name": "other", "tasks": [simple("a")], "schemaVersion": 2}
ACTIONS = {
    "see a definition": lambda api, run, task: api.get("/metadata/workflow/order"),
    "write a new definition": lambda api, run, task: api.post("/metadata/workflow", DEFINITION),
    "overwrite a definition": lambda api, run, task: api.put("/metadata/workflow", [{**DEFINITION, "name": "order"}]),
    "remove a definition": lambda api, run, task: api.delete("/metadata/workflow/order/1"),
    "write a new task": lambda api, run, task: api.post("/metadata/taskdefs", [{"name": "new"}]),
    "overwrite a task": lambda api, run, task: api.put("/metadata/taskdefs", {"name": "a", "retryCount": 1}),
    "start": lambda api, run, task: api.post("/workflow", {"name": "order"}),
    "start by name": lambda api, run, task: api.post("/workflow/order", {}),
    "start its own": lambda api, run, task: api.post("/workflow", {"name": "order", "workflowDef": DEFINITION}),
    "see a run": lambda api, run, task: api.get(f"/workflow/{run}"),
    "see a run's status": lambda api, run, task: api.get(f"/workflow/{run}/status"),
    "list runs": lambda api, run, task: api.get("/workflow/running/order"),
    "pause a run": lambda api, run, task: api.put(f"/workflow/{run}/pause"),
    "stop a run": lambda api, run, task: api.delete(f"/workflow/{run}"),
    "remove a run": lambda api, run, task: api.delete(f"/workflow/{run}/remove?archiveWorkflow=false"),
    "poll": lambda api, run, task: api.get("/tasks/poll/batch/a", timeout=0),
    "poll in a domain": lambda api, run, task: api.get("/tasks/poll/batch/a", timeout=0, domain="eu"),
    "report": lambda api, run, task: api.post(
        "/tasks", {"workflowInstanceId": run, "taskId": task, "status": "COMPLETED"}
    ),
    "see a task": lambda api, run, task: api.get(f"/tasks/{task}"),
    "log": lambda api, run, task: api.post(f"/tasks/{task}/log", b"line"),
    "see a queue": lambda api, run, task: api.get("/tasks/queue/size", taskType="a"),
}
EVERYTHING = set(ACTIONS)
SEES = {"see a definition", "see a run", "see a run's status", "list runs", "see a task", "see a queue"}
MAY = {
    "ADMIN": EVERYTHING,
    "USER": {"write a new definition", "write a new task"},
    "USER_READ_ONLY": SEES,
    "WORKER": {"poll", "poll in a domain", "report", "see a task", "log", "see a queue"},
    "METADATA_MANAGER": SEES
    | {
        "write a new definition",
        "overwrite a definition",
        "remove a definition",
        "write a new task",
        "overwrite a task",
    },
    "WORKFLOW_MANAGER": SEES | {"start", "start by name", "pause a run", "stop a run", "remove a run", "report", "log"},
    "APPLICATION_MANAGER": set(),
    None: set(),
}


@pytest.fixture
def situation(clock):
    """Return a definition, a run of it, and its claimed task."""
    admin = api_client_of(create_application("admin", "ADMIN"))
    admin.post("/metadata/taskdefs", [{"name": "a"}])
    admin.define(simple("a"))
    run = admin.start()
    return run, admin.poll("a")[0]["taskId"]


@pytest.mark.parametrize("role", MAY, ids=str)
def test_a_role_has_the_permissions_of_the_table(situation, role):
    verdicts = {}
    for action in ACTIONS:
        api = api_client_of(create_application(f"a caller of {action}", *filter(None, [role])))
        # Each action starts from the same state, so that no action affects the verdict on the next one.
        verdicts[action] = ACTIONS[action](api, *situation).status_code

    assert {action for action, status in verdicts.items() if status != 403} == MAY[role] | _public(verdicts, role)
    assert not {status for status in verdicts.values() if status >= 500}


def _public(verdicts, role):
    """Replace the verdicts on objects that no longer exist: every role gets 404 for them."""
    return {action for action, status in verdicts.items() if status == 404}


def test_a_rejection_names_the_missing_permission_and_the_object(situation):
    reply = api_client_of(create_application("shop", "WORKER")).post("/workflow", {"name": "order"})

    assert (reply.status_code, reply["Content-Type"], reply.json()["status"]) == (403, "application/json", 403)
    assert reply.json()["error"] == "FORBIDDEN"
    assert reply.json()["message"] == "shop lacks the permission EXECUTE on WORKFLOW_DEF 'order'."


def test_an_operator_cannot_start_an_inline_definition(situation):
    reply = api_client_of(create_application("ops", "WORKFLOW_MANAGER")).post(
        "/workflow", {"name": "x", "workflowDef": DEFINITION}
    )

    assert "CREATE on WORKFLOW_DEF 'x' or UPDATE on WORKFLOW_DEF 'x'" in reply.json()["message"]


def test_a_rejected_report_has_no_effect(situation):
    run, task = situation

    api = api_client_of(create_application("shop"))
    reply = api.post("/tasks/update-v2", {"workflowInstanceId": run, "taskId": task, "status": "COMPLETED"})

    assert reply.status_code == 403
    assert Attempt.objects.get(pk=task).status == "LEASED"
