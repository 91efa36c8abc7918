"""Task groups among the operators' pages: found, watched, and acted on as a whole."""

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from conductor_app.access.models import AuditEntry
from conductor_app.processes import sweeps
from conductor_app.runs.models import Task
from conductor_app.taskcluster.commands import tasks as claims
from conductor_app.taskcluster.commands import tasks as task_actions
from conductor_app.taskcluster.commands import tasks as task_commands
from conductor_app.taskcluster.models import PendingApproval, StandaloneTask, TaskGroup
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
    assert "Preview" not in said


def test_the_page_counts_the_attempts_of_each_task(build, viewer):
    group, _ids = build

    said = page_text(page(viewer, group))
    assert "sources Completed 0 ms 30.0 s 1 here/w1" in said
    assert "Unscheduled – – 0 proj/linux" in said


def test_the_page_does_not_repeat_the_state_as_the_reason(build, viewer):
    group, _ids = build

    assert "test 1 Failed 3.0 s" in page_text(page(viewer, group))


def test_the_timeline_and_the_diagram_mark_the_longest_chain(build, viewer):
    group, ids = build

    timeline = page(viewer, group, tab="timeline")
    assert "Critical path: 1 task, 30.0 s" in page_text(timeline)
    assert html(timeline).count('class="critical"') == 1
    assert html(timeline).count('<rect class="work ') == 3 + 3  # and those of the legend

    diagram = html(page(viewer, group, tab="diagram"))
    assert all(standalone_task_address(id) in diagram for id in ids.values())
    assert HOSTILE not in diagram
    assert "Show only the critical path" in page_text(page(viewer, group, tab="diagram"))
    alone = html(page(viewer, group, tab="diagram", chain="1"))
    assert standalone_task_address(ids["sources"]) in alone
    assert standalone_task_address(ids["release"]) not in alone


def test_more_tasks_than_can_be_drawn_are_grouped_by_kind(build, viewer, monkeypatch):
    group, ids = build
    monkeypatch.setattr("conductor_app.taskcluster.queries.groups.MAX_ROWS", 4)
    monkeypatch.setattr("conductor_app.taskcluster.queries.groups.MAX_NODES", 4)

    for tab in ("timeline", "diagram"):
        shown = html(page(viewer, group, tab=tab))
        assert "only=test+%23" in shown, tab
        assert standalone_task_address(ids["test 2"]) not in shown
        assert standalone_task_address(ids["test 2"]) in html(page(viewer, group, tab=tab, only="test #"))


def test_states_names_and_kinds_filter_and_an_empty_result_is_labeled(build, operator):
    group, ids = build

    assert standalone_task_address(ids["sources"]) not in html(page(operator, group, state="FAILED"))
    assert standalone_task_address(ids["test 10"]) in html(page(operator, group, q="TEST 1"))
    assert standalone_task_address(ids["sources"]) not in html(page(operator, group, only="test #"))
    assert "The group has 5 tasks." in page_text(page(operator, group, q="nowhere"))


def test_pages_continue_after_the_previous_one(build, operator, monkeypatch):
    group, ids = build
    monkeypatch.setattr("conductor_app.taskcluster.pages.groups.PAGE_SIZE", 2)

    seen, after = [], ""
    for _ in range(3):
        shown = html(page(operator, group, **({"after": after} if after else {})))
        own = [name for name, id in ids.items() if f'data-key="{id}"' in shown]
        seen += own
        after = next((id for id in ids.values() if f"after={id}" in shown), "")

    assert sorted(seen) == sorted(ids)
    assert after == ""


def test_a_very_large_group_is_displayed_in_parts(build, viewer, monkeypatch):
    group, ids = build
    monkeypatch.setattr("conductor_app.taskcluster.queries.groups.LIMIT", 3)
    in_order = sorted(ids, key=ids.__getitem__)

    shown = html(page(viewer, group))
    assert [name for name in in_order if f'data-key="{ids[name]}"' in shown] == in_order[:3]
    assert f"part={ids[in_order[2]]}" in shown
    second = html(page(viewer, group, part=ids[in_order[2]]))
    assert [name for name in in_order if f'data-key="{ids[name]}"' in second] == in_order[3:]
    assert "too large to display completely" in page_text(page(viewer, group))


def test_the_page_takes_the_same_queries_for_any_group(build, operator, clock, django_assert_max_num_queries):
    group, _ = build
    for number in range(20):
        create(clock, name=f"more {number}", group_id=group)

    for tab in ("tasks", "timeline", "diagram", "audit"):
        with django_assert_max_num_queries(15):
            page(operator, group, tab=tab)
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


def test_an_action_is_previewed(build, operator):
    group, ids = build
    do = reverse("admin:group_do", args=[group])

    shown = page_text(operator.get(do, {"do": "cancel"}))

    assert "The action applies to 3 tasks" in shown
    assert "2 more would not change." in shown
    refused = page_text(
        operator.get(do, {"do": "prioritize", "priority": "high", "task": [ids["sources"], ids["test 2"]]})
    )
    assert "The action applies to 1 task" in refused
    assert "is resolved, so its priority cannot be changed." in refused
    assert state(ids["release"]) == "BLOCKED"


def test_an_action_on_all_displayed_tasks_applies_to_each_with_its_reason(build, operator):
    group, ids = build
    do = reverse("admin:group_do", args=[group])

    with run_commit_hooks():
        reply = operator.post(do, {"do": "cancel", "q": "test", "seen": "2", "reason": "wrong branch"})
    assert reply.status_code == 302
    while sweeps.sweep_once():
        pass

    assert [state(ids[name]) for name in ids] == ["COMPLETED", "FAILED", "CANCELED", "CANCELED", "BLOCKED"]
    entries = AuditEntry.objects.filter(reason="wrong branch", actor="olga").order_by("id")
    assert sorted(e.object_id for e in entries) == sorted([group, ids["test 2"], ids["test 10"]])
    assert "wrong branch" in page_text(page(operator, group, tab="audit"))


def test_an_action_that_requires_approval_waits_for_another_user(build, operator, client, settings):
    group, ids = build
    do = reverse("admin:group_do", args=[group])
    client.force_login(User.objects.create_superuser("otto", password="x"))
    settings.CONDUCTOR_BULK_APPROVAL_FROM = 3
    asked = {"do": "cancel", "reason": "too <late>", "seen": "9"}
    assert "Another user has to approve" in page_text(operator.get(do, asked))

    for _ in range(2):
        operator.post(do, asked)
    while sweeps.sweep_once():
        pass
    first, other = PendingApproval.objects.order_by("id")

    assert state(ids["test 10"]) != "CANCELED"
    assert 'value="approve"' not in html(page(operator, group)) and "too <late>" in page_text(page(operator, group))
    operator.post(do, {"do": "approve", "act": first.pk})
    assert PendingApproval.objects.count() == 2

    client.post(do, {"do": "approve", "act": first.pk, "reason": "seen"})
    client.post(do, {"do": "decline", "act": other.pk})
    client.post(do, {"do": "approve", "act": "x" + "9" * 30})
    while sweeps.sweep_once():
        pass

    assert state(ids["test 10"]) == "CANCELED" and not PendingApproval.objects.exists()
    acted = AuditEntry.objects.filter(object_type="task_group", object_id=group).order_by("id")
    assert [entry.action for entry in acted] == ["request approval", "request approval", "approve", "cancel", "decline"]


def test_only_selected_tasks_get_another_priority(build, operator):
    group, ids = build
    do = reverse("admin:group_do", args=[group])

    with run_commit_hooks():
        operator.post(do, {"do": "prioritize", "priority": "high", "task": ids["test 10"], "seen": "1"})

    assert StandaloneTask.objects.get(pk=ids["test 10"]).priority == 5
    assert StandaloneTask.objects.get(pk=ids["test 2"]).priority == 1


@pytest.mark.parametrize("seen", ["1", "0" * 5000 + "9"])
def test_tasks_that_were_not_previewed_are_not_changed(build, operator, seen):
    group, ids = build

    reply = operator.post(reverse("admin:group_do", args=[group]), {"do": "cancel", "seen": seen}, follow=True)

    assert "Review the action again" in page_text(reply)
    assert state(ids["release"]) == "BLOCKED"


def test_a_group_is_sealed_with_a_reason(build, operator):
    group, _ = build

    operator.post(reverse("admin:group_do", args=[group]), {"do": "seal", "reason": "all is there"})

    assert TaskGroup.objects.get(pk=group).sealed_at is not None
    [entry] = AuditEntry.objects.filter(object_type="task_group")
    assert (entry.action, entry.reason) == ("seal", "all is there")
    assert "Seal this group" not in page_text(page(operator, group))


def test_a_viewer_cannot_change_anything(build, viewer):
    group, ids = build
    do = reverse("admin:group_do", args=[group])

    assert viewer.get(do, {"do": "cancel"}).status_code == 403
    assert viewer.post(do, {"do": "cancel", "seen": "9"}).status_code == 403
    assert state(ids["release"]) == "BLOCKED"


def test_a_group_without_tasks_is_labeled(db, operator, clock):
    now = clock.now()
    group = TaskGroup.objects.create(
        pk=new_id(), scheduler_id="-", created_at=now, expires_at=now + 1000, sealed_at=now
    )

    assert "The group is sealed and has no tasks." in page_text(page(operator, group.pk))


def test_an_expired_group_is_gone_with_a_reason_and_an_unknown_one_is_not_found(build, operator, clock):
    group, _ = build
    operator.post(reverse("admin:group_do", args=[group]), {"do": "seal"})
    clock.advance(seconds=4 * 3600)

    reply = page(operator, group)
    assert reply.status_code == 410
    assert "The group expired at" in reply.content.decode()
    TaskGroup.objects.all().delete()
    assert page(operator, group).status_code == 410
    assert page(operator, new_id()).status_code == 404
