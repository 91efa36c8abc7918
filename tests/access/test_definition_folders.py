"""Rights on the definitions of a folder: each item of a plan requires its own, and a plan reveals nothing."""

from functools import partial

import pytest

from conductor_app.access.authentication import acting_as, actor_of_user
from conductor_app.alerts.commands import create_target
from conductor_app.definitions.models import AppliedDefinition, TaskDefinition, WorkflowDefinition
from conductor_app.definitions.sources.api import KINDS
from conductor_app.definitions.sources.commands import apply_plan
from conductor_app.definitions.sources.plan import SourceFolder, plan_source
from conductor_app.schedules.models import Schedule
from tests.access.users import api_client_of, create_application, grant_access
from tests.builders import simple

pytestmark = pytest.mark.usefixtures("with_logins")
TASK = {"name": "charge", "retryCount": 3}
WORKFLOW = {"name": "order", "schemaVersion": 2, "tasks": [simple("charge")]}
SCHEDULE = {"name": "nightly", "cronExpression": "0 0 4 * * *", "startWorkflowRequest": {"name": "order"}}


@pytest.fixture
def admin(clock):
    return api_client_of(create_application("admin", "ADMIN"))


@pytest.fixture
def shop(clock):
    return create_application("shop")


def folder(*documents, **fields):
    return {"label": "shop", "documents": list(documents), **fields}


def problems(api, *documents, **fields):
    reply = api.post("/definitions/plan", folder(*documents, **fields))
    assert reply.status_code == 200, reply.content
    return [item.get("problem", "") for item in reply.json()["items"]]


def test_each_item_of_a_plan_requires_the_right_that_its_change_requires(admin, shop):
    admin.post("/metadata/taskdefs", [TASK])
    api = api_client_of(shop)
    assert problems(api, {"name": "pack"}) == ["shop lacks the permission CREATE on TASK_DEF 'pack'."]

    grant_access(shop, "TASK_DEF", "charge", "READ")
    changed = {**TASK, "retryCount": 5}
    assert problems(api, TASK) == ["shop lacks the permission UPDATE on TASK_DEF 'charge'."]
    assert problems(api, changed) == ["shop lacks the permission UPDATE on TASK_DEF 'charge'."]

    grant_access(shop, "TASK_DEF", "charge", "UPDATE")
    assert problems(api, changed) == [""]


def test_a_plan_reveals_nothing_of_a_definition_that_the_caller_may_not_read(admin, shop):
    admin.post("/metadata/taskdefs", [TASK])
    grant_access(shop, "TASK_DEF", "charge", "UPDATE")

    reply = api_client_of(shop).post("/definitions/plan", folder({**TASK, "retryCount": 5}))

    [item] = reply.json()["items"]
    assert item["problem"] == "shop lacks the permission READ on TASK_DEF 'charge'."
    assert "changes" not in item


def test_pruning_requires_the_right_to_delete(admin, shop):
    assert admin.post("/definitions/apply", folder(TASK, WORKFLOW)).json()["failed"] == 0
    for access in ("READ", "UPDATE"):
        grant_access(shop, "TASK_DEF", "*", access)
        grant_access(shop, "WORKFLOW_DEF", "*", access)

    reply = api_client_of(shop).post("/definitions/apply", folder(TASK, prune=True))

    assert reply.status_code == 409
    assert problems(api_client_of(shop), TASK, prune=True) == [
        "",
        "shop lacks the permission DELETE on WORKFLOW_DEF 'order'.",
    ]
    assert WorkflowDefinition.objects.exists()


def test_what_the_caller_may_not_read_and_the_folder_no_longer_has_is_left_out_of_the_plan(admin, shop):
    admin.post("/definitions/apply", folder(TASK, WORKFLOW))
    for access in ("READ", "UPDATE"):
        grant_access(shop, "TASK_DEF", "charge", access)

    planned = api_client_of(shop).post("/definitions/plan", folder(TASK)).json()

    assert [(item["name"], item["action"]) for item in planned["items"]] == [("charge", "unchanged")]
    assert not planned["isRefused"]


def test_an_author_applies_a_workflow_and_a_schedule_that_starts_it_and_becomes_their_owner(shop, clock):
    author = create_application("author", "USER")
    api = api_client_of(author)

    reply = api.post("/definitions/apply", folder(SCHEDULE, WORKFLOW, TASK))

    assert reply.json()["failed"] == 0, reply.json()
    assert Schedule.objects.get().owner_id == author.user_id
    assert api.get("/metadata/workflow/order").status_code == 200


def test_a_problem_keeps_the_whole_folder_from_being_applied(admin, shop):
    admin.post("/metadata/taskdefs", [TASK])
    grant_access(shop, "TASK_DEF", "pack", "CREATE")

    reply = api_client_of(shop).post("/definitions/apply", folder({"name": "pack"}, {**TASK, "retryCount": 5}))

    assert reply.status_code == 409
    assert set(TaskDefinition.objects.values_list("name", flat=True)) == {"charge"}
    assert not AppliedDefinition.objects.exists()


def test_drift_lists_only_what_the_caller_may_read(admin, shop):
    admin.post("/definitions/apply", folder(TASK, WORKFLOW))
    grant_access(shop, "TASK_DEF", "charge", "READ")

    found = api_client_of(shop).get("/definitions/drift").json()["definitions"]

    assert [item["name"] for item in found] == ["charge"]


def test_an_alert_requires_the_right_to_change_all_runs_and_a_role_requires_an_administrator(admin, shop):
    create_target("email", "on-call", {"addresses": "on-call@example.com"}, "olga")
    condition = {"type": "count", "threshold": 3, "targets": ["on-call"]}
    alert = {"name": "Failed orders", "selection": {"status": ["FAILED"]}, "conditions": [condition]}
    role = {"name": "SHIPPING", "permissions": ["READ_WORKFLOW_DEF"]}
    operator = create_application("operator", "WORKFLOW_MANAGER")

    assert problems(api_client_of(shop), alert, role) == [
        "shop lacks the permission UPDATE on WORKFLOW (all).",
        "shop lacks the role ADMIN.",
    ]
    assert problems(api_client_of(operator), alert, role) == ["", "operator lacks the role ADMIN."]
    assert problems(admin, alert, role) == ["", ""]


def test_the_limits_of_a_queue_require_the_right_to_change_its_task_definition(admin, shop):
    admin.post("/metadata/taskdefs", [TASK])
    limits = {"kind": "queue-limit", "name": "charge", "concurrentExecLimit": 5}
    grant_access(shop, "TASK_DEF", "charge", "READ")
    assert problems(api_client_of(shop), limits) == ["shop lacks the permission UPDATE on TASK_DEF 'charge'."]

    grant_access(shop, "TASK_DEF", "charge", "UPDATE")
    assert api_client_of(shop).post("/definitions/apply", folder(limits)).json()["failed"] == 0
    assert problems(api_client_of(shop), TASK | {"name": "charge", "retryCount": 3}, prune=True) == ["", ""]


def test_drift_hides_alerts_from_callers_who_may_not_read_runs(admin, shop):
    create_target("email", "on-call", {"addresses": "on-call@example.com"}, "olga")
    condition = {"type": "count", "threshold": 3, "targets": ["on-call"]}
    alert = {"name": "Failed orders", "selection": {}, "conditions": [condition]}
    assert admin.post("/definitions/apply", folder(alert)).json()["failed"] == 0

    assert api_client_of(shop).get("/definitions/drift").json()["definitions"] == []
    assert [item["name"] for item in admin.get("/definitions/drift").json()["definitions"]] == ["Failed orders"]


def test_a_definition_that_another_caller_creates_after_the_plan_is_not_changed(admin, shop):
    grant_access(shop, "WORKFLOW_DEF", "order", "CREATE")
    with acting_as(partial(actor_of_user, shop.user_id)):
        plan = plan_source(SourceFolder("shop", [{**WORKFLOW, "version": 5}]), KINDS, "shop")
        assert [item.problem for item in plan.items] == [""]
        admin.define(simple("pay"), name="order", version=1)

        [applied] = list(apply_plan(plan))

    assert applied.error == "It was changed while the plan was applied. Plan again."
    assert list(WorkflowDefinition.objects.values_list("version", flat=True)) == [1]
    assert api_client_of(shop).get("/metadata/workflow/order").status_code == 403


def test_a_caller_without_rights_gets_the_same_plan_for_names_that_exist_and_names_that_do_not(admin, shop):
    applied = admin.post("/definitions/apply", {**folder(TASK, WORKFLOW, SCHEDULE), "label": "bank"})
    assert applied.json()["failed"] == 0
    api = api_client_of(shop)
    hidden = [TASK, WORKFLOW, SCHEDULE]
    unknown = [{**each, "name": f"x{each['name'][1:]}"} for each in hidden]

    plans = [api.post("/definitions/plan", folder(*each, takeOver=True)).json()["items"] for each in (hidden, unknown)]

    for item in plans[0]:
        item["name"], item["problem"] = (
            f"x{item['name'][1:]}",
            item["problem"].replace(item["name"], f"x{item['name'][1:]}"),
        )
    assert plans[0] == plans[1]


def test_a_caller_cannot_list_the_definitions_of_a_label_by_pruning(admin, shop):
    assert admin.post("/definitions/apply", {**folder(TASK, WORKFLOW), "label": "bank"}).json()["failed"] == 0

    reply = api_client_of(shop).post("/definitions/plan", {**folder({"name": "mine"}, prune=True), "label": "bank"})

    assert reply.status_code == 403
    assert "charge" not in reply.content.decode() and "order" not in reply.content.decode()
