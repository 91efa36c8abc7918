"""Applications, users, groups, roles, permissions and tags: rejected requests, and requests of other clients."""

import pytest
from django.contrib.auth.models import Group, User

from conductor_app.access.models import AuditEntry, Grant
from tests.builders import simple

DEEP = {"a": {"b": []}}
HOSTILE = [
    ("POST", "/applications", {}),
    ("POST", "/applications", {"name": 7}),
    ("POST", "/applications", {"name": "x" * 256}),
    ("POST", "/applications", [1]),
    ("PUT", "/applications/none", {"name": "x"}),
    ("DELETE", "/applications/none", None),
    ("POST", "/applications/none/accessKeys", None),
    ("POST", "/applications/none/roles/ADMIN", None),
    ("DELETE", "/applications/none/accessKeys/k", None),
    ("GET", "/applications/key/%00", None),
    ("GET", "/applications/" + "x" * 300 + "/tags", None),
    ("PUT", "/applications/" + "x" * 300 + "/tags", [{"key": "team"}]),
    ("PUT", "/applications/none/tags", [{"key": "x" * 129}]),
    ("PUT", "/users/ann", {}),
    ("PUT", "/users/ann", {"name": "x" * 151}),
    ("PUT", "/users/ann", {"name": "Ann", "roles": ["NOBODY"]}),
    ("PUT", "/users/ann", {"name": "Ann", "roles": {"a": 1}}),
    ("PUT", "/users/ann", {"name": "Ann", "groups": ["none"]}),
    ("PUT", "/users/ann", {"name": "Ann", "contactInformation": {"a": 1}}),
    ("PUT", "/users/app:x", {"name": "Ann"}),
    ("PUT", "/users/" + "x" * 151, {"name": "Ann"}),
    ("GET", "/users/none", None),
    ("DELETE", "/users/none", None),
    ("GET", "/users/none/permissions", None),
    ("GET", "/users/none/checkPermissions", None),
    ("GET", "/users?apps=perhaps", None),
    ("PUT", "/groups/g", {"description": 7}),
    ("PUT", "/groups/g", {"defaultAccess": {"NOTHING": ["READ"]}}),
    ("PUT", "/groups/g", {"defaultAccess": {"WORKFLOW_DEF": ["FLY"]}}),
    ("PUT", "/groups/Administrators", {"description": "x"}),
    ("GET", "/groups/Administrators", None),
    ("DELETE", "/groups/Administrators", None),
    ("POST", "/groups/none/users/ann", None),
    ("POST", "/groups/none/users", {"a": 1}),
    ("POST", "/auth/authorization", {}),
    ("POST", "/auth/authorization", {"subject": "ann", "target": DEEP, "access": "READ"}),
    ("GET", "/auth/authorization/NOTHING/x", None),
    ("GET", "/auth/authorization/TAG/x", None),
    ("POST", "/roles", {"name": "x", "permissions": ["FLY"]}),
    ("POST", "/roles", {"permissions": []}),
    ("PUT", "/roles/none", {"permissions": []}),
    ("GET", "/roles/none", None),
    ("DELETE", "/roles/none", None),
    ("POST", "/metadata/workflow/none/tags", {"key": "a", "value": "b"}),
    ("GET", "/metadata/task/none/tags", None),
    ("GET", "/metadata/workflow/none/rate-limit", None),
    ("PUT", "/metadata/workflow/order/rate-limit", {"concurrentExecLimit": "many"}),
    ("PUT", "/metadata/workflow/order/rate-limit", []),
    ("POST", "/metadata/workflow/order/tags", {"key": "order", "value": "many", "type": "RATE_LIMIT"}),
    ("POST", "/metadata/workflow/order/tags", {"key": "x" * 129, "value": ""}),
    ("POST", "/metadata/workflow/order/tags", {"value": "b"}),
]


@pytest.mark.parametrize(("method", "path", "body"), HOSTILE, ids=lambda each: str(each)[:40])
def test_an_invalid_grant_is_rejected_with_a_reason(api, method, path, body):
    api.define(simple("pay"))

    reply = api.send(method, path, body)

    assert 400 <= reply.status_code < 500, reply.content
    assert (reply.json()["status"], bool(reply.json()["message"])) == (reply.status_code, True)


SUBJECT, TARGET = {"type": "USER", "id": "ann"}, {"type": "WORKFLOW_DEF", "id": "order"}
FAULTY = {
    "another subject": {"subject": {"type": "TAG", "id": "a:b"}},
    "an unknown user": {"subject": {"type": "USER", "id": "none"}},
    "an unknown role": {"subject": {"type": "ROLE", "id": "none"}},
    "no id": {"subject": {"type": "USER"}},
    "another target": {"target": {"type": "MOON", "id": "x"}},
    "a tag without a value": {"target": {"type": "TAG", "id": "team"}},
    "a target that is too long": {"target": {"type": "TAG", "id": "a:" + "x" * 512}},
    "another access": {"access": ["FLY"]},
    "an access of another kind": {"access": [1]},
    "no access": {"access": None},
}


@pytest.mark.parametrize("case", FAULTY)
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_grant_that_makes_no_sense_is_refused(api, method, case):
    api.put("/users/ann", {"name": "Ann"})

    reply = api.send(
        method, "/auth/authorization", {"subject": SUBJECT, "target": TARGET, "access": ["READ"]} | FAULTY[case]
    )

    assert reply.status_code in (400, 404), reply.content
    assert not Grant.objects.exists()


def test_a_repeated_grant_is_stored_once(api):
    api.put("/users/ann", {"name": "Ann"})
    for _ in range(2):
        asked = {"subject": SUBJECT, "target": TARGET, "access": ["READ", "READ"]}
        assert api.post("/auth/authorization", asked).status_code == 200

    assert Grant.objects.count() == 1


def test_a_role_is_granted_something_by_its_own_name(api):
    asked = {"subject": {"type": "ROLE", "id": "WORKER"}, "target": TARGET, "access": ["READ"]}
    assert api.post("/auth/authorization", asked).status_code == 200

    assert api.get("/auth/authorization/WORKFLOW_DEF/order").json() == {"READ": [{"type": "ROLE", "id": "WORKER"}]}


def test_a_secret_is_one_target_under_two_names(api):
    api.put("/users/ann", {"name": "Ann"})
    asked = {"subject": SUBJECT, "target": {"type": "SECRET", "id": "db"}, "access": ["READ"]}
    api.post("/auth/authorization", asked)

    assert api.get("/auth/authorization/SECRET_NAME/db").json() == {"READ": [SUBJECT]}


def test_a_superuser_and_an_applications_user_are_not_deleted_by_the_api(api):
    User.objects.create_superuser("root")
    application = api.post("/applications", {"name": "fleet"}).json()["id"]

    assert api.delete("/users/root").status_code == 409
    assert api.delete(f"/users/app:{application}").status_code == 409


def test_groups_that_were_made_on_the_pages_are_groups(api):
    Group.objects.create(name="night shift")

    assert api.get("/groups/night shift").json() == {
        "id": "night shift", "description": "", "roles": [], "defaultAccess": {}, "contactInformation": {},
    }  # fmt: skip
    assert api.put("/groups/night shift", {"description": "Those who wake", "roles": "USER"}).status_code == 200
    assert api.get("/groups/night shift").json()["roles"][0]["name"] == "USER"


def test_omitted_fields_of_a_user_stay_unchanged(api):
    api.put("/groups/g", {"description": "x"})
    api.put("/users/ann", {"name": "Ann", "roles": ["USER"], "groups": ["g"]})

    api.put("/users/ann", {"name": "Anna"})

    ann = api.get("/users/ann").json()
    assert ([role["name"] for role in ann["roles"]], [group["id"] for group in ann["groups"]]) == (["USER"], ["g"])
    api.put("/users/ann", {"name": "Anna", "roles": [], "groups": []})
    ann = api.get("/users/ann").json()
    assert (ann["roles"], ann["groups"]) == ([], [])


def test_an_open_server_calls_everybody_an_administrator(api):
    user = api.get("/token/userInfo").json()

    assert (user["id"], [role["name"] for role in user["roles"]]) == ("anonymous", ["ADMIN"])


def test_a_limit_set_by_the_javascript_sdk_is_listed_as_a_tag(api):
    api.define(simple("pay"))
    assert api.get("/metadata/workflow/order/rate-limit").status_code == 404

    config = {"rateLimitKey": "${workflow.correlationId}", "concurrentExecLimit": 3}
    assert api.put("/metadata/workflow/order/rate-limit", config).status_code == 200

    assert api.get("/metadata/workflow/order/rate-limit").json() == config | {"policy": "QUEUE"}
    assert api.get("/metadata/workflow/order").json()["rateLimitConfig"] == config | {"policy": "QUEUE"}
    tag = {"key": "${workflow.correlationId}", "value": 3, "type": "RATE_LIMIT"}
    assert api.get("/metadata/workflow/order/tags").json() == [tag]
    assert api.delete("/metadata/workflow/order/rate-limit").status_code == 200
    assert api.get("/metadata/workflow/order/tags").json() == []


def test_a_limit_applies_to_later_starts(api):
    api.define(simple("pay"))
    api.post("/metadata/workflow/order/tags", {"key": "order", "value": 1, "type": "RATE_LIMIT"})

    first, second = api.start(), api.start()

    assert api.workflow(second)["rateLimited"]
    api.report(api.poll("pay")[0])
    assert (api.workflow(first)["status"], api.workflow(second)["rateLimited"]) == ("COMPLETED", False)


def test_tags_of_all_objects_are_listed_once(api):
    api.define(simple("pay"))
    api.post("/metadata/taskdefs", [{"name": "pay"}])
    tag = {"key": "team", "value": "shop", "type": "METADATA"}
    api.post("/metadata/workflow/order/tags", tag)
    api.post("/metadata/task/pay/tags", tag)
    api.put("/secrets/db", b"value")
    api.put("/secrets/db/tags", [{"key": "db", "value": "main"}])

    assert api.get("/metadata/tags").json() == [{"key": "db", "value": "main", "type": "METADATA"}, tag]
    api.delete("/secrets/db")
    api.delete("/metadata/workflow/order/1")
    assert api.get("/metadata/tags").json() == [tag]
    assert AuditEntry.objects.filter(object_type="workflow_definition", action="tag").count() == 1
