"""Grants by name, by prefix and by tag, and their effect on lists."""

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.urls import reverse

from conductor_app.access import permissions as permission_cache
from conductor_app.access.models import GroupProfile, Tag
from conductor_app.access.permissions import role_group
from tests.access.users import api_client_of, create_application, grant_access, grant_group_access, logged_in_client
from tests.builders import simple

pytestmark = pytest.mark.usefixtures("with_logins")


@pytest.fixture
def admin(clock):
    """Return an administrator's client on a server with three definitions; two have the same prefix except for case."""
    admin = api_client_of(create_application("admin", "ADMIN"))
    for name in ("order_a", "order_b", "ORDER_c", "bill"):
        admin.define(simple("pay"), name=name)
    admin.post("/metadata/taskdefs", [{"name": "pay"}, {"name": "ship"}])
    return admin


def names(api):
    return [each["name"] for each in api.get("/metadata/workflow").json()]


GRANTS = {
    "by name": ("order_a", ["order_a"]),
    "by beginning": ("order_*", ["order_a", "order_b"]),
    "by everything": ("*", ["ORDER_c", "bill", "order_a", "order_b"]),
    "a star elsewhere is a star": ("*_a", []),
    "a beginning that nothing has": ("orders*", []),
    "a wildcard of SQL": ("order%*", []),
}


@pytest.mark.parametrize("case", GRANTS)
def test_a_grant_makes_its_object_visible_in_lists_and_individually(admin, case):
    target, seen = GRANTS[case]
    shop = create_application("shop")
    grant_access(shop, "WORKFLOW_DEF", target, "READ")
    api = api_client_of(shop)

    assert sorted(names(api)) == seen
    assert sorted(api.get("/metadata/workflow/names").json()) == seen
    assert sorted(api.get("/metadata/workflow/names-and-versions").json()) == seen
    assert sorted(each["name"] for each in api.get("/metadata/workflow/latest-versions").json()) == seen
    for name in ("order_a", "order_b", "ORDER_c", "bill"):
        assert (api.get(f"/metadata/workflow/{name}").status_code == 200) is (name in seen)


def test_a_tag_grants_access_to_its_objects_while_they_have_it(admin, clock):
    shop = create_application("shop")
    grant_access(shop, "TAG", "team:shop", "READ", "EXECUTE")
    api = api_client_of(shop)
    assert names(api) == []

    tag = Tag.objects.create(object_type="WORKFLOW_DEF", object_name="bill", key="team", value="shop")
    Tag.objects.create(object_type="WORKFLOW_DEF", object_name="order_a", key="team", value="other")
    assert names(api) == ["bill"]
    assert api.post("/workflow", {"name": "bill"}).status_code == 200

    tag.delete()
    assert names(api) == []
    assert api.post("/workflow", {"name": "bill"}).status_code == 403


def test_a_group_grants_its_permissions_and_roles_to_its_members(admin):
    group = Group.objects.create(name="shop people")
    facts = GroupProfile.objects.create(group=group)
    shop = create_application("shop")
    shop.user.groups.add(group)
    api = api_client_of(shop)
    grant_group_access(group, "WORKFLOW_DEF", "bill", "READ")
    assert names(api) == ["bill"]

    facts.roles.add(role_group("USER_READ_ONLY"))
    assert len(names(api)) == 4

    facts.roles.clear()
    shop.user.groups.remove(group)
    assert names(api) == []


def test_searches_find_only_readable_objects(admin):
    theirs, single, hidden = admin.start("order_a"), admin.start("bill"), admin.start("bill")
    made = create_application()
    grant_access(made, "WORKFLOW_DEF", "order_a", "READ")
    grant_access(made, "WORKFLOW", single, "READ")
    api = api_client_of(made)

    for query in (
        "",
        "status = RUNNING",
        f"workflowId IN ({theirs}, {single}, {hidden})",
        "workflowType IN (bill, order_a)",
    ):
        for address in ("/workflow/search", "/workflow/search-v2", "/workflow/search-by-tasks"):
            asked = query.replace("status = RUNNING", "status != COMPLETED")
            found = api.get(address, query=asked).json()
            assert {each["workflowId"] for each in found["results"]} == {theirs, single}, (address, query)
            assert found["totalHits"] == 2
    assert api.get("/workflow/search", freeText=hidden).json()["totalHits"] == 0
    assert {each["workflowId"] for each in api.get("/tasks/search").json()["results"]} == {theirs, single}
    assert api.get("/tasks/search-v2", query=f"workflowId = {hidden}").json()["results"] == []


def test_runs_are_visible_by_definition_or_individually(admin):
    seen, other = admin.start("bill"), admin.start("order_a")
    shop = create_application("shop")
    grant_access(shop, "WORKFLOW_DEF", "bill", "READ")
    api = api_client_of(shop)
    assert (api.get(f"/workflow/{seen}").status_code, api.get(f"/workflow/{other}").status_code) == (200, 403)

    grant_access(shop, "WORKFLOW", other, "READ")

    assert api.get(f"/workflow/{other}").status_code == 200
    assert api.put(f"/workflow/{other}/pause").status_code == 403
    assert api.get("/workflow/nothing").status_code == 404


class TestWorkers:
    def test_a_worker_polls_and_reports_only_granted_tasks(self, admin):
        admin.start("bill")
        shop = create_application("shop")
        grant_access(shop, "TASK_DEF", "pay", "EXECUTE")
        api = api_client_of(shop)

        [task] = api.poll("pay")

        assert api.report(task).status_code == 200
        assert api.get("/tasks/poll/ship").status_code == 403
        assert api.get("/tasks/queue/all").json() == {}

    def test_a_domain_is_granted_by_its_own_name(self, admin):
        admin.start("bill", taskToDomain={"pay": "eu"})
        shop = create_application("shop")
        grant_access(shop, "DOMAIN", "eu", "EXECUTE")
        api = api_client_of(shop)

        assert api.get("/tasks/poll/pay").status_code == 403
        assert api.get("/tasks/poll/pay", domain="us").status_code == 403
        [task] = api.poll("pay", domain="eu")
        assert api.report(task).status_code == 200

    def test_an_operator_can_report_for_a_worker_but_not_poll(self, admin):
        admin.start("bill"), admin.start("bill")
        task, _ = admin.poll("pay", count=2)
        admin.start("bill")
        shop = create_application("shop")
        grant_access(shop, "WORKFLOW_DEF", "bill", "EXECUTE")
        result = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"], "status": "COMPLETED"}

        assert api_client_of(shop).post("/tasks/update-v2", result).status_code == 204
        assert admin.workflow(task["workflowInstanceId"])["status"] == "COMPLETED"


class TestMakers:
    def test_the_creator_of_an_object_owns_it(self, admin):
        shop, other = (
            api_client_of(create_application("shop", "USER")),
            api_client_of(create_application("other", "USER")),
        )
        shop.post("/metadata/taskdefs", [{"name": "cut"}])
        shop.define(simple("cut"), name="mine")

        shop.define(simple("cut"), name="mine", description="again")
        run = shop.start("mine")
        [task] = shop.poll("cut")
        assert shop.report(task).status_code == 200
        assert shop.get(f"/workflow/{run}").json()["status"] == "COMPLETED"
        assert names(shop) == ["mine"]
        assert names(other) == []
        assert other.put("/metadata/workflow", [{"name": "mine", "tasks": [simple("cut")]}]).status_code == 403

    def test_the_ownership_ends_with_the_deletion_of_the_object(self, admin):
        shop = api_client_of(create_application("shop", "USER"))
        shop.define(simple("pay"), name="mine")
        assert shop.delete("/metadata/workflow/mine/1").status_code == 200

        admin.define(simple("pay"), name="mine")

        assert shop.get("/metadata/workflow/mine").status_code == 403

    def test_overwriting_an_existing_object_does_not_change_its_owner(self, admin):
        shop = create_application("shop", "USER")
        api = api_client_of(shop)

        documents = [{"name": name, "tasks": [simple("pay")], "schemaVersion": 2} for name in ("new", "bill")]

        assert api.put("/metadata/workflow", documents).status_code == 403
        assert names(api) == []
        assert not shop.user.grants.exists()

    def test_a_group_shares_the_objects_that_its_members_create(self, admin):
        group = Group.objects.create(name="shop people")
        GroupProfile.objects.create(group=group, default_access={"WORKFLOW_DEF": ["READ"]})
        maker, colleague = create_application("maker", "METADATA_MANAGER"), create_application("colleague")
        for each in (maker, colleague):
            each.user.groups.add(group)

        api_client_of(maker).define(simple("pay"), name="ours")

        assert names(api_client_of(colleague)) == ["ours"]


class TestPeople:
    """A signed-in user may do by the API what the permissions of the pages allow."""

    def test_a_permission_of_the_pages_is_a_right_of_the_api(self, admin):
        user = User.objects.create_user("vera", is_staff=True)
        browser = logged_in_client(user)
        assert browser.get("/api/metadata/workflow").json() == []

        user.user_permissions.add(Permission.objects.get(codename="view_workflowdefinition"))

        assert len(browser.get("/api/metadata/workflow").json()) == 4
        assert browser.post("/api/workflow", {"name": "bill"}, content_type="application/json").status_code == 403

    def test_a_viewer_sees_runs_on_the_pages_and_in_the_api(self, admin):
        run = admin.start("bill")
        user = User.objects.create_user("vera", is_staff=True)
        user.groups.add(Group.objects.get(name="Viewers"))
        browser = logged_in_client(user)

        assert browser.get(f"/api/workflow/{run}").status_code == 200
        assert browser.get(f"/admin/conductor/run/{run}/change/").status_code == 200
        assert browser.get("/admin/queues/").status_code == 200
        assert browser.post(reverse("admin:run_act", args=[run, "pause"])).status_code == 403
        assert browser.get("/admin/conductor/accesskey/").status_code == 403


def test_a_login_does_not_invalidate_the_caches_of_processes(admin, clock):
    before = permission_cache.current_cache()
    user = User.objects.create_user("olga")
    assert permission_cache.current_cache() is not before
    before = permission_cache.current_cache()

    logged_in_client(user)

    clock.advance(seconds=2)
    assert permission_cache.current_cache() is before


def test_a_report_under_the_id_of_another_run_requires_permission_on_both_runs(with_logins):
    admin, made = api_client_of(create_application("admin", "ADMIN")), create_application("shop")
    admin.define(simple("pay"), name="one")
    admin.define(simple("pay"), name="two")
    one, two = admin.start("one"), admin.start("two")
    task = {"workflowInstanceId": two, "taskId": admin.workflow(one)["tasks"][0]["taskId"]}

    assert api_client_of(made).report(task).status_code == 404
    grant_access(made, "WORKFLOW_DEF", "one", "EXECUTE")
    assert api_client_of(made).report(task).status_code == 404
    grant_access(made, "WORKFLOW_DEF", "two", "EXECUTE")
    assert api_client_of(made).report(task).status_code == 200
    assert admin.workflow(one)["status"] == "COMPLETED"


def test_the_result_of_a_test_is_visible_to_readers_of_the_workflow(with_logins):
    admin, made = api_client_of(create_application("admin", "ADMIN")), create_application("shop")
    admin.define(simple("pay"), name="order")
    id = admin.post("/workflow/test", {"name": "order"}).json()["workflowId"]

    assert api_client_of(made).get(f"/workflow/{id}").status_code == 403
    grant_access(made, "WORKFLOW_DEF", "order", "READ")
    assert api_client_of(made).get(f"/workflow/{id}").status_code == 200
