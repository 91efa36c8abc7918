"""Scopes required by each method; the table is derived from the reference (taskcluster §1.5, §6)."""

import json

import pytest
import taskcluster

from conductor_app.taskcluster.auth.commands import ClientSettings, create_client
from conductor_app.taskcluster.auth.scopes import NEVER_EXPIRES
from tests.taskcluster.signing import HOST, credentials, sign_without_body_hash

from .conftest import HOUR, new_id, refusal_code

TYPE, WORKER = "/provisioners/proj/worker-types/linux", {"workerGroup": "here", "workerId": "w1"}
RUN, QUEUE = "/task/{task}/runs/0", "/task-queues/proj%2Flinux"
PENDING = "/task/{waiting}"
PRIORITY = {"newPriority": "high"}
FILE = {"storageType": "s3", "contentType": "text/plain", "expires": "2027-03-01T12:30:00Z"}
READ = ["queue:get-artifact:private/a"]

CASES: dict[str, tuple[str, str, object, list[str]]] = {
    "task": ("GET", "/task/{task}", None, ["queue:get-task:{task}"]),
    "status": ("GET", "/task/{task}/status", None, ["queue:status:{task}"]),
    "tasks": ("POST", "/tasks", {"taskIds": ["{task}", "x"]}, ["queue:get-task:{task}", "queue:get-task:x"]),
    "statuses": ("POST", "/tasks/status", {"taskIds": ["{task}", "x"]}, ["queue:status:{task}", "queue:status:x"]),
    "listDependentTasks": ("GET", "/task/{task}/dependents", None, ["queue:list-dependent-tasks:{task}"]),
    "scheduleTask": ("POST", PENDING + "/schedule", None, ["queue:schedule-task:-/{waiting}/{waiting}"]),
    "scheduleTask by project": ("POST", PENDING + "/schedule", None, ["queue:schedule-task-in-project:none"]),
    "scheduleTask, the older way": (
        "POST", PENDING + "/schedule", None, ["queue:schedule-task", "assume:scheduler-id:-/{waiting}"],
    ),
    "rerunTask": ("POST", PENDING + "/rerun", None, ["queue:rerun-task:-/{waiting}/{waiting}"]),
    "rerunTask by project": ("POST", PENDING + "/rerun", None, ["queue:rerun-task-in-project:none"]),
    "cancelTask": ("POST", PENDING + "/cancel", None, ["queue:cancel-task:-/{waiting}/{waiting}"]),
    "cancelTask by project": ("POST", PENDING + "/cancel", None, ["queue:cancel-task-in-project:none"]),
    "changeTaskPriority": ("POST", PENDING + "/priority", PRIORITY, ["queue:change-task-priority:{waiting}"]),
    "changeTaskPriority by queue": (
        "POST", PENDING + "/priority", PRIORITY, ["queue:change-task-priority-in-queue:proj/linux"],
    ),
    "getTaskGroup": ("GET", "/task-group/{task}", None, ["queue:list-task-group:{task}"]),
    "listTaskGroup": ("GET", "/task-group/{task}/list", None, ["queue:list-task-group:{task}"]),
    "sealTaskGroup": ("POST", "/task-group/{task}/seal", None, ["queue:seal-task-group:-/{task}"]),
    "cancelTaskGroup": ("POST", "/task-group/{sealed}/cancel", None, ["queue:cancel-task-group:-/{sealed}"]),
    "changeTaskGroupPriority": (
        "POST", "/task-group/{task}/priority", PRIORITY, ["queue:change-task-group-priority:-/{task}"],
    ),
    "claimWork": (
        "POST", "/claim-work/proj%2Flinux", WORKER, ["queue:claim-work:proj/linux", "queue:worker-id:here/w1"],
    ),
    "claimTask": (
        "POST", PENDING + "/runs/0/claim", WORKER, ["queue:claim-task:proj/linux", "queue:worker-id:here/w1"],
    ),
    "reclaimTask": ("POST", RUN + "/reclaim", None, ["queue:reclaim-task:{task}/0"]),
    "reportCompleted": ("POST", RUN + "/completed", None, ["queue:resolve-task:{task}/0"]),
    "reportFailed": ("POST", RUN + "/failed", None, ["queue:resolve-task:{task}/0"]),
    "reportException": (
        "POST", RUN + "/exception", {"reason": "internal-error"}, ["queue:resolve-task:{task}/0"],
    ),
    "createArtifact": ("POST", RUN + "/artifacts/public%2Fb", FILE, ["queue:create-artifact:{task}/0"]),
    "finishArtifact": (
        "PUT", RUN + "/artifacts/public%2Fb", {"uploadId": "{task}"}, ["queue:create-artifact:{task}/0"],
    ),
    "getArtifact": ("GET", RUN + "/artifacts/private%2Fa", None, READ),
    "getLatestArtifact": ("GET", "/task/{task}/artifacts/private%2Fa", None, READ),
    "artifact": ("GET", RUN + "/artifact-content/private%2Fa", None, READ),
    "latestArtifact": ("GET", "/task/{task}/artifact-content/private%2Fa", None, READ),
    "artifactInfo": ("GET", RUN + "/artifact-info/private%2Fa", None, ["queue:list-artifacts:{task}:0"]),
    "latestArtifactInfo": ("GET", "/task/{task}/artifact-info/private%2Fa", None, ["queue:list-artifacts:{task}"]),
    "listArtifacts": ("GET", RUN + "/artifacts", None, ["queue:list-artifacts:{task}:0"]),
    "listLatestArtifacts": ("GET", "/task/{task}/artifacts", None, ["queue:list-artifacts:{task}"]),
    "pendingTasks": ("GET", "/pending/proj%2Flinux", None, ["queue:pending-count:proj/linux"]),
    "taskQueueCounts": (
        "GET", QUEUE + "/counts", None, ["queue:pending-count:proj/linux", "queue:claimed-count:proj/linux"],
    ),
    "taskQueueCountsBatch": (
        "POST", "/task-queues/counts", {"taskQueueIds": ["proj/linux", "a/b"]},
        [f"queue:{which}-count:{queue}" for which in ("pending", "claimed") for queue in ("proj/linux", "a/b")],
    ),
    "listPendingTasks": ("GET", QUEUE + "/pending", None, ["queue:pending-list:proj/linux"]),
    "listClaimedTasks": ("GET", QUEUE + "/claimed", None, ["queue:claimed-list:proj/linux"]),
    "listTaskQueues": ("GET", "/task-queues", None, ["queue:list-task-queues"]),
    "getTaskQueue": ("GET", QUEUE, None, ["queue:get-task-queue:proj/linux"]),
    "listProvisioners": ("GET", "/provisioners", None, ["queue:list-provisioners"]),
    "getProvisioner": ("GET", "/provisioners/proj", None, ["queue:get-provisioner:proj"]),
    "listWorkerTypes": ("GET", "/provisioners/proj/worker-types", None, ["queue:list-worker-types:proj"]),
    "getWorkerType": ("GET", TYPE, None, ["queue:get-worker-type:proj/linux"]),
    "listWorkers": ("GET", TYPE + "/workers", None, ["queue:list-workers:proj/linux"]),
    "getWorker": ("GET", TYPE + "/workers/here/w1", None, ["queue:get-worker:proj/linux/here/w1"]),
    "quarantineWorker": (
        "PUT", TYPE + "/workers/here/w1", {"quarantineUntil": "2027-03-02T00:00:00Z"},
        ["queue:quarantine-worker:proj/linux/here/w1"],
    ),
    "declareWorker": (
        "PUT", TYPE + "/here/w1", {"expires": "2027-03-02T00:00:00Z"},
        ["queue:declare-worker:proj/linux/here/w1#expires"],
    ),
}  # fmt: skip
CREATE = [
    "demo:x", "queue:route:index.a", "queue:route:index.b", "queue:create-task:project:p", "queue:scheduler-id:s",
    "queue:create-task:medium:proj/linux",
]  # fmt: skip


class World:
    """A claimed task, a pending task, a task in a sealed group, and a server with authentication."""

    def __init__(self, queue, settings) -> None:
        self.client = queue.client
        self.ids = {name: queue.create(expires=queue.at(2 * HOUR)) for name in ("task", "sealed", "waiting")}
        queue.claim_specific_task(self.ids["task"])
        queue.post(f"/task-group/{self.ids['sealed']}/seal")
        queue.post(
            f"/task/{self.ids['task']}/runs/0/artifacts/private%2Fa",
            {"storageType": "reference", "contentType": "a/b", "url": "http://a", "expires": queue.at(HOUR)},
        )
        settings.CONDUCTOR_API_ACCESS = "token"
        create_client("keeps/the/server/closed", ClientSettings([], NEVER_EXPIRES), "olga")

    def filled(self, text: str) -> str:
        for name, id in self.ids.items():
            text = text.replace(f"{{{name}}}", id)
        return text

    def asked(self, verb: str, path: str, body: object, scopes: list[str]):
        """Return the reply to a caller with exactly these scopes."""
        id = f"caller/{new_id()}"
        _, token = create_client(id, ClientSettings([self.filled(scope) for scope in scopes], NEVER_EXPIRES), "olga")
        # Django's test client sends no raw path, so the signature covers the path that it generates.
        path = f"/api/queue/v1{self.filled(path)}".replace("%2F", "/")
        header = sign_without_body_hash(credentials(id, token), verb, path)
        sent = b"" if body is None else self.filled(json.dumps(body)).encode()
        meta = {"HTTP_AUTHORIZATION": header, "HTTP_HOST": HOST.removeprefix("http://")}
        return self.client.generic(verb, path, sent, "application/json" if sent else "", **meta)


@pytest.fixture
def world(queue, settings):
    return World(queue, settings)


LACKING = (403, "InsufficientScopes")


@pytest.mark.parametrize("case", CASES)
def test_a_method_requires_all_its_scopes(world, case):
    verb, path, body, scopes = CASES[case]

    for one in scopes:
        assert refusal_code(world.asked(verb, path, body, [scope for scope in scopes if scope != one])) == LACKING, one
    assert world.asked(verb, path, body, scopes).status_code not in (401, 403)


def test_every_method_of_the_client_is_among_the_cases():
    named = {case.partition(" by ")[0].partition(",")[0] for case in CASES}

    public = {"ping", "version", "heartbeat", "lbheartbeat"}
    assert named | public | {"createTask"} == set(taskcluster.Queue.funcinfo)


def test_the_creator_of_a_task_needs_every_scope_it_names(world, queue):
    asked = {"scopes": ["demo:x"], "routes": ["index.a", "index.b"], "projectId": "p", "schedulerId": "s"}
    body = queue.definition(**asked, priority="medium")

    for one in CREATE:
        held = [scope for scope in CREATE if scope != one]
        assert refusal_code(world.asked("PUT", f"/task/{new_id()}", body, held)) == LACKING, one
    assert world.asked("PUT", f"/task/{new_id()}", body, CREATE).status_code == 200


@pytest.mark.parametrize(("held", "may"), [("highest", True), ("medium", True), ("low", False)])
def test_the_right_to_a_priority_is_a_right_to_all_below(world, queue, held, may):
    scopes = [*CREATE[3:5], f"queue:create-task:{held}:proj/linux"]
    body = queue.definition(projectId="p", schedulerId="s", priority="medium")

    assert (world.asked("PUT", f"/task/{new_id()}", body, scopes).status_code == 200) is may


def test_missing_scopes_are_reported_before_validation_errors(world):
    assert refusal_code(world.asked("GET", f"/task/{new_id()}", None, [])) == LACKING
    assert refusal_code(world.asked("GET", "/task/no-slug", None, [])) == LACKING
    assert refusal_code(world.asked("GET", "/task/no-slug", None, ["*"])) == (400, "InvalidRequestArguments")
    assert refusal_code(world.asked("POST", f"/task/{new_id()}/cancel", None, [])) == (404, "ResourceNotFound")
