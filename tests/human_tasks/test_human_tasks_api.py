"""The Human Tasks API: search, claim, release, reassign, save and complete follow the same rules as the pages."""

from typing import Any

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.human_tasks import commands as human_tasks
from conductor_app.human_tasks.models import HumanTask
from conductor_app.processes.sweeps import handle_due_timers
from conductor_app.runs.models import Attempt
from tests.builders import set_variable, simple, step_of

SCHEMA = {"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}}
LAYOUT = {"type": "VerticalLayout", "elements": [{"type": "Control", "scope": "#/properties/ok"}]}


def assignment(user: str, kind: str = "EXTERNAL_USER", minutes: int = 0) -> dict[str, Any]:
    return {"assignee": {"userType": kind, "user": user}, "slaMinutes": minutes}


def human(ref: str = "approve", **said: Any) -> dict[str, Any]:
    return step_of("HUMAN", ref, inputParameters={"__humanTaskDefinition": said, "order": "${workflow.input.order}"})


def begin(api, *steps, **fields) -> str:
    """Start a run that waits for people and return the id of its first human task."""
    api.define(*steps or [human(assignments=[assignment("bob")], displayName="Approve")])
    return task_of(api, api.start(**fields))


def task_of(api, run: str) -> str:
    return next(each["taskId"] for each in api.workflow(run)["tasks"] if each["taskType"] == "HUMAN")


def run_of(api, task: str) -> dict[str, Any]:
    return api.workflow(api.get(f"/human/tasks/{task}").json()["workflowId"])


def state(api, task: str) -> str:
    return api.get(f"/human/tasks/{task}").json()["state"]


def search(api, **filters: Any) -> dict[str, Any]:
    """Search as the JavaScript SDK does: with every filter present, and empty if it is not set."""
    empty = {"size": 15, "states": [], "taskInputQuery": "", "taskOutputQuery": "", "definitionNames": [],
             "taskRefNames": [], "claimants": [], "assignees": [], "start": 0}  # fmt: skip
    reply = api.post("/human/tasks/search", empty | filters)
    assert reply.status_code == 200, reply.content
    return reply.json()


def hit_ids(api, **filters: Any) -> list[str]:
    return [each["taskId"] for each in search(api, **filters)["results"]]


def test_a_task_contains_its_state_and_assignee(api):
    task = begin(api, input={"order": 7})

    entry = api.get(f"/human/tasks/{task}").json()

    assert (entry["taskId"], entry["taskRefName"], entry["state"]) == (task, "approve", "ASSIGNED")
    assert (entry["workflowName"], entry["displayName"]) == ("order", "Approve")
    assert entry["assignee"] == {"userType": "EXTERNAL_USER", "user": "bob"} and "claimant" not in entry
    assert (entry["input"]["order"], entry["output"]) == (7, {})
    assert entry["humanTaskDef"]["assignments"] == [assignment("bob")]
    assert entry["createdOn"] > 0 and entry["updatedOn"] >= entry["createdOn"]
    assert api.get(f"/human/tasks/{task}/conductorTask").json()["taskType"] == "HUMAN"


def test_a_single_assignee_as_the_javascript_builder_writes_it_is_understood(api):
    task = begin(api, human(assignee={"userType": "EXTERNAL_GROUP", "user": "sales"}))

    assert api.get(f"/human/tasks/{task}").json()["assignee"]["userType"] == "EXTERNAL_GROUP"


def test_a_task_without_an_assignee_is_pending_and_claimed_by_the_caller_in_its_own_name(api):
    task = begin(api, human())
    assert state(api, task) == "PENDING"

    claimed = api.post(f"/human/tasks/{task}/claim").json()

    assert claimed["state"] == "IN_PROGRESS"
    assert claimed["claimant"] == {"userType": "CONDUCTOR_USER", "user": "anonymous"}
    assert api.post(f"/human/tasks/{task}/release").content == b""
    assert state(api, task) == "PENDING"
    assert api.post(f"/human/tasks/{task}/release").status_code == 409


def test_a_task_is_claimed_for_an_external_user_and_by_no_other(api):
    task = begin(api)

    assert api.post(f"/human/tasks/{task}/externalUser/eve").status_code == 409
    assert api.post(f"/human/tasks/{task}/claim").status_code == 409
    claimed = api.post(f"/human/tasks/{task}/externalUser/bob").json()
    assert claimed["claimant"] == {"userType": "EXTERNAL_USER", "user": "bob"}
    assert api.post(f"/human/tasks/{task}/externalUser/bob").status_code == 200
    refused = api.post(f"/human/tasks/{task}/externalUser/eve")
    assert (refused.status_code, refused.json()["message"]) == (409, "The task is already claimed by bob.")
    taken = api.post(f"/human/tasks/{task}/externalUser/eve?overrideAssignment=true").json()
    assert taken["claimant"]["user"] == "eve"
    note = AuditEntry.objects.filter(action="claim_task").latest("pk")
    assert (note.actor, note.facts["external_user"], note.facts["before"]) == ("anonymous", "eve", "bob")


def test_an_output_is_saved_piece_by_piece_and_completed_with_the_run_going_on(api):
    task = begin(api, human(), set_variable("last", was="${approve.output.ok}"))

    assert api.post(f"/human/tasks/{task}/update?complete=false", {"a": 1, "ok": False}).content == b""
    assert api.post(f"/human/tasks/{task}/update", {"ok": True}).status_code == 200
    assert api.get(f"/human/tasks/{task}").json()["output"] == {"a": 1, "ok": True}
    assert state(api, task) == "PENDING"

    assert api.post(f"/human/tasks/{task}/update?complete=true", {}).content == b""

    run = run_of(api, task)
    assert (run["status"], run["variables"]) == ("COMPLETED", {"was": True})
    assert state(api, task) == "COMPLETED"
    assert AuditEntry.objects.filter(action="complete_task", actor="anonymous").count() == 1


def test_a_task_is_completed_by_its_reference_in_the_workflow(api):
    task = begin(api)
    run = run_of(api, task)["workflowId"]

    where = f"/human/tasks/update/taskRef?workflowId={run}&taskRefName=approve&complete=true&iteration=0"
    assert api.post(where, {"ok": 1}).content == b""

    assert api.workflow(run)["output"] == {"ok": 1}
    assert api.post(where, {}).status_code == 404
    assert api.post("/human/tasks/update/taskRef?taskRefName=approve", {}).status_code == 400


def test_a_task_of_a_loop_is_found_by_its_iteration(api):
    loop = step_of("DO_WHILE", "loop", loopCondition="$.loop['iteration'] < 2", loopOver=[human()])
    api.define(loop)
    run = api.start()
    where = f"/human/tasks/update/taskRef?workflowId={run}&taskRefName=approve&complete=true"

    assert api.post(f"{where}&iteration=2", {}).status_code == 404
    assert api.post(f"{where}&iteration=1", {}).status_code == 200
    assert api.post(f"{where}&iteration=2", {}).status_code == 200
    assert api.workflow(run)["status"] == "COMPLETED"


def test_an_output_that_violates_the_schema_is_rejected_but_a_draft_is_not(api):
    task = begin(api, human(jsonSchema=SCHEMA))

    assert api.post(f"/human/tasks/{task}/update?complete=false", {"ok": "perhaps"}).status_code == 200
    refused = api.post(f"/human/tasks/{task}/update?complete=true", {})
    assert refused.status_code == 400
    assert "output.ok" in refused.json()["message"] and refused.json()["validationErrors"][0]["path"] == "output.ok"
    assert run_of(api, task)["status"] == "RUNNING"
    assert api.post(f"/human/tasks/{task}/update?complete=true", {"ok": True}).status_code == 200


def test_an_output_above_the_limit_is_rejected_and_the_task_stays_open(api, settings):
    task = begin(api)
    settings.CONDUCTOR_TASK_PAYLOAD_MAX_BYTES = 1_000

    for complete in ("false", "true"):
        reply = api.post(f"/human/tasks/{task}/update?complete={complete}", {"text": "x" * 2_000})
        assert reply.status_code == 413
    assert state(api, task) == "ASSIGNED"


def test_a_new_assignment_replaces_the_claim(api, clock):
    task = begin(api)
    api.post(f"/human/tasks/{task}/externalUser/bob")

    assert api.post(f"/human/tasks/{task}/reassign", [assignment("ann", minutes=30), assignment("cid")]).content == b""

    entry = api.get(f"/human/tasks/{task}").json()
    assert (entry["state"], entry["assignee"]["user"]) == ("ASSIGNED", "ann")
    clock.advance(seconds=31 * 60)
    assert api.get(f"/human/tasks/{task}").json()["assignee"]["user"] == "cid"


def test_a_skip_passes_the_task_to_the_next_assignment_and_finally_to_none(api, clock):
    task = begin(
        api, human(assignments=[assignment("bob", minutes=30), assignment("ann", minutes=30), assignment("cid")])
    )
    clock.advance(seconds=31 * 60)
    assert api.get(f"/human/tasks/{task}").json()["assignee"]["user"] == "ann"

    assert api.post(f"/human/tasks/{task}/skip?reason=away").content == b""

    assert api.get(f"/human/tasks/{task}").json()["assignee"]["user"] == "cid"
    assert AuditEntry.objects.get(action="skip_assignment").reason == "away"
    api.post(f"/human/tasks/{task}/skip")
    assert state(api, task) == "PENDING"
    assert api.post(f"/human/tasks/{task}/skip").status_code == 409


def test_assignments_that_terminate_end_the_task_after_the_last_one(api, clock):
    ends = {"assignmentCompletionStrategy": "TERMINATE"}
    task = begin(api, human(**ends, assignments=[assignment("bob", minutes=30), assignment("ann", minutes=10)]))
    moved = begin(api, human(**ends, assignments=[assignment("bob", minutes=30)]))
    api.post(f"/human/tasks/{moved}/reassign", [assignment("ann", minutes=60)])
    skipped = begin(api, human(**ends, assignments=[assignment("bob", minutes=30)]))

    api.post(f"/human/tasks/{skipped}/skip")
    assert state(api, skipped) == "TIMED_OUT"
    clock.advance(seconds=39 * 60)
    handle_due_timers(100)
    assert state(api, task) == "ASSIGNED"
    clock.advance(seconds=2 * 60)
    handle_due_timers(100)
    assert (state(api, task), state(api, moved)) == ("TIMED_OUT", "ASSIGNED")
    assert run_of(api, task)["status"] in ("FAILED", "TIMED_OUT")


CALLS = [
    ("GET", "/human/tasks/{}", None),
    ("GET", "/human/tasks/{}/conductorTask", None),
    ("POST", "/human/tasks/{}/claim", None),
    ("POST", "/human/tasks/{}/externalUser/bob", None),
    ("POST", "/human/tasks/{}/release", None),
    ("POST", "/human/tasks/{}/reassign", [assignment("ann")]),
    ("POST", "/human/tasks/{}/skip", None),
    ("POST", "/human/tasks/{}/update?complete=true", {}),
    ("POST", "/human/tasks/{}/update?complete=false", {}),
    ("GET", "/human/template/{}", None),
]


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
def test_unknown_and_non_human_tasks_are_not_found(api, method, path, body):
    api.define(simple("pay"))
    [other] = api.workflow(api.start())["tasks"]

    for id in ("none", other["taskId"]):
        assert api.send(method, path.format(id), body).status_code == 404


@pytest.mark.parametrize(("method", "path", "body"), CALLS[2:-1])
def test_an_ended_task_is_a_conflict(api, method, path, body):
    task = begin(api)
    api.post(f"/human/tasks/{task}/update?complete=true", {})

    reply = api.send(method, path.format(task), body)

    assert reply.status_code == 409 and "COMPLETED" in reply.json()["message"]


HOSTILE = [
    ("POST", "/human/tasks/search", []),
    ("POST", "/human/tasks/search", {"states": ["ASLEEP"]}),
    ("POST", "/human/tasks/search", {"states": "PENDING"}),
    ("POST", "/human/tasks/search", {"assignees": ["bob"]}),
    ("POST", "/human/tasks/search", {"assignees": [{"userType": "ALIEN", "user": "bob"}]}),
    ("POST", "/human/tasks/search", {"size": -1}),
    ("POST", "/human/tasks/search", {"start": 10**9}),
    ("POST", "/human/tasks/search", {"updateStartTime": "yesterday"}),
    ("POST", "/human/tasks/search", {"taskRefNames": ["x"] * 501}),
    ("POST", "/human/tasks/search", {"searchType": "ALL"}),
    ("POST", "/human/tasks/{}/update?complete=perhaps", {}),
    ("POST", "/human/tasks/{}/update", []),
    ("POST", "/human/tasks/{}/update", b"{"),
    ("POST", "/human/tasks/{}/reassign", []),
    ("POST", "/human/tasks/{}/reassign", {"assignee": {}}),
    ("POST", "/human/tasks/{}/reassign", [{}]),
    ("POST", "/human/tasks/{}/reassign", [{"assignee": {"userType": "CONDUCTOR_USER"}}]),
    ("POST", "/human/tasks/{}/reassign", [{"assignee": {"userType": "X", "user": "y"}}]),
    ("POST", "/human/tasks/{}/reassign", [assignment("x" * 256)]),
    ("POST", "/human/tasks/{}/reassign", [assignment("x", minutes=-1)]),
    ("POST", "/human/tasks/{}/reassign", [assignment("x")] * 101),
    ("POST", "/human/tasks/{}/externalUser/" + "x" * 256, None),
    ("POST", "/human/tasks/{}/claim?overrideAssignment=perhaps", None),
    ("DELETE", "/human/tasks/delete", {"a": 1}),
]


@pytest.mark.parametrize(("method", "path", "body"), HOSTILE, ids=lambda each: str(each)[:60])
def test_an_invalid_body_is_rejected_with_a_reason(api, method, path, body):
    task = begin(api)

    reply = api.send(method, path.format(task), body)

    assert reply.status_code == 400, reply.content
    assert reply.json()["message"]
    assert not HumanTask.objects.exists()


def test_unusual_characters_in_a_search_find_nothing_without_an_error(api):
    begin(api)

    for text in ("\0", "%", "_", "'", '"', "\\", "💥" * 100, "$.a", "a..b = 1", "[0] = 1", "a = ", "*"):
        search(api, taskInputQuery=text, taskOutputQuery=text, fullTextQuery=text, taskRefNames=[text])
        search(api, assignees=[{"userType": "EXTERNAL_USER", "user": text}], displayNames=[text])
        search(api, claimants=[{"userType": "EXTERNAL_USER", "user": text}])


def test_records_of_tasks_are_removed_with_their_workflow_only(api):
    task = begin(api)

    assert api.delete(f"/human/tasks/delete/{task}").status_code == 409
    assert api.delete("/human/tasks/delete", [task, "gone"]).status_code == 409
    assert api.delete("/human/tasks/delete/gone").content == b""
    assert api.delete("/human/tasks/delete", ["gone"]).status_code == 200


def test_a_search_finds_by_the_time_of_the_last_change_and_by_workflow(api, clock):
    first = begin(api)
    since = clock.now()
    clock.advance(seconds=60)
    second = begin(api)
    clock.advance(seconds=60)
    api.post(f"/human/tasks/{first}/externalUser/bob")

    assert hit_ids(api, updateStartTime=since + 1) == [second, first]
    assert hit_ids(api, updateStartTime=since + 1, updateEndTime=since + 60_001) == [second]
    assert hit_ids(api, updateEndTime=since) == []
    assert hit_ids(api, workflowIds=[run_of(api, first)["workflowId"]]) == [first]


def test_a_page_of_a_search_takes_the_same_number_of_statements_whatever_its_length(api, django_assert_num_queries):
    for _ in range(6):
        begin(api)

    for size in (1, 6):
        with django_assert_num_queries(12):
            search(api, size=size)


def test_the_pages_and_the_api_share_one_claim(api):
    task = begin(api, human())
    row = Attempt.objects.get(pk=task).task_id

    human_tasks.claim_task(row, "ann")
    assert api.get(f"/human/tasks/{task}").json()["claimant"] == {"userType": "CONDUCTOR_USER", "user": "ann"}
    for complete in ("true", "false"):
        refused = api.post(f"/human/tasks/{task}/update?complete={complete}", {})
        assert (refused.status_code, refused.json()["message"]) == (409, "The task is claimed by ann. Claim it first.")
    human_tasks.delegate_task(row, "sales", "olga", is_group=True)
    assert api.get(f"/human/tasks/{task}").json()["assignee"] == {"userType": "CONDUCTOR_GROUP", "user": "sales"}


ABSENT = [
    ("GET", "/registry/service"),
    ("POST", "/registry/service"),
    ("GET", "/registry/service/payments"),
    ("DELETE", "/registry/service/payments"),
    ("POST", "/registry/service/payments/circuit-breaker/open"),
    ("GET", "/registry/service/payments/circuit-breaker/status"),
    ("POST", "/registry/service/payments/methods"),
    ("GET", "/registry/service/payments/discover"),
    ("GET", "/registry/service/protos/payments"),
    ("GET", "/registry/service/protos/payments/a.proto"),
    ("POST", "/gateway/config/auth"),
    ("GET", "/gateway/config/auth"),
    ("PUT", "/gateway/config/auth/a"),
    ("DELETE", "/gateway/config/auth/a"),
]


@pytest.mark.parametrize(("method", "path"), ABSENT)
def test_calls_of_the_service_registry_and_the_gateway_are_answered_with_the_404_of_the_dialect(api, method, path):
    reply = api.send(method, path, None if method in ("GET", "DELETE") else {})

    assert reply.status_code == 404
    assert reply.json()["status"] == 404 and reply.json()["message"] == f"No endpoint {method} /api{path}."
