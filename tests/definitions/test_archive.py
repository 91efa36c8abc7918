"""Definitions are archived and restored; the list of task definitions marks those that need attention."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.definitions.models import TaskDefinition, WorkflowDefinition
from conductor_app.runs.commands.start import StartRequest, start_run
from conductor_app.runs.models import Run
from conductor_app.tasks.models import Poller
from tests.builders import dynamic_fork, simple
from tests.page_text import page_text
from tests.scenario import define_task, define_workflow, start_run_of

pytestmark = pytest.mark.django_db
WORKFLOWS, TASKS = "/admin/conductor/workflowdefinition/", "/admin/conductor/taskdefinition/"


@pytest.fixture
def order(clock):
    define_task("charge", responseTimeoutSeconds=30)
    define_workflow("order", simple("charge"))
    return WorkflowDefinition.objects.get(name="order")


def test_an_archived_workflow_stays_available_to_clients_and_can_be_restored(operator, order):
    operator.post(f"{WORKFLOWS}{order.pk}/archive/", {"reason": "no customer orders"})

    assert "order v1" not in page_text(operator.get(WORKFLOWS))
    assert "order v1" in page_text(operator.get(f"{WORKFLOWS}?versions=archived"))
    assert "order v1" in page_text(operator.get(f"{WORKFLOWS}?versions=all"))
    assert "Archived 0 s ago" in page_text(operator.get(f"{WORKFLOWS}{order.pk}/change/"))
    start_run(StartRequest("order"), "a client")
    assert Run.objects.filter(name="order").exists()
    assert AuditEntry.objects.get(action="archive").reason == "no customer orders"

    operator.post(f"{WORKFLOWS}{order.pk}/unarchive/")
    assert "order v1" in page_text(operator.get(WORKFLOWS))


def test_a_task_is_archived_and_restored(operator, order):
    row = TaskDefinition.objects.get()
    operator.post(f"{TASKS}{row.pk}/archive/")

    assert "charge" not in page_text(operator.get(TASKS)).partition("Lists no longer show it.")[2]
    assert "charge" in page_text(operator.get(f"{TASKS}?status=archived"))


def test_a_user_without_edit_permission_cannot_archive(viewer, operator, order):
    assert viewer.post(f"{WORKFLOWS}{order.pk}/archive/").status_code == 403
    assert operator.get(f"{WORKFLOWS}{order.pk}/archive/").status_code == 405


def test_the_list_of_tasks_displays_usage_and_findings(operator, order, django_assert_max_num_queries):
    define_task("forgotten")

    shown = page_text(operator.get(TASKS))

    assert "charge never polled" in shown and "forgotten unused" in shown
    Poller.objects.create(task_type="charge", worker="w1", polled_at=1)
    assert "charge never polled" not in page_text(operator.get(TASKS))
    with django_assert_max_num_queries(15):
        operator.get(TASKS)


def test_a_task_that_runs_use_by_a_dynamic_step_is_not_unused(operator, clock):
    define_task("pick_item")
    page = f"{TASKS}{TaskDefinition.objects.get().pk}/change/"
    assert "pick_item unused" in page_text(operator.get(TASKS))
    assert "dynamic step" not in page_text(operator.get(page))

    picked = {"name": "pick_item", "taskReferenceName": "first", "type": "SIMPLE"}
    start_run_of(dynamic_fork(), input={"tasks": [picked], "inputs": {}})

    assert "unused" not in page_text(operator.get(TASKS))
    shown = page_text(operator.get(page))
    assert "Not named in the newest version of a workflow definition." in shown and "by a dynamic step" in shown
    clock.advance(seconds=31 * 86_400)
    assert "pick_item unused" in page_text(operator.get(TASKS))
