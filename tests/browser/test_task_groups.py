"""A Taskcluster build in a browser: its group, and a task's log."""

import gzip

import pytest
from django.core.files.base import ContentFile
from playwright.sync_api import expect

from conductor_app.taskcluster.commands import artifacts as artifact_contents
from conductor_app.taskcluster.commands import tasks as claims
from conductor_app.taskcluster.commands import tasks as task_actions
from conductor_app.taskcluster.commands import tasks as task_commands
from conductor_app.taskcluster.models import Artifact
from conductor_app.utils import clock
from conductor_app.web.links import standalone_task_address, task_group_address
from tests.browser.page_checks import assert_usable_by_everybody
from tests.taskcluster.conftest import new_id
from tests.taskcluster.test_groups_parallel import LINUX, create

LOG = "public/logs/live_backing.log"


@pytest.fixture
def build(transactional_db, monkeypatch) -> tuple[str, dict[str, str]]:
    """Create a build: sources, six tests of which one fails, and a release that depends on all of them."""
    monkeypatch.setattr(claims, "CLAIM_WAIT_SECONDS", 0.0)
    group = new_id()
    ids = {"sources": create(clock, name="sources", group_id=group)}
    complete_task(ids["sources"], "completed")
    for number in range(1, 7):
        ids[f"test {number}"] = create(clock, name=f"test {number}", group_id=group, requires=(ids["sources"],))
        complete_task(ids[f"test {number}"], "failed" if number == 3 else "completed")
    ids["release"] = create(clock, name="release", group_id=group, requires=tuple(ids.values()))
    return group, ids


def complete_task(id: str, how: str) -> None:
    """Complete the task as a worker and leave a log."""
    [claim] = claims.claim_tasks(LINUX, "here", "w1", 1)
    assert claim.standalone.id == id
    text = b"".join(b"step %d\n" % n for n in range(200)) + b"\x1b[1;31mit " + how.encode() + b"\x1b[0m <b>\n"
    now = clock.now()
    facts = {"content_type": "text/plain", "created_at": now, "expires_at": now + 3_600_000}
    Artifact.objects.create(task_id=id, number=0, name=LOG, kind="s3", **facts)
    artifact_contents.store_content(id, 0, LOG, ContentFile(gzip.compress(text)), "gzip")
    task_commands.report_task(id, 0, how)


def test_every_page_fits_and_can_be_used_by_everybody(page, build):
    group, ids = build

    for address in (
        task_group_address(group),
        "/admin/conductor/taskgroup/",
        standalone_task_address(ids["test 3"]),
        standalone_task_address(ids["release"]),
    ):
        assert_usable_by_everybody(page, address)


def test_the_group_leads_to_the_log_line_with_the_cause(page, build):
    group, _ = build
    page.goto(task_group_address(group))
    page.get_by_role("link", name="test 3").click()

    expect(page.locator(".terminal li").last).to_have_text("it failed <b>")
    assert page.locator(".terminal").evaluate("log => log.scrollTop") == 0  # at its end, from which it is scrolled up
    page.get_by_role("link", name="release").click()
    expect(page.locator(".cause")).to_contain_text("Dependency test 3 did not succeed")


def test_the_page_follows_the_group(page, build):
    group, ids = build
    page.clock.install()
    page.goto(task_group_address(group))
    page.evaluate("window.stays = true")

    task_actions.apply_action("schedule", ids["release"], "otto")
    page.clock.fast_forward(3000)
    expect(page.locator(f"tr[data-key='{ids['release']}']")).to_contain_text("Pending")
    assert page.evaluate("window.stays")
