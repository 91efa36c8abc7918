"""Connects the slices at the start of a process. A deleted slice needs only its lines in this package."""

from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in
from django.db.models import Model
from django.db.models.signals import post_migrate

from ..access import audit, permissions
from ..access.commands.applications import delete_grants_with, refuse_patterns_as_names
from ..access.encryption import decrypt_masked
from ..access.models import Application, Secret, Variable
from ..access.visibility import register_audited_rows
from ..ai import wiring as ai
from ..ai.models import Integration, Prompt
from ..alerts.queries import audited_alerts, audited_views
from ..bulk.queries import operations_of
from ..core.step_types import STEP_TYPES, unregister_ai_types
from ..core.step_types.ai import AiTask
from ..db import fields
from ..definitions.commands import register_save_check
from ..definitions.models import SchemaDefinition, TaskDefinition, WorkflowDefinition
from ..definitions.simulation.commands import require_passing_cases
from ..events.models import EventHandler, Webhook
from ..human_tasks.models import FormTemplate
from ..human_tasks.waiting_queries import persons_waited_for
from ..processes import message_handlers
from ..runs.commands.change import on_decision
from ..runs.commands.tracing import export_traces
from ..schedules.models import Schedule
from ..settings import conf
from ..system_tasks import network_guard, registry
from ..taskcluster import wiring as taskcluster
from ..taskcluster.auth.commands import ensure_first_access
from ..taskcluster.models import ScopeRole
from ..tasks.queries.waiting import PERSONS
from ..tasks.throughput import record_decision
from ..telemetry import log_context as spans
from ..utils import background

GRANTED_OBJECTS: tuple[tuple[type[Model], str, str], ...] = (
    (get_user_model(), permissions.USER, "username"),
    (Application, permissions.APPLICATION, "id"),
    (Secret, permissions.SECRET, "name"),
    (Variable, permissions.VARIABLE, "name"),
    (WorkflowDefinition, permissions.WORKFLOW_DEF, "name"),
    (TaskDefinition, permissions.TASK_DEF, "name"),
    (SchemaDefinition, permissions.SCHEMA, "name"),
    (EventHandler, permissions.EVENT_HANDLER, "name"),
    (Webhook, permissions.WEBHOOK, "name"),
    (FormTemplate, permissions.FORM_TEMPLATE, "name"),
    (Schedule, permissions.SCHEDULE, "name"),
    (Integration, permissions.INTEGRATION_PROVIDER, "name"),
    (Prompt, permissions.PROMPT, "name"),
)
"""The models whose rows can be granted, with their target type in grants and the column with the name there."""

AUDITED_ROWS = {
    "bulk operation": operations_of,
    "view": audited_views,
    "alert": audited_alerts,
}
"""The rows that an actor with grants may see, by the types of their entries in the audit log."""


def connect() -> None:
    """Connect signal handlers, triggers and what slices register with one another."""
    spans.start_tracing(conf.traces_endpoint)
    if conf.traces_endpoint:
        background.register(background.BackgroundWork(export=(export_traces,)))
    fields.set_decryption(decrypt_masked)
    for model, target_type, column in GRANTED_OBJECTS:
        # Users of another Django project belong to that project.
        if conf.is_server or target_type != permissions.USER:
            delete_grants_with(model, target_type, column)
            refuse_patterns_as_names(model, column)
    message_handlers.connect_handlers()
    on_decision(record_decision)
    audit.connect_access_signals()
    audit.announce_changes_of(ScopeRole)
    types = [each.type for each in STEP_TYPES.values() if each.is_built_in and not isinstance(each, AiTask)]
    registry.register_workers(types, registry.load_system_workers)
    network_guard.register_self_test(require_effective_guard)
    register_save_check(require_passing_cases)
    PERSONS.value = persons_waited_for
    for object_type, find in AUDITED_ROWS.items():
        register_audited_rows(object_type, find)
    taskcluster.connect()
    ai.connect()
    if not registry.slow_queues():
        unregister_ai_types()
    if conf.is_server:
        connect_server()


def connect_server() -> None:
    """Connect what only the server has: its users, who sign in to its pages, the jobs of Celery, and its first rows.

    In another Django project, users, sign-in and Celery belong to that project.
    """
    from ..access.sign_in.commands import delete_expired_sessions
    from ..access.sign_in.throttle import connect_sign_in_signals
    from ..processes import job_trigger
    from ..web.preferences import restore_preferences

    audit.connect_user_signals()
    user_logged_in.connect(restore_preferences)
    connect_sign_in_signals()
    background.register(background.BackgroundWork(prune_sweeps={"prune_sessions": delete_expired_sessions}))
    job_trigger.connect_triggers()
    # The last app: when it has migrated, all tables and permissions exist.
    last = apps.get_app_config("django_celery_beat")
    for prepare in (update_periodic_jobs, update_roles, create_first_access):
        post_migrate.connect(prepare, sender=last)


def update_periodic_jobs(**_: object) -> None:
    """Write the periodic jobs to the tables of django-celery-beat."""
    from ..processes.background import sync_periodic_jobs

    sync_periodic_jobs()


def update_roles(**_: object) -> None:
    """Create or update the groups of predefined roles, with the permissions that migrations have created."""
    permissions.ensure_system_roles()


def create_first_access(**_: object) -> None:
    """Create the configured Taskcluster client, and the role of all callers."""
    ensure_first_access()


def require_effective_guard() -> None:
    """Raise GuardIneffective unless the HTTP library of the built-in workers asks the network guard."""
    from ..system_tasks import guarded_requests

    guarded_requests.require_effective_guard()
