"""The first visit to each page, compressed: what a browser without a cache receives."""

import pytest

from conductor_app.definitions.models import TaskDefinition, WorkflowDefinition
from conductor_app.failures.commands import group_failures
from conductor_app.failures.models import FailureGroup
from qa.screenshots.screens import LISTS, PAGES
from tests.builders import simple
from tests.scenario import claim_and_report, define_task, define_workflow, start_run

MAX_BYTES = 200_000
WORKFLOWS, TASKS = "conductor/workflowdefinition/", "conductor/taskdefinition/"
SCRIPTS_OF_THE_ADMIN = ("theme.js", "actions.js", "unusable_password_field.js")
"""What pages need of Django's admin: the choice of the theme, the selection of rows, and users without a password."""
WITH_OTHER_SCRIPTS = ("permission-new",)
"""A form of Django's admin whose fields take other scripts of it."""
RECEIVED = """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .map((each) => [new URL(each.name).pathname, each.transferSize])"""


@pytest.fixture
def addresses(transactional_db) -> dict[str, str]:
    """Return the addresses of lists and pages, and of the pages of one object of each kind."""
    define_task("charge", retryCount=0)
    define_workflow("order", simple("charge"), simple("ship"), inputParameters=["order", "total"])
    run = start_run("order", correlation_id="order-4711")
    claim_and_report("charge", "FAILED", reason="no funds")
    group_failures(100)
    order, task = WorkflowDefinition.objects.get(name="order"), TaskDefinition.objects.get(name="charge")
    of_objects = {
        "run": f"conductor/run/{run.pk}/change/",
        "run-diagram": f"conductor/run/{run.pk}/change/?tab=diagram",
        "failure-group": f"failures/{FailureGroup.objects.get().pk}/",
        "workflow": f"{WORKFLOWS}{order.pk}/change/",
        "canvas": f"{WORKFLOWS}{order.pk}/edit/?view=canvas",
        "editor": f"{WORKFLOWS}{order.pk}/edit/?view=json",
        "start": f"{WORKFLOWS}{order.pk}/start/",
        "simulator": f"{WORKFLOWS}{order.pk}/test/",
        "task-editor": f"{TASKS}{task.pk}/edit/",
        "task-json-new": f"{TASKS}add/",
        "handler-new": "conductor/eventhandler/add/",
    }
    return PAGES | {name: f"conductor/{model}/" for name, model in LISTS.items()} | of_objects


def test_the_first_visit_to_each_page_is_light_and_takes_no_needless_script_of_the_admin(pages, olga, addresses):
    received = {}
    for name, address in addresses.items():
        page = pages.open(olga)
        page.goto(f"/admin/{address}", wait_until="networkidle" if "edit" in address else "load")
        received[name] = dict(page.evaluate(RECEIVED))
        page.context.close()
    pages.contexts.clear()
    pages.validation_errors.clear()  # the browser logs the 404 of the page of a removed run on its console

    weights = {name: sum(files.values()) for name, files in received.items()}
    assert {name: size for name, size in weights.items() if not 20_000 < size < MAX_BYTES} == {}
    scripts = {
        name: [path for path in files if "/admin/js/" in path and not path.endswith(SCRIPTS_OF_THE_ADMIN)]
        for name, files in received.items()
        if name not in WITH_OTHER_SCRIPTS
    }
    assert {name: paths for name, paths in scripts.items() if paths} == {}
