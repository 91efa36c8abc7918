"""Menus and forms that open over a page: none is cut off, at any width."""

import pytest
from django.contrib.auth.models import User

from conductor_app.bulk import commands as bulk_commands
from conductor_app.definitions.models import TaskDefinition, WorkflowDefinition
from conductor_app.failures.commands import group_failures
from conductor_app.failures.models import FailureGroup
from conductor_app.runs.models import Attempt
from tests.builders import simple
from tests.scenario import claim_and_report, claim_next, define_task, define_workflow, start_run

WIDTHS = (1440, 1024, 360)
OPEN_EACH = """async () => {
  const found = [], frames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  let opened = 0;
  for (const menu of document.querySelectorAll("details.action-menu, details.menu, details.filter")) {
    const summary = menu.querySelector("summary"), body = menu.querySelector(":scope > :not(summary)");
    if (!body || !summary.checkVisibility({ visibilityProperty: true })) continue;
    menu.open = true;
    await frames();
    opened += 1;
    const box = body.getBoundingClientRect();
    let left = 0, right = document.documentElement.clientWidth;
    for (let outer = menu.parentElement; outer && outer !== document.body; outer = outer.parentElement) {
      if (getComputedStyle(outer).overflowX === "visible") continue;
      left = Math.max(left, outer.getBoundingClientRect().left);
      right = Math.min(right, outer.getBoundingClientRect().right);
    }
    if (box.left < left - 1 || box.right > right + 1 || !box.width)
      found.push(`${summary.textContent.trim()}: ${box.left} to ${box.right} in ${left} to ${right}`);
    menu.open = false;
  }
  return [opened, found];
}"""


@pytest.fixture
def addresses(transactional_db) -> list[str]:
    """Return the pages with menus: of runs, queues, workers, failures, definitions, people and bulk operations."""
    User.objects.create_user("ann", password="x", is_staff=True)
    define_task("charge", retryCount=0)
    define_workflow("order", simple("charge"))
    failed = start_run("order")
    claim_and_report("charge", "FAILED", reason="502 from gateway")
    leased = start_run("order")
    claim_next("charge")
    waiting = start_run("order")
    group_failures(10)
    operation = bulk_commands.start(bulk_commands.BulkRequest("retry", {"status": ["FAILED"]}), "ann")
    order, task = WorkflowDefinition.objects.get(name="order"), TaskDefinition.objects.get(name="charge")
    worker = Attempt.objects.get(run_id=leased.pk).worker
    run = "/admin/conductor/run/"
    return [
        "/admin/",
        run,
        f"{run}?status=FAILED",
        *(f"{run}{each.pk}/change/" for each in (failed, leased, waiting)),
        "/admin/queues/",
        "/admin/queue/?name=charge",
        "/admin/workers/",
        f"/admin/worker/?name={worker}",
        "/admin/failures/",
        f"/admin/failures/{FailureGroup.objects.get().pk}/",
        f"/admin/bulk/{operation}/",
        f"/admin/why-waiting/{Attempt.objects.get(run_id=waiting.pk).pk}/",
        "/admin/conductor/workflowdefinition/",
        f"/admin/conductor/workflowdefinition/{order.pk}/change/",
        f"/admin/conductor/taskdefinition/{task.pk}/change/",
        "/admin/conductor/schedule/",
        "/admin/conductor/auditentry/",
        "/admin/people/",
        "/admin/retention/",
    ]


def test_every_popover_stays_inside_the_window_and_the_boxes_around_it(page, addresses):
    opened, cut = 0, []
    for address in addresses:
        page.goto(address)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            count, found = page.evaluate(OPEN_EACH)
            opened += count
            cut += [f"{address}, {width} px: {each}" for each in found]

    assert cut == []
    assert opened > len(addresses) * len(WIDTHS), "because each page has at least the menu of the user"
