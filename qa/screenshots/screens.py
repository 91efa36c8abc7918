"""The screens that are pictured, each with its address; a page of one thing shows the thing that has most to say."""

from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from playwright.sync_api import Page, expect

from conductor_app.access.models import Application, Secret
from conductor_app.ai.models import IntegrationModel, Prompt
from conductor_app.alerts.models import Alert, AlertTarget
from conductor_app.bulk.models import BulkOperation
from conductor_app.definitions.models import TaskDefinition, WorkflowDefinition
from conductor_app.events.models import EventDelivery, EventHandler, Webhook
from conductor_app.failures.models import FailureGroup
from conductor_app.runs.models import Attempt, Run
from conductor_app.schedules.models import Schedule
from conductor_app.taskcluster.models import ScopeRole, StandaloneTask, TaskGroup
from conductor_app.web.links import standalone_task_address, task_group_address

LISTS = {
    "runs": "run",
    "groups": "taskgroup",
    "workflows": "workflowdefinition",
    "task-definitions": "taskdefinition",
    "schedules": "schedule",
    "scheduled-starts": "scheduleexecution",
    "handlers": "eventhandler",
    "audit": "auditentry",
    "secrets": "secret",
    "variables": "variable",
    "applications": "application",
    "keys": "accesskey",
    "permissions": "grant",
    "taskcluster-clients": "client",
    "taskcluster-roles": "scoperole",
}
PAGES = {
    "overview": "",
    "failures": "failures/",
    "views": "views/",
    "operations": "bulk/",
    "bulk-plan": "bulk/plan/?do=retry&status=FAILED",
    "waiting": "human-tasks/",
    "form-templates": "form-templates/",
    "form-template-new": "form-templates/new/",
    "queues": "queues/",
    "queue": "queue/?name=inspect_goods",
    "queue-paused": "queue/?name=collect_return",
    "workers": "workers/",
    "integrations": "integrations/",
    "integration": "integrations/of/shop-models/",
    "integration-new": "integrations/new/openai/",
    "prompts": "prompts/",
    "prompt-new": "prompts/new/",
    "alerts": "alerts/",
    "administration": "administration/",
    "alert-target-new": "alert-targets/new/slack/",
    "undelivered-messages": "undelivered-messages/",
    "events": "events/",
    "sources": "event-sources/",
    "webhooks": "webhooks/",
    "webhook-new": "webhooks/new/",
    "import": "conductor/workflowdefinition/import/",
    "drift": "definition-drift/",
    "workflow-new": "conductor/workflowdefinition/add/",
    "task-new": "conductor/taskdefinition/form/",
    "schedule-new": "conductor/schedule/add/",
    "secret-new": "conductor/secret/add/",
    "permission-new": "conductor/grant/add/",
    "taskcluster-client-new": "conductor/client/add/",
    "system": "system/",
    "retention": "retention/",
    "quotas": "quotas/",
    "budgets": "budgets/",
    "vector-indexes": "vector-indexes/",
    "preferences": "preferences/",
    "second-factor": "second-factor/",
    "palette": "conductor/run/",
    "keyboard-shortcuts": "conductor/run/",
    "find": "search/?q=return",
    "runs-filtered": "conductor/run/?status=FAILED&task=refund_customer:FAILED",
    "nothing-matches": "conductor/run/?status=TIMED_OUT",
    "gone": "conductor/run/01a1fefd-0000-7713-a9be-d9d47189da94/change/",
    "people": "people/",
    "invite": "people/invite/",
    "program-new": "people/new-program/",
    "users": "auth/user/",
    "user-new": "auth/user/add/",
    "roles": "auth/group/",
    "role": "auth/group/1/change/",
    "password": "password_change/",
}


def _open_palette(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.keyboard.type("return")
    expect(page.locator("#find-hits a.chosen")).to_contain_text("return")
    expect(page.locator("#find-hits a[data-page]")).to_have_count(0)


def _select_step(ref: str) -> Callable[[Page], None]:
    def select(page: Page) -> None:
        page.locator(f'.diagram-node[data-ref="{ref}"]').click()
        expect(page.locator("[data-panel-title]")).to_contain_text(ref)

    return select


def _open_step_types(page: Page) -> None:
    page.locator('.diagram-insert[data-insert="tasks[1]"]').click()
    expect(page.get_by_role("searchbox").last).to_be_focused()


def _show_json(page: Page) -> None:
    page.locator('[data-view="json"]').click()


PREPARATIONS: dict[str, Callable[[Page], None]] = {
    "palette": _open_palette,
    "keyboard-shortcuts": lambda page: page.keyboard.press("?"),
    "canvas": _select_step("screen_for_fraud"),
    "canvas-add": _open_step_types,
    "form-designer": _select_step("approve_order"),
    "editor": _show_json,
}
"""What is done on a page before it is pictured."""


def screen_addresses() -> dict[str, str]:
    """Return the URLs of all screens for the demo data."""
    found = {name: f"/admin/{path}" for name, path in PAGES.items()}
    found |= {name: f"/admin/conductor/{model}/" for name, model in LISTS.items()}
    return found | _runs() | _standalone() | _definitions() | _others()


def _runs() -> dict[str, str]:
    failed = _newest(Run.objects.filter(name="order_fulfilment", correlation_id="A-1005"))
    retried = _newest(Run.objects.filter(name="parcel_delivery", correlation_id="A-1004"))
    pending = Attempt.objects.filter(queue="inspect_goods", status="PENDING").earliest("pk")
    page, fix = f"/admin/conductor/run/{failed.pk}/change/", f"/admin/runs/{failed.pk}"
    tabs = ("diagram", "tasks", "data", "events", "audit")
    return {
        "run": page,
        "run-timeline": f"/admin/conductor/run/{retried.pk}/change/?task=-",
        "run-iteration": f"/admin/conductor/run/{retried.pk}/change/?tab=diagram&task=-",
        **{f"run-{tab}": f"{page}?tab={tab}&task=-" for tab in tabs},
        "debugger": f"/admin/conductor/run/{_newest(Run.objects.filter(name='price_update')).pk}/change/?tab=debugger",
        "run-waiting": f"/admin/conductor/run/{pending.run_id}/change/?task=inspect_goods",
        "turn": f"/admin/why-waiting/{pending.pk}/",
        "plan": f"{fix}/plan/",
        "compare": f"{fix}/compare/",
    }


def _standalone() -> dict[str, str]:
    group = task_group_address(_newest(TaskGroup.objects.all()).pk)
    return {
        "group": group,
        "stand-alone-task": standalone_task_address(
            _newest(StandaloneTask.objects.filter(task__attempts__number=1)).pk
        ),
    }


def _definitions() -> dict[str, str]:
    versions = WorkflowDefinition.objects.order_by("version")
    newest = [_newest(versions.filter(name=name)).pk for name in ("order_fulfilment", "return_intake")]
    order, returns = (f"/admin/conductor/workflowdefinition/{pk}" for pk in newest)
    task = f"/admin/conductor/taskdefinition/{TaskDefinition.objects.get(name='book_courier').pk}"
    return {
        "workflow": f"{returns}/change/",
        "trends": f"{returns}/change/?range=7d",
        "canvas": f"{order}/edit/",
        "canvas-add": f"{order}/edit/",
        "form-designer": f"{order}/edit/",
        "editor": f"{order}/edit/",
        "versions": f"{returns}/compare/",
        "simulator": f"{order}/test/",
        "start": f"{order}/start/",
        "task-definition": f"{task}/change/",
        "task-form": f"{task}/form/",
        "task-editor": f"{task}/edit/",
    }


def _others() -> dict[str, str]:
    asked = Attempt.objects.filter(task__ref="approve_refund", ended_at=None).earliest("pk")
    nightly = Schedule.objects.get(name="nightly_return_report").pk
    application, ann = Application.objects.get().pk, User.objects.get(username="ann").pk
    conductor = "/admin/conductor"
    return {
        "failure-group": f"/admin/failures/{FailureGroup.objects.latest('count').pk}/",
        "operation": f"/admin/bulk/{BulkOperation.objects.latest('created_at').pk}/",
        "alert": f"/admin/alerts/?try={Alert.objects.get().pk}",
        "alert-target": f"/admin/alert-targets/{AlertTarget.objects.get(kind='slack').pk}/",
        "integration-model": f"/admin/integrations/models/{IntegrationModel.objects.earliest('pk').pk}/",
        "prompt": f"/admin/prompts/{Prompt.objects.latest('pk').pk}/",
        "waiting-task": f"/admin/human-tasks/{asked.pk}/",
        "schedule": f"{conductor}/schedule/{nightly}/change/",
        "schedule-form": f"{conductor}/schedule/{nightly}/edit/",
        "backfill": f"{conductor}/schedule/{nightly}/backfill/",
        "event": f"/admin/events/{EventDelivery.objects.earliest('pk').pk}/",
        "handler": f"{conductor}/eventhandler/{EventHandler.objects.get(name='begin_return').pk}/change/",
        "handler-editor": f"{conductor}/eventhandler/{EventHandler.objects.get(name='begin_return').pk}/edit/",
        "webhook": f"/admin/webhooks/{Webhook.objects.get().pk}/",
        "secret": f"{conductor}/secret/{Secret.objects.earliest('pk').pk}/change/",
        "application": f"{conductor}/application/{application}/change/",
        "taskcluster-role": f"{conductor}/scoperole/{ScopeRole.objects.latest('pk').pk}/change/",
        "user": f"/admin/auth/user/{ann}/change/",
        "user-password": f"/admin/auth/user/{ann}/password/",
        "user-history": f"/admin/auth/user/{ann}/history/",
        "user-delete": f"/admin/auth/user/{ann}/delete/",
    }


def _newest(rows: QuerySet) -> Any:
    return rows.order_by("pk").last()
