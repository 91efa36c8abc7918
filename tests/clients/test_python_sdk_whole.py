"""Every public method of the Python SDK's clients: answered and called by a test, or left out for a reason.

A new version of the SDK with a new method fails here until somebody decides.
"""

import ast
from functools import cache
from pathlib import Path

import pytest
from conductor.client.event.event_client import EventClient
from conductor.client.orkes.orkes_agent_client import OrkesAgentClient
from conductor.client.orkes.orkes_authorization_client import OrkesAuthorizationClient
from conductor.client.orkes.orkes_integration_client import OrkesIntegrationClient
from conductor.client.orkes.orkes_metadata_client import OrkesMetadataClient
from conductor.client.orkes.orkes_prompt_client import OrkesPromptClient
from conductor.client.orkes.orkes_scheduler_client import OrkesSchedulerClient
from conductor.client.orkes.orkes_schema_client import OrkesSchemaClient
from conductor.client.orkes.orkes_secret_client import OrkesSecretClient
from conductor.client.orkes.orkes_service_registry_client import OrkesServiceRegistryClient
from conductor.client.orkes.orkes_task_client import OrkesTaskClient
from conductor.client.orkes.orkes_workflow_client import OrkesWorkflowClient
from conductor.client.orkes_clients import OrkesClients

ANSWERED: dict[type, str] = {
    OrkesWorkflowClient: """
        delete_workflow execute_workflow execute_workflow_with_return_strategy get_by_correlation_ids
        get_by_correlation_ids_in_batch get_workflow get_workflow_status pause_workflow remove_workflow
        rerun_workflow restart_workflow resume_workflow retry_workflow search send_message skip_task_from_workflow
        start_workflow
        start_workflow_by_name terminate_workflow test_workflow update_state update_variables""",
    OrkesTaskClient: """
        add_task_log batch_poll_tasks get_queue_size_for_task get_task get_task_logs get_task_poll_data poll_task
        update_task update_task_by_ref_name update_task_sync""",
    OrkesMetadataClient: """
        addTaskTag add_workflow_tag deleteTaskTag delete_workflow_tag getTaskTags getWorkflowRateLimit
        get_all_task_defs get_all_workflow_defs get_task_def get_workflow_def get_workflow_tags register_task_def
        register_workflow_def removeWorkflowRateLimit setTaskTags setWorkflowRateLimit set_workflow_tags
        unregister_task_def unregister_workflow_def update_task_def update_workflow_def""",
    OrkesSchedulerClient: """
        delete delete_schedule delete_scheduler_tags get_all_schedules get_next_few_schedule_execution_times
        get_schedule get_scheduler_tags pause pause_all_schedules pause_schedule preview_next reconcile
        requeue_all_execution_records resume resume_all_schedules resume_schedule run_now save_schedule
        search_schedule_executions set_scheduler_tags""",
    OrkesSecretClient: """
        delete_secret delete_secret_tags get_secret get_secret_tags list_all_secret_names
        list_secrets_that_user_can_grant_access_to put_secret secret_exists set_secret_tags""",
    OrkesAuthorizationClient: """
        add_role_to_application_user add_user_to_group add_users_to_group check_permissions create_access_key
        create_application create_role delete_access_key delete_application delete_application_tags delete_group
        delete_role delete_user generate_token get_access_keys get_app_by_access_key_id get_application
        get_application_tags get_granted_permissions_for_group get_granted_permissions_for_user get_group
        get_permissions get_role get_user get_user_info_from_token get_users_in_group grant_permissions list_all_roles
        list_applications list_available_permissions list_custom_roles list_groups list_system_roles list_users
        remove_permissions remove_role_from_application_user remove_user_from_group remove_users_from_group
        set_application_tags toggle_access_key_status update_application update_role upsert_group upsert_user""",
    OrkesSchemaClient: "delete_schema delete_schema_by_name get_all_schemas get_schema register_schema",
}

LEFT_OUT: dict[type, dict[str, str]] = {
    OrkesAuthorizationClient: dict.fromkeys(
        [
            "create_gateway_auth_config",
            "delete_gateway_auth_config",
            "get_gateway_auth_config",
            "list_gateway_auth_configs",
            "update_gateway_auth_config",
        ],
        "belongs to Orkes's gateway, which puts workflows behind addresses of their own",
    ),
}
LEFT_OUT_WHOLE: dict[type, str] = {
    OrkesIntegrationClient: "language models and vector databases are the workers' affair",
    OrkesPromptClient: "prompts for language models are the workers' affair",
    OrkesAgentClient: "AI agents are a product of their own",
    OrkesServiceRegistryClient: "remote services are the workers' affair",
    EventClient: "queues are named in the server's settings, and so are their passwords",
}
CLIENTS = [*ANSWERED, *LEFT_OUT_WHOLE]


def methods(client: type) -> set[str]:
    """What a client offers."""
    return {name for name in dir(client) if not name.startswith("_") and callable(getattr(client, name))}


@cache
def called() -> set[str]:
    """The names of all methods that the tests of this folder call, or what they share."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in Path(__file__).parent.glob("*.py"))
    calls = (node.func for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {function.attr for function in calls if isinstance(function, ast.Attribute)}


@pytest.mark.parametrize("client", ANSWERED, ids=lambda client: client.__name__)
def test_every_method_is_answered_or_left_out_for_a_reason(client):
    answered, left_out = set(ANSWERED[client].split()), LEFT_OUT.get(client, {}).keys()

    assert answered | left_out == methods(client)
    assert not answered & left_out


@pytest.mark.parametrize("client", ANSWERED, ids=lambda client: client.__name__)
def test_what_is_answered_is_called_by_a_test(client):
    assert set(ANSWERED[client].split()) - called() == set()


def test_every_client_that_the_sdk_offers_is_decided_upon(configuration):
    factories = [name for name in methods(OrkesClients) if name.startswith("get_") and name.endswith("_client")]

    offered = {type(getattr(OrkesClients(configuration), name)()) for name in factories}

    assert offered <= set(CLIENTS)
