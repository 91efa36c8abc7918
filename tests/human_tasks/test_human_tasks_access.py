"""Access to human tasks and form templates, by the API and on the pages."""

import pytest
from django.contrib.auth.models import Group, User

from conductor_app.access import permissions as permission_cache
from conductor_app.access.models import Application
from tests.access.users import api_client_of, create_application, grant_access, grant_group_access, logged_in_client
from tests.human_tasks.test_human_tasks_api import CALLS, assignment, begin, hit_ids, human, run_of


def test_a_task_claimed_for_an_external_user_is_completed_by_its_application(with_logins):
    shop, other = create_application("shop", "ADMIN"), create_application("other", "ADMIN")
    task = begin(api_client_of(shop))
    assert api_client_of(shop).post(f"/human/tasks/{task}/externalUser/bob").status_code == 200

    assert api_client_of(shop).post(f"/human/tasks/{task}/update?complete=true", {}).status_code == 200
    mine = begin(api_client_of(shop), human())
    api_client_of(shop).post(f"/human/tasks/{mine}/claim")
    assert api_client_of(other).post(f"/human/tasks/{mine}/update?complete=true", {}).status_code == 409


def test_a_member_of_the_assigned_group_claims_in_its_own_name(with_logins):
    shop = create_application("shop", "ADMIN")
    task = begin(api_client_of(shop), human(assignments=[assignment("sales", "CONDUCTOR_GROUP")]))
    seen = {"searchType": "INBOX"}

    assert hit_ids(api_client_of(shop), **seen) == []
    assert api_client_of(shop).post(f"/human/tasks/{task}/claim").status_code == 409
    shop.user.groups.add(Group.objects.create(name="sales"))
    assert hit_ids(api_client_of(shop), **seen) == [task]
    assert api_client_of(shop).post(f"/human/tasks/{task}/claim").json()["claimant"]["user"] == "shop"
    assert hit_ids(api_client_of(shop), **seen) == [task]


@pytest.mark.parametrize("call", CALLS[:-1], ids=lambda call: call[1])
def test_each_call_requires_its_permission(with_logins, call):
    admin, made = api_client_of(create_application("admin", "ADMIN")), create_application("shop")
    task, (method, path, body) = begin(admin), call
    if "release" in path:
        admin.post(f"/human/tasks/{task}/externalUser/bob")

    refused = api_client_of(made).send(method, path.format(task), body)
    assert refused.status_code == 403 and "lacks the permission" in refused.json()["message"]
    grant_access(made, "WORKFLOW_DEF", "order", "READ")
    assert api_client_of(made).send(method, path.format(task), body).status_code == (200 if method == "GET" else 403)
    grant_access(made, "WORKFLOW_DEF", "order", "EXECUTE")
    reply = api_client_of(made).send(method, path.format(task), body)
    assert reply.status_code == (409 if path.endswith("/claim") else 200)


def test_a_search_finds_tasks_visible_to_the_caller(with_logins):
    admin, made = api_client_of(create_application("admin", "ADMIN")), create_application("shop")
    task = begin(admin)

    assert hit_ids(admin) == [task]
    assert (hit_ids(api_client_of(made)), api_client_of(made).get("/human/tasks/getTaskDisplayNames").json()) == (
        [],
        [],
    )
    grant_access(made, "TASK_DEF", "approve", "EXECUTE")
    assert hit_ids(api_client_of(made)) == [task]
    assert api_client_of(made).get("/human/tasks/getTaskDisplayNames").json() == ["Approve"]


def test_an_update_by_reference_requires_the_permission(with_logins):
    admin, made = api_client_of(create_application("admin", "ADMIN")), create_application("shop")
    run = run_of(admin, begin(admin))["workflowId"]
    where = f"/human/tasks/update/taskRef?workflowId={run}&taskRefName=approve&complete=true"

    assert api_client_of(made).post(where, {}).status_code == 403
    grant_access(made, "TASK_DEF", "appr*", "EXECUTE")
    assert api_client_of(made).post(where, {}).status_code == 200
    assert api_client_of(made).delete("/human/tasks/delete/none").status_code == 403


TEMPLATE = {"name": "approval", "version": 1, "jsonSchema": {"type": "object"}, "templateUI": {}}
TEMPLATE_CALLS = [
    ("POST", "/human/template", TEMPLATE, "UPDATE"),
    ("POST", "/human/template/bulk", [TEMPLATE], "UPDATE"),
    ("GET", "/human/template/approval/1", None, "READ"),
    ("DELETE", "/human/template/approval/1", None, "DELETE"),
    ("DELETE", "/human/template/approval", None, "DELETE"),
]


@pytest.mark.parametrize(("method", "path", "body", "access"), TEMPLATE_CALLS)
def test_form_templates_ask_for_their_own_permission(with_logins, method, path, body, access):
    admin, made = api_client_of(create_application("admin", "ADMIN")), create_application("shop")
    admin.post("/human/template", TEMPLATE)

    refused = api_client_of(made).send(method, path, body)
    assert refused.status_code == 403 and "USER_FORM_TEMPLATE 'approval'" in refused.json()["message"]
    assert api_client_of(made).get("/human/template").json() == []
    grant_access(made, "USER_FORM_TEMPLATE", "approval", access)
    assert api_client_of(made).send(method, path, body).status_code == 200


def test_a_new_form_template_is_its_makers(with_logins):
    made = create_application("shop", "USER")

    assert api_client_of(made).post("/human/template", TEMPLATE).status_code == 200
    assert api_client_of(made).post("/human/template", TEMPLATE).status_code == 200
    assert api_client_of(create_application("other", "USER")).post("/human/template", TEMPLATE).status_code == 403


def test_a_person_with_a_grant_on_the_workflow_may_answer_on_the_page_as_by_the_api(with_logins):
    admin = api_client_of(create_application("admin", "ADMIN"))
    task = begin(admin, human())
    vera = User.objects.create_user("vera", is_staff=True)
    vera.groups.add(Group.objects.get(name="Viewers"), team := Group.objects.create(name="team"))
    page = f"/admin/human-tasks/{task}/"

    assert logged_in_client(vera).post(page, {"do": "take"}).status_code == 403
    grant_group_access(team, "WORKFLOW_DEF", "order", "EXECUTE")
    permission_cache.clear_cache()
    assert logged_in_client(vera).post(page, {"do": "take"}).status_code == 302
    assert admin.get(f"/human/tasks/{task}").json()["claimant"]["user"] == "vera"
    logged_in_client(vera).post(page, {"outcome": "COMPLETED", "output": "{}"})
    assert admin.get(f"/human/tasks/{task}").json()["state"] == "COMPLETED"


def test_an_application_with_the_same_name_does_not_answer_for_the_claimer(with_logins):
    shop, namesake = create_application("shop", "ADMIN"), create_application("other", "ADMIN")
    # As an earlier version permitted.
    Application.objects.filter(pk=namesake.pk).update(name="shop")
    task = begin(api_client_of(shop), human())
    assert api_client_of(shop).post(f"/human/tasks/{task}/claim").status_code == 200

    assert api_client_of(namesake).post(f"/human/tasks/{task}/update?complete=true", {}).status_code == 409
    assert api_client_of(namesake).post(f"/human/tasks/{task}/claim").status_code == 409
    assert api_client_of(shop).post(f"/human/tasks/{task}/update?complete=true", {}).status_code == 200
