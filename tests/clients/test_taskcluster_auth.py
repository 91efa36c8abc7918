"""The official Taskcluster Python client signs its requests to a server with authentication."""

from datetime import UTC, datetime, timedelta

import mohawk
import pytest
import requests
import taskcluster
from taskcluster.exceptions import TaskclusterAuthFailure, TaskclusterRestFailure
from taskcluster.utils import slugId

from conductor_app.taskcluster.auth.commands import ClientSettings, create_client, update_role
from conductor_app.taskcluster.auth.scopes import NEVER_EXPIRES

from .test_taskcluster_queue import LINUX, WORKER, definition

ROOT = "static/root"
SUBMIT = [
    "queue:create-task:project:none",
    "queue:create-task:highest:proj/*",
    "queue:scheduler-id:-",
]


class Fleet:
    """Clients of one server."""

    def __init__(self, server: str) -> None:
        self.server = server

    def credentials(self, *scopes: str, id: str = "fleet/1") -> dict[str, str]:
        _, token = create_client(id, ClientSettings(scopes, NEVER_EXPIRES), "olga")
        return {"clientId": id, "accessToken": token}

    def queue(self, credentials=None, **options) -> taskcluster.Queue:
        return taskcluster.Queue(self._options(credentials, options))

    def auth(self, credentials=None, **options) -> taskcluster.Auth:
        return taskcluster.Auth(self._options(credentials, options))

    def _options(self, credentials, options):
        # The client encodes the values of its parameters as bytes.
        given = {"credentials": dict(credentials)} if credentials else {}
        return {"rootUrl": self.server, "maxRetries": 0, **given, **options}


@pytest.fixture
def fleet(server, settings):
    settings.CONDUCTOR_API_ACCESS = "token"
    return Fleet(server)


@pytest.fixture
def root(fleet):
    return fleet.credentials("*", id=ROOT)


def refusal_of(call, *args, **kwargs) -> tuple[int, str]:
    with pytest.raises((TaskclusterAuthFailure, TaskclusterRestFailure)) as failure:
        call(*args, **kwargs)
    return failure.value.status_code, failure.value.body["code"]


UNKNOWN, LACKING = (401, "AuthenticationFailed"), (403, "InsufficientScopes")


def test_a_task_runs_with_the_scopes_of_its_creator_and_of_its_worker(fleet):
    submitter = fleet.queue(fleet.credentials(*SUBMIT, "queue:route:index.*", "demo:*", id="ci/1"))
    worker = fleet.queue(
        fleet.credentials(f"queue:claim-work:{LINUX}", "queue:worker-id:here/*", "queue:get-artifact:private/*")
    )
    id = slugId()

    submitter.createTask(id, definition(scopes=["demo:a"], routes=["index.x"]))
    [claim] = worker.claimWork(LINUX, WORKER)["tasks"]

    own = fleet.queue(claim["credentials"])
    assert own.reclaimTask(id, 0)["credentials"]["clientId"].startswith(f"task-client/{id}/0/on/here/w1/until/")
    auth = fleet.auth(claim["credentials"], authorizedScopes=["demo:a", "auth:current-scopes"])
    assert refusal_of(auth.currentScopes) == UNKNOWN
    assert refusal_of(own.createTask, slugId(), definition()) == LACKING
    assert refusal_of(own.claimWork, LINUX, WORKER) == LACKING
    assert refusal_of(own.reportCompleted, id, 1) == LACKING
    assert refusal_of(worker.reportCompleted, id, 0) == LACKING
    assert own.reportCompleted(id, 0)["status"]["state"] == "completed"


def test_a_task_with_a_hundred_scopes_gets_credentials_that_are_good(fleet, root):
    scopes = [f"secrets:get:project/releng/a-secret-with-a-long-name/{number}" for number in range(100)]
    id, queue = slugId(), fleet.queue(root)
    queue.createTask(id, definition(scopes=scopes))
    [claim] = queue.claimWork(LINUX, WORKER)["tasks"]

    assert fleet.queue(claim["credentials"]).reportCompleted(id, 0)["status"]["state"] == "completed"


def test_a_task_cannot_have_scopes_that_its_creator_lacks(fleet):
    queue = fleet.queue(fleet.credentials(*SUBMIT, "demo:a"))

    queue.createTask(slugId(), definition(scopes=["demo:a"]))

    for fields in (
        {"scopes": ["demo:b"]},
        {"scopes": ["demo:*"]},
        {"routes": ["index.x"]},
        {"schedulerId": "another"},
        {"projectId": "another"},
        {"taskQueueId": "other/linux"},
    ):
        assert refusal_of(queue.createTask, slugId(), definition(**fields)) == LACKING, fields


def test_a_rejection_names_the_missing_scopes(fleet):
    queue = fleet.queue(fleet.credentials("queue:status:a"))
    id = slugId()

    with pytest.raises(TaskclusterRestFailure) as failure:
        queue.status(id)

    assert "fleet/1" in str(failure.value) and f"queue:status:{id}" in str(failure.value)
    assert failure.value.body["requestInfo"]["method"] == "status"


def test_an_unsigned_request_cannot_exceed_the_anonymous_scopes(fleet):
    assert fleet.queue().ping()["alive"]
    assert refusal_of(fleet.queue().status, slugId()) == LACKING

    update_role("anonymous", ["queue:status:*"], "", "olga")

    assert refusal_of(fleet.queue().status, slugId()) == (404, "ResourceNotFound")


def test_a_wrong_token_is_refused(fleet, root):
    assert refusal_of(fleet.queue({**root, "accessToken": "x" * 44}).status, slugId()) == UNKNOWN
    assert refusal_of(fleet.queue({**root, "clientId": "static/r00t"}).status, slugId()) == UNKNOWN


def test_temporary_credentials_have_their_scopes_until_they_expire(fleet, root):
    id, now = slugId(), datetime.now(UTC)

    def made(start, expiry, scopes, name):
        return taskcluster.createTemporaryCredentials(
            root["clientId"], root["accessToken"], now + start, now + expiry, scopes, name=name
        )

    hour = timedelta(hours=1)
    good = fleet.queue(made(-hour, hour, [f"queue:status:{id}"], "guest"))
    assert refusal_of(good.status, id) == (404, "ResourceNotFound")
    assert refusal_of(good.task, id) == LACKING
    assert refusal_of(fleet.queue(made(-hour, -hour / 2, ["*"], "guest")).status, id) == UNKNOWN
    assert refusal_of(fleet.queue(made(hour, 2 * hour, ["*"], None)).status, id) == UNKNOWN


def test_authorized_scopes_narrow_a_client_for_one_purpose(fleet, root):
    id = slugId()

    assert refusal_of(fleet.queue(root, authorizedScopes=[f"queue:status:{id}"]).status, id) == (
        404,
        "ResourceNotFound",
    )
    assert refusal_of(fleet.queue(root, authorizedScopes=[]).status, id) == LACKING


def test_an_address_that_the_client_signs_can_be_opened_by_anybody(fleet):
    given = fleet.credentials("auth:current-scopes", "auth:list-clients", id="me|x@y")
    current = fleet.auth(given).buildSignedUrl("currentScopes")
    clients = fleet.auth(given).buildSignedUrl("listClients", query={"prefix": "me|"})

    assert "auth:list-clients" in requests.get(current).json()["scopes"]
    assert [each["clientId"] for each in requests.get(clients).json()["clients"]] == ["me|x@y"]
    assert requests.get(clients.replace("me%7C", "you")).status_code == 401
    assert requests.head(current).status_code == 200
    assert requests.post(current.replace("scopes/current", "scopes/expand"), json={"scopes": []}).status_code == 401


def test_clients_are_managed_through_the_api(fleet, root):
    auth = fleet.auth(root)
    payload = {"expires": "2099-01-01T00:00:00.123456Z", "description": "one", "scopes": ["queue:ping", "a"]}

    made = auth.createClient("project/a:b|c@d", payload)

    assert fleet.auth({"clientId": "project/a:b|c@d", "accessToken": made["accessToken"]}).ping()["alive"]
    assert auth.createClient("project/a:b|c@d", payload) == made
    shown = auth.client("project/a:b|c@d")
    assert "accessToken" not in shown
    assert (shown["scopes"], shown["expires"], shown["disabled"]) == (
        ["a", "queue:ping"],
        "2099-01-01T00:00:00.123Z",
        False,
    )
    changed = auth.updateClient("project/a:b|c@d", {"expires": shown["expires"], "description": "two"})
    assert (changed["description"], changed["scopes"]) == ("two", ["a", "queue:ping"])
    assert refusal_of(auth.createClient, "project/a:b|c@d", payload) == (409, "RequestConflict")
    assert auth.disableClient("project/a:b|c@d")["disabled"]
    assert not auth.enableClient("project/a:b|c@d")["disabled"]
    assert auth.resetAccessToken("project/a:b|c@d")["accessToken"] != made["accessToken"]
    assert [each["clientId"] for each in auth.listClients(query={"prefix": "project/"})["clients"]] == [
        "project/a:b|c@d"
    ]
    assert auth.deleteClient("project/a:b|c@d") is None
    assert refusal_of(auth.client, "project/a:b|c@d") == (404, "ResourceNotFound")


def test_a_caller_cannot_grant_a_client_scopes_that_it_lacks(fleet):
    auth = fleet.auth(fleet.credentials("auth:create-client:mine/*", "auth:update-client:mine/*", "a:*"))
    payload = {"expires": "2099-01-01T00:00:00Z", "description": "", "scopes": ["a:b"]}

    auth.createClient("mine/1", payload)

    assert refusal_of(auth.createClient, "yours/1", payload) == LACKING
    assert refusal_of(auth.createClient, "mine/2", {**payload, "scopes": ["b"]}) == LACKING
    assert refusal_of(auth.updateClient, "mine/1", {**payload, "scopes": ["a:b", "b"]}) == LACKING
    assert refusal_of(auth.resetAccessToken, "mine/1") == LACKING


def test_roles_are_managed_through_the_api(fleet, root):
    auth = fleet.auth(root)
    payload = {"description": "repositories", "scopes": ["queue:route:<..>", "assume:reader"]}
    auth.createRole("reader", {"description": "", "scopes": ["queue:get-task:*"]})

    made = auth.createRole("repo:github.com/x/*", payload)

    assert made["expandedScopes"] == ["assume:reader", "queue:get-task:*", "queue:route:<..>"]
    assert auth.role("repo:github.com/x/*") == made
    assert auth.expandScopes({"scopes": ["assume:repo:github.com/x/y"]})["scopes"] == [
        "assume:reader", "assume:repo:github.com/x/y", "queue:get-task:*", "queue:route:y",
    ]  # fmt: skip
    assert {role["roleId"] for role in auth.listRoles()} == {"anonymous", "reader", "repo:github.com/x/*"}
    assert auth.listRoleIds(query={"limit": 1}).keys() == {"roleIds", "continuationToken"}
    pages: list[dict] = []
    auth.listRoles2(query={"limit": 2}, paginationHandler=pages.append)
    assert sum(len(page["roles"]) for page in pages) == 3
    assert refusal_of(auth.createRole, "loop", {"description": "", "scopes": ["assume:loop"]}) == (400, "InputError")
    assert auth.updateRole("repo:github.com/x/*", {**payload, "scopes": []})["scopes"] == []
    assert auth.deleteRole("repo:github.com/x/*") is None
    assert refusal_of(auth.role, "repo:github.com/x/*") == (404, "ResourceNotFound")


def test_a_caller_cannot_grant_a_role_scopes_that_it_lacks(fleet):
    auth = fleet.auth(fleet.credentials("auth:create-role:*", "auth:update-role:*", "a:<..>", "b:*"))

    assert refusal_of(auth.createRole, "x", {"description": "", "scopes": ["c"]}) == LACKING
    assert refusal_of(auth.createRole, "x*", {"description": "", "scopes": ["a:<..>"]}) == LACKING
    auth.createRole("x*", {"description": "", "scopes": ["b:<..>"]})
    assert refusal_of(auth.updateRole, "x*", {"description": "", "scopes": ["b:<..>", "c"]}) == LACKING


def test_another_service_can_authenticate_a_signed_request(fleet, root):
    sender = mohawk.Sender(
        {"id": ROOT, "key": root["accessToken"], "algorithm": "sha256"},
        "https://other.example.org/api/x/v1/y%2Fz", "POST", content="{}", content_type="application/json", ext="e30=",
    )  # fmt: skip
    asked = {"method": "post", "resource": "/api/x/v1/y%2Fz", "host": "other.example.org", "port": 443}

    found = fleet.auth().authenticateHawk({**asked, "authorization": sender.request_header})
    nobody = fleet.auth().authenticateHawk(asked)
    forged = fleet.auth().authenticateHawk({**asked, "port": 80, "authorization": sender.request_header})

    assert (found["status"], found["clientId"], found["scopes"]) == ("auth-success", ROOT, ["*"])
    assert found["hash"] == mohawk.util.parse_authorization_header(sender.request_header)["hash"]
    assert (nobody["status"], nobody["scopes"]) == ("no-auth", ["assume:anonymous", "queue:get-artifact:public/*"])
    assert forged["status"] == "auth-failed"
