"""The Python SDK's authorization client, method by method, on a server with logins."""

import pytest
from conductor.client.configuration.configuration import Configuration
from conductor.client.configuration.settings.authentication_settings import AuthenticationSettings
from conductor.client.http.models.create_or_update_application_request import CreateOrUpdateApplicationRequest
from conductor.client.http.models.create_or_update_role_request import CreateOrUpdateRoleRequest
from conductor.client.http.models.subject_ref import SubjectRef, SubjectType
from conductor.client.http.models.target_ref import TargetRef, TargetType
from conductor.client.http.models.task_def import TaskDef
from conductor.client.http.models.upsert_group_request import UpsertGroupRequest
from conductor.client.http.models.upsert_user_request import UpsertUserRequest
from conductor.client.http.models.workflow_def import WorkflowDef
from conductor.client.http.models.workflow_task import WorkflowTask
from conductor.client.http.rest import ApiException
from conductor.client.orkes.models.access_key import AccessKeyStatus
from conductor.client.orkes.models.access_type import AccessType
from conductor.client.orkes.models.metadata_tag import MetadataTag
from conductor.client.orkes_clients import OrkesClients

from conductor_app.access.models import AuditEntry
from conductor_app.access.tokens import create_key
from tests.clients.shop_workflow import Shop


@pytest.fixture(autouse=True)
def _token_is_needed(settings):
    settings.CONDUCTOR_API_ACCESS = "token"


def clients_of(server: str, key: str, secret: str) -> OrkesClients:
    settings = AuthenticationSettings(key_id=key, key_secret=secret)
    return OrkesClients(
        Configuration(server_api_url=f"{server}/api", authentication_settings=settings, log_level="CRITICAL")
    )


@pytest.fixture
def admin(server) -> OrkesClients:
    return clients_of(server, *create_key("admin"))


@pytest.fixture
def auth(admin):
    return admin.get_authorization_client()


@pytest.fixture
def application(auth):
    return auth.create_application(CreateOrUpdateApplicationRequest("fleet"))


def test_an_application_is_made_renamed_listed_and_deleted(auth, application):
    assert (application.name, application.created_by) == ("fleet", "admin")
    assert auth.get_application(application.id).name == "fleet"

    auth.update_application(CreateOrUpdateApplicationRequest("trucks"), application.id)

    assert {each.name for each in auth.list_applications()} == {"admin", "trucks"}
    auth.delete_application(application.id)
    with pytest.raises(ApiException) as gone:
        auth.get_application(application.id)
    assert gone.value.status == 404


def test_keys_are_made_listed_toggled_and_deleted(auth, application, server):
    made = auth.create_access_key(application.id)
    assert auth.get_app_by_access_key_id(made.id)["id"] == application.id
    assert auth.generate_token(made.id, made.secret)["token"]
    [listed] = auth.get_access_keys(application.id)
    assert (listed.id, listed.status) == (made.id, AccessKeyStatus.ACTIVE)
    his = clients_of(server, made.id, made.secret).get_authorization_client()
    assert his.get_user_info_from_token()["id"] == f"app:{application.id}"

    assert auth.toggle_access_key_status(application.id, made.id).status == AccessKeyStatus.INACTIVE

    with pytest.raises(ApiException) as refused:
        his.get_user_info_from_token()
    assert refused.value.status == 401
    assert auth.toggle_access_key_status(application.id, made.id).status == AccessKeyStatus.ACTIVE
    assert his.get_user_info_from_token()["applicationUser"] is True
    auth.delete_access_key(application.id, made.id)
    assert auth.get_access_keys(application.id) == []


def test_an_application_gets_and_loses_roles(auth, application, server):
    made = auth.create_access_key(application.id)
    his = clients_of(server, made.id, made.secret)
    metadata = his.get_metadata_client()
    with pytest.raises(ApiException) as refused:
        metadata.register_task_def(TaskDef(name="cut"))
    assert (refused.value.status, refused.value.error_code) == (403, "FORBIDDEN")

    auth.add_role_to_application_user(application.id, "METADATA_MANAGER")
    metadata.register_task_def(TaskDef(name="cut"))
    assert [role["name"] for role in his.get_authorization_client().get_user_info_from_token()["roles"]] == [
        "METADATA_MANAGER"
    ]

    auth.remove_role_from_application_user(application.id, "METADATA_MANAGER")
    with pytest.raises(ApiException):
        metadata.register_task_def(TaskDef(name="saw"))


def test_applications_carry_tags(auth, application):
    first, second = MetadataTag("team", "shop"), MetadataTag("cost", "7")
    auth.set_application_tags([first, second], application.id)
    assert {(tag.key, tag.value) for tag in auth.get_application_tags(application.id)} == {
        ("team", "shop"),
        ("cost", "7"),
    }

    auth.delete_application_tags([first], application.id)

    assert [tag.key for tag in auth.get_application_tags(application.id)] == ["cost"]


def test_a_user_is_made_changed_listed_and_deleted(auth):
    made = auth.upsert_user(UpsertUserRequest("Ann Archer", ["USER"]), "ann@shop.test")
    assert (made.id, made.name, [role.name for role in made.roles]) == ("ann@shop.test", "Ann Archer", ["USER"])

    auth.upsert_user(UpsertUserRequest("Ann Bow", ["WORKER", "METADATA_MANAGER"]), "ann@shop.test")

    found = auth.get_user("ann@shop.test")
    assert (found.name, {role.name for role in found.roles}) == ("Ann Bow", {"WORKER", "METADATA_MANAGER"})
    assert found.uuid == made.uuid
    assert [user.id for user in auth.list_users()] == ["ann@shop.test"]
    assert len(auth.list_users(apps=True)) == 2
    auth.delete_user("ann@shop.test")
    assert auth.list_users() == []


def test_groups_contain_users_and_share_their_grants(auth):
    for name in ("ann", "bob"):
        auth.upsert_user(UpsertUserRequest(name, []), name)
    request = UpsertGroupRequest(
        default_access={"WORKFLOW_DEF": ["READ"]}, description="Those who ship", roles=["WORKER"]
    )
    made = auth.upsert_group(request, "shippers")
    assert (made.id, made.description, made.default_access) == (
        "shippers",
        "Those who ship",
        {"WORKFLOW_DEF": ["READ"]},
    )
    assert [role.name for role in auth.get_group("shippers").roles] == ["WORKER"]

    auth.add_user_to_group("shippers", "ann")
    auth.add_users_to_group("shippers", ["ann", "bob"])
    assert [user.id for user in auth.get_users_in_group("shippers")] == ["ann", "bob"]
    assert [group.id for group in auth.get_user("ann").groups] == ["shippers"]
    auth.remove_user_from_group("shippers", "ann")
    auth.remove_users_from_group("shippers", ["bob"])
    assert auth.get_users_in_group("shippers") == []

    assert [group.id for group in auth.list_groups()] == ["shippers"]
    auth.delete_group("shippers")
    assert auth.list_groups() == []


def test_permissions_are_granted_listed_checked_and_revoked(auth):
    auth.upsert_user(UpsertUserRequest("Ann", []), "ann")
    auth.upsert_group(UpsertGroupRequest(default_access={}, description="Those who ship", roles=[]), "shippers")
    auth.add_user_to_group("shippers", "ann")
    orders = TargetRef(TargetType.WORKFLOW_DEF, "order_*")
    ann, shippers = SubjectRef(SubjectType.USER, "ann"), SubjectRef(SubjectType.GROUP, "shippers")

    auth.grant_permissions(ann, orders, [AccessType.READ, AccessType.EXECUTE])
    auth.grant_permissions(shippers, orders, [AccessType.READ])
    auth.grant_permissions(shippers, TargetRef(TargetType.TAG, "team:shop"), [AccessType.DELETE])

    found = auth.get_permissions(orders)
    assert {access: {subject.id for subject in subjects} for access, subjects in found.items()} == {
        "READ": {"ann", "shippers"},
        "EXECUTE": {"ann"},
    }
    granted = auth.get_granted_permissions_for_user("ann")
    assert {(each.target.type, each.target.id, tuple(each.access)) for each in granted} == {
        ("WORKFLOW_DEF", "order_*", ("READ", "EXECUTE")),
        ("TAG", "team:shop", ("DELETE",)),
    }
    assert len(auth.get_granted_permissions_for_group("shippers")) == 2
    checked = auth.check_permissions("ann", "WORKFLOW_DEF", "order_7")
    assert checked == {"CREATE": False, "READ": True, "UPDATE": False, "DELETE": False, "EXECUTE": True}

    auth.remove_permissions(ann, orders, [AccessType.READ, AccessType.EXECUTE])
    auth.remove_permissions(shippers, orders, [AccessType.READ])
    assert not any(auth.check_permissions("ann", "WORKFLOW_DEF", "order_7").values())
    assert auth.get_permissions(orders) == {}


def test_a_worker_with_a_grant_by_prefix_does_its_work_and_no_other(auth, application, server, admin):
    shop = Shop(admin)
    shop.define("cut")
    run_id = shop.start()
    made = auth.create_access_key(application.id)
    subject = SubjectRef(SubjectType.USER, f"app:{application.id}")
    auth.grant_permissions(subject, TargetRef(TargetType.TASK_DEF, "cu*"), [AccessType.EXECUTE])
    his = clients_of(server, made.id, made.secret)

    [task] = his.get_task_client().batch_poll_tasks("cut")

    # The reply of a synchronous report has the whole run.
    with pytest.raises(ApiException):
        his.get_task_client().update_task_sync(run_id, "cut_ref", "COMPLETED", {})
    his.get_task_client().update_task_by_ref_name(run_id, "cut_ref", "COMPLETED", {})
    assert shop.show(run_id).status == "COMPLETED"
    with pytest.raises(ApiException) as refused:
        his.get_task_client().batch_poll_tasks("saw")
    assert "lacks the permission EXECUTE on TASK_DEF 'saw'" in refused.value.message
    assert task.workflow_instance_id == run_id


def test_roles_are_listed_made_changed_and_deleted(auth, application, server):
    assert set(auth.list_system_roles()) == {
        "ADMIN", "USER", "USER_READ_ONLY", "WORKER", "METADATA_MANAGER", "WORKFLOW_MANAGER",
        "APPLICATION_MANAGER",
    }  # fmt: skip
    assert {"READ_WORKFLOW_DEF", "EXECUTE_TASK_DEF"} <= set(auth.list_available_permissions())
    auth.create_role(CreateOrUpdateRoleRequest("reader", ["READ_WORKFLOW_DEF"]))
    assert [role.name for role in auth.list_custom_roles()] == ["reader"]
    assert {"reader", "ADMIN"} <= {role.name for role in auth.list_all_roles()}
    made = auth.create_access_key(application.id)
    metadata = clients_of(server, made.id, made.secret).get_metadata_client()
    auth.add_role_to_application_user(application.id, "reader")
    with pytest.raises(ApiException):
        metadata.get_task_def("cut")

    auth.update_role("reader", CreateOrUpdateRoleRequest("reader", ["READ_TASK_DEF"]))

    assert auth.get_role("reader") == {"name": "reader", "permissions": [{"name": "READ_TASK_DEF"}]}
    with pytest.raises(ApiException) as missing:
        metadata.get_task_def("cut")
    assert missing.value.status == 404
    auth.delete_role("reader")
    assert auth.list_custom_roles() == []


def test_built_in_roles_are_immutable(auth):
    for refused in (
        lambda: auth.delete_role("ADMIN"),
        lambda: auth.update_role("USER", CreateOrUpdateRoleRequest("USER", [])),
        lambda: auth.create_role(CreateOrUpdateRoleRequest("WORKER", [])),
    ):
        with pytest.raises(ApiException) as why:
            refused()
        assert why.value.status in (403, 409)


def test_there_is_no_gateway_and_clients_get_not_found(auth):
    with pytest.raises(ApiException) as missing:
        auth.list_gateway_auth_configs()

    assert missing.value.status == 404


def test_definitions_carry_tags_and_limits(admin):
    shop = Shop(admin)
    shop.define("cut")
    shop.metadata.register_task_def(TaskDef(name="cut"))
    client, tag = shop.metadata, MetadataTag("team", "shop")

    client.add_workflow_tag(tag, "order")
    client.addTaskTag(tag, "cut")
    assert [(each.key, each.value) for each in client.get_workflow_tags("order")] == [("team", "shop")]
    assert [(each.key, each.value) for each in client.getTaskTags("cut")] == [("team", "shop")]

    client.set_workflow_tags([MetadataTag("a", "1"), MetadataTag("b", "2")], "order")
    client.setTaskTags([MetadataTag("c", "3")], "cut")
    client.delete_workflow_tag(MetadataTag("a", "1"), "order")
    client.deleteTaskTag(MetadataTag("c", "3"), "cut")
    assert [each.key for each in client.get_workflow_tags("order")] == ["b"]
    assert client.getTaskTags("cut") == []

    client.setWorkflowRateLimit(5, "order")
    assert client.getWorkflowRateLimit("order") == 5
    client.setWorkflowRateLimit(7, "order")
    assert client.getWorkflowRateLimit("order") == 7
    client.removeWorkflowRateLimit("order")
    assert client.getWorkflowRateLimit("order") is None


def test_the_audit_records_who_granted_which_permission(auth, application):
    auth.add_role_to_application_user(application.id, "WORKER")
    subject = SubjectRef(SubjectType.USER, f"app:{application.id}")
    auth.grant_permissions(subject, TargetRef(TargetType.TASK_DEF, "cut"), [AccessType.EXECUTE])

    role, grant = reversed(AuditEntry.objects.order_by("-id")[:2])
    assert (role.actor, role.action, role.object_id, role.facts) == (
        "admin", "add role", application.id, {"role": "WORKER"},
    )  # fmt: skip
    assert (grant.actor, grant.action, grant.object_id) == ("admin", "grant", "TASK_DEF:cut")
    assert grant.facts == {"to": f"USER app:{application.id}", "access": ["EXECUTE"]}


def test_the_creator_of_a_definition_stays_listed_when_the_last_grant_is_removed(auth, application, server):
    made = auth.create_access_key(application.id)
    auth.add_role_to_application_user(application.id, "METADATA_MANAGER")
    auth.add_role_to_application_user(application.id, "WORKFLOW_MANAGER")
    creator = clients_of(server, made.id, made.secret)
    metadata = creator.get_metadata_client()
    metadata.register_task_def(TaskDef(name="cut"))
    metadata.register_workflow_def(
        WorkflowDef(name="coat", tasks=[WorkflowTask(name="cut", task_reference_name="cut")])
    )
    target, ann = TargetRef(TargetType.WORKFLOW_DEF, "coat"), SubjectRef(SubjectType.USER, "ann")
    auth.upsert_user(UpsertUserRequest("Ann", ["USER"]), "ann")
    auth.grant_permissions(ann, target, [AccessType.EXECUTE])
    assert ann in auth.get_permissions(target)[AccessType.EXECUTE]

    auth.remove_permissions(ann, target, [AccessType.EXECUTE])

    left = auth.get_permissions(target)[AccessType.EXECUTE]
    assert [subject.id for subject in left] == [f"app:{application.id}"]
