"""Task groups among the operators' pages: their list, and the outcome and the tasks of one."""

import pytest
from django.urls import reverse

from conductor_app.access.models import AuditEntry
from conductor_app.runs.models import Task
from conductor_app.taskcluster.commands import tasks as claims
from conductor_app.taskcluster.commands import tasks as task_actions
from conductor_app.taskcluster.commands import tasks as task_commands
from conductor_app.taskcluster.commands.groups import seal_group
from conductor_app.taskcluster.models import TaskGroup
from conductor_app.web.links import standalone_task_address, task_group_address
from tests.page_text import html, page_text
from tests.scenario import run_commit_hooks
from tests.taskcluster.conftest import new_id
from tests.taskcluster.test_groups_parallel import LINUX, create

LIST = "/admin/conductor/taskgroup/"
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def build(db, clock, monkeypatch):
    """Return a task group: completed sources, three tests (one failed, one claimed), and a release that is blocked."""
    monkeypatch.setattr(claims, "CLAIM_WAIT_SECONDS", 0.0)
    group = new_id()
    ids = {"sources": create(clock, name="sources", group_id=group)}
    _work(clock, "completed", 30)
    for number in (1, 2, 10):
        ids[f"test {number}"] = create(clock, name=f"test {number}", group_id=group)
        clock.advance(seconds=1)
    ids["release"] = create(clock, name=f"release {HOSTILE}", group_id=group, requires=(ids["test 1"], ids["test 2"]))
    _work(clock, "failed", 5)
    claims.claim_tasks(LINUX, "here", "w1", 1)
    return group, ids


def _work(clock, how: str, seconds: int) -> None:
    [claim] = claims.claim_tasks(LINUX, "here", "w1", 1)
    clock.advance(seconds=seconds)
    task_commands.report_task(claim.standalone.id, 0, how)


def state(task_id: str) -> str:
    return Task.objects.get(pk=task_id).status


def page(client, group: str, **asked: str):
    return client.get(task_group_address(group), asked)


def test_the_list_displays_the_progress_of_each_group(build, operator, clock):
    group, _ = build
    clock.advance(seconds=5)
    other = create(clock)

    shown = operator.get(LIST)

    assert "2 of 5" in page_text(shown)
    assert html(shown).index(other) < html(shown).index(group)
    assert group in html(operator.get(LIST, {"q": group}))
    assert group in html(operator.get(LIST, {"q": build[1]["release"]}))
    assert other not in html(operator.get(LIST, {"q": group}))
    assert group in html(operator.get(LIST, {"state": "open"}))
    assert group not in html(operator.get(LIST, {"state": "sealed"}))


def test_the_page_displays_failures_first_and_counts_by_state(build, viewer):
    group, ids = build

    shown = page(viewer, group)

    said = page_text(shown)
    assert "1 of 5 tasks failed. First: test 1 (failed)." in said
    assert said.index("test 1") < said.index("test 2") < said.index("test 10") < said.index("sources")
    assert HOSTILE not in html(shown)
    assert standalone_task_address(ids["release"]) in html(shown)
    assert "Seal this group" not in said


def test_the_page_counts_the_attempts_of_each_task(build, viewer):
    group, _ids = build

    said = page_text(page(viewer, group))
    assert "sources Completed 0 ms 30.0 s 1 here/w1" in said
    assert "Unscheduled – – 0 proj/linux" in said


def test_the_page_does_not_repeat_the_state_as_the_reason(build, viewer):
    group, _ids = build

    assert "test 1 Failed 3.0 s" in page_text(page(viewer, group))


def test_states_and_names_filter_and_an_empty_result_is_labeled(build, operator):
    group, ids = build

    assert standalone_task_address(ids["sources"]) not in html(page(operator, group, state="FAILED"))
    assert standalone_task_address(ids["test 10"]) in html(page(operator, group, q="TEST 1"))
    assert "The group has 5 tasks." in page_text(page(operator, group, q="nowhere"))


def test_pages_continue_after_the_previous_one(build, operator, monkeypatch):
    group, ids = build
    monkeypatch.setattr("conductor_app.taskcluster.pages.groups.PAGE_SIZE", 2)

    pages = [html(page(operator, group, page=number)) for number in ("1", "2", "3")]

    shown = [[name for name, id in ids.items() if f'data-key="{id}"' in each] for each in pages]
    assert [len(names) for names in shown] == [2, 2, 1]
    assert sorted(name for names in shown for name in names) == sorted(ids)
    assert ["page=3" in each for each in pages] == [False, True, False]


def test_the_page_takes_the_same_queries_for_any_group(build, operator, clock, django_assert_max_num_queries):
    group, _ = build
    for number in range(20):
        create(clock, name=f"more {number}", group_id=group)

    with django_assert_max_num_queries(15):
        page(operator, group)
    assert "more 19" in page_text(page(operator, group))
    with django_assert_max_num_queries(15):
        operator.get(LIST)


def test_the_page_follows_the_group_by_its_revision(build, operator, clock):
    group, ids = build
    live = reverse("admin:group_parts", args=[group])
    first = operator.get(live)

    assert operator.get(live, {"rev": first["X-Revision"]}).status_code == 204
    task_actions.apply_action("cancel", ids["release"], "olga")
    assert operator.get(live, {"rev": first["X-Revision"]}).status_code == 200


def test_a_group_is_sealed_with_a_reason(build, operator):
    group, _ = build

    operator.post(task_group_address(group), {"do": "seal", "reason": "all is there"})

    assert TaskGroup.objects.get(pk=group).sealed_at is not None
    [entry] = AuditEntry.objects.filter(object_type="task_group")
    assert (entry.action, entry.reason) == ("seal", "all is there")
    assert "Seal this group" not in page_text(page(operator, group))


def test_the_open_tasks_of_a_sealed_group_are_canceled(build, operator):
    group, ids = build
    assert "Cancel the open tasks" not in page_text(page(operator, group))
    assert "Seal it first" in page_text(operator.post(task_group_address(group), {"do": "cancel"}, follow=True))
    seal_group(group, "ana")

    with run_commit_hooks():
        reply = operator.post(task_group_address(group), {"do": "cancel"}, follow=True)

    assert "3 tasks are canceled." in page_text(reply)
    assert [state(id) for id in ids.values()] == ["COMPLETED", "FAILED", "CANCELED", "CANCELED", "CANCELED"]
    assert AuditEntry.objects.filter(object_type="task_group", action="cancel", actor="olga").exists()


def test_people_cancel_fewer_tasks_than_those_that_need_an_approval(build, operator, settings):
    group, ids = build
    seal_group(group, "ana")
    settings.CONDUCTOR_BULK_APPROVAL_FROM = 3

    reply = operator.post(task_group_address(group), {"do": "cancel"}, follow=True)

    assert "People may cancel fewer than 3 tasks at once, and 3 are open." in page_text(reply)
    assert state(ids["release"]) == "BLOCKED"


def test_a_viewer_cannot_change_anything(build, viewer):
    group, _ids = build

    for verb in ("seal", "cancel"):
        assert viewer.post(task_group_address(group), {"do": verb}).status_code == 403
    assert "Seal this group" not in page_text(page(viewer, group))
    assert TaskGroup.objects.get(pk=group).sealed_at is None


def test_a_group_without_tasks_is_labeled(db, operator, clock):
    now = clock.now()
    group = TaskGroup.objects.create(
        pk=new_id(), scheduler_id="-", created_at=now, expires_at=now + 1000, sealed_at=now
    )

    assert "The group is sealed and has no tasks." in page_text(page(operator, group.pk))


def test_an_unknown_group_is_not_found(db, operator):
    assert page(operator, new_id()).status_code == 404
