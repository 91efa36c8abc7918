"""The page of a standalone task: waiting reason, attempts, artifacts and log."""

import gzip
import re
from urllib.parse import unquote

import pytest
from django.core.files.base import ContentFile
from django.test import Client
from django.urls import reverse

from conductor_app.failures import commands as failure_groups
from conductor_app.failures.models import FailureGroup
from conductor_app.taskcluster.commands import artifacts as artifact_contents
from conductor_app.taskcluster.commands import artifacts as artifact_logs
from conductor_app.taskcluster.commands import tasks as claims
from conductor_app.taskcluster.commands import tasks as task_actions
from conductor_app.taskcluster.commands import tasks as task_commands
from conductor_app.taskcluster.models import Artifact, Dependency, StandaloneTask
from conductor_app.tasks.models import Worker
from conductor_app.web.links import standalone_task_address, task_group_address
from tests.access.users import client_with
from tests.page_text import html, page_text
from tests.taskcluster.test_groups_parallel import LINUX, create

LOG = "public/logs/live_backing.log"
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(autouse=True)
def claims_without_waiting(monkeypatch):
    monkeypatch.setattr(claims, "CLAIM_WAIT_SECONDS", 0.0)


@pytest.fixture
def claimed_id(db, clock) -> str:
    """Return the id of a claimed task."""
    id = create(clock, name="build", definition={"payload": {"command": HOSTILE}, "scopes": ["queue:scope"]})
    claims.claim_tasks(LINUX, "here", "w1", 1)
    return id


@pytest.fixture
def limited(db) -> Client:
    """Return a client of a user who can view tasks, but not all artifacts."""
    return client_with("view_standalonetask", "view_group")


def add_artifact(
    clock, task_id: str, name: str, content: bytes = b"", encoding: str = "", kind: str = "s3", **details
) -> None:
    facts = {"content_type": "text/plain", "created_at": clock.now(), "expires_at": clock.now() + 3_600_000}
    Artifact.objects.create(task_id=task_id, number=0, name=name, kind=kind, details=details, **facts)
    if content:
        artifact_contents.store_content(task_id, 0, name, ContentFile(content), encoding)


def page(client, task_id: str, **asked):
    return client.get(standalone_task_address(task_id), asked)


def test_the_page_displays_state_definition_and_scopes_as_text(claimed_id, viewer):
    shown = page(viewer, claimed_id)

    assert "Running on worker here/w1." in page_text(shown).replace("<code>", "")
    assert "queue:scope" in page_text(shown)
    assert HOSTILE not in html(shown)
    assert task_group_address(claimed_id) in html(shown)


def test_a_task_without_scopes_says_so(viewer, db, clock):
    assert "The task has no scopes." in page_text(page(viewer, create(clock, name="build")))


def test_a_waiting_task_names_its_dependencies(claimed_id, viewer, clock):
    waiting = create(clock, name="test", requires=(claimed_id,))
    assert "Waiting for build." in page_text(page(viewer, waiting))
    assert standalone_task_address(waiting) in html(page(viewer, claimed_id))

    task_commands.report_task(claimed_id, 0, "failed")
    assert "Dependency build did not succeed" in page_text(page(viewer, waiting))


@pytest.mark.parametrize("expected", ["Running", "Pending", "Failed"])
def test_a_dependency_has_the_same_state_on_the_pages_of_the_task_and_of_its_group(claimed_id, viewer, clock, expected):
    group = StandaloneTask.objects.get(pk=claimed_id).group_id
    waiting = create(clock, name="test", group_id=group, requires=(claimed_id,))
    if expected == "Failed":
        task_commands.report_task(claimed_id, 0, "failed")
    elif expected == "Pending":
        claimed_id = create(clock, name="sign", group_id=group)
        waiting = create(clock, name="test", group_id=group, requires=(claimed_id,))

    rows = html(viewer.get(task_group_address(group))).split("<tr")
    state = page_badge(next(row for row in rows if f'data-key="{claimed_id}"' in row))

    assert state == expected
    assert [page_badge(badge) for each, badge, _ in page(viewer, waiting).context["needed"]] == [state]
    assert [page_badge(badge) for each, badge, _ in page(viewer, claimed_id).context["dependents"]] == ["Unscheduled"]
    assert page_badge(page(viewer, claimed_id).context["badge"]) == state


def page_badge(source: str) -> str:
    """Return the text of the first badge."""
    return re.search(r'<span class="badge \w+">(?:<svg.*?</svg>)?([^<]+)</span>', source)[1]


def test_the_failure_of_an_attempt_leads_to_its_group(claimed_id, viewer, limited, clock):
    task_commands.report_task(claimed_id, 0, "failed")
    assert "/admin/failures/" not in html(page(viewer, claimed_id)).partition("<main")[2]  # not counted yet
    failure_groups.group_failures(10)

    link = reverse("admin:failure_group", args=[FailureGroup.objects.get().pk])
    assert link in html(page(viewer, claimed_id))
    assert "The failure of run 0 among all failures" in page_text(page(viewer, claimed_id))
    assert link not in html(page(limited, claimed_id))  # The page links only to artifacts that the user may view.


def test_a_self_dependent_task_is_labeled(db, viewer, clock):
    id = create(clock)
    Dependency.objects.create(task_id=id, required_id=id, expires_at=clock.now())
    StandaloneTask.objects.get(pk=id).task.attempts.all().delete()
    type(StandaloneTask.objects.get(pk=id).task).objects.filter(pk=id).update(status="BLOCKED")

    assert "The task depends on itself and must be scheduled manually." in page_text(page(viewer, id))


def test_a_pending_task_lists_pollers_and_quarantined_workers(db, viewer, clock):
    id = create(clock)
    assert f"No worker has ever polled queue {LINUX}." in page_text(page(viewer, id))

    later = clock.now() + 3_600_000
    Worker.objects.create(
        queue=LINUX, group="here", name="w1", first_claim_at=0, expires_at=later, quarantine_until=later
    )
    assert f"The only worker of queue {LINUX} is quarantined." in page_text(page(viewer, id))


def test_attempts_are_listed_side_by_side_and_one_is_selected(claimed_id, viewer, clock):
    task_commands.report_task(claimed_id, 0, "worker-shutdown")

    assert "worker-shutdown" in page_text(page(viewer, claimed_id))
    add_artifact(clock, claimed_id, "public/of-the-first.txt", b"x")
    assert "of-the-first" not in html(page(viewer, claimed_id))
    assert "of-the-first" in html(page(viewer, claimed_id, attempt="0"))


def test_the_end_of_a_log_is_read_on_the_page_as_text(claimed_id, viewer, clock, monkeypatch):
    monkeypatch.setattr(artifact_logs, "PAGE", 64)
    written = b"".join(b"line %03d\n" % n for n in range(100)) + b"\x1b[31mred\x1b[0m <b>\n"
    add_artifact(clock, claimed_id, LOG, gzip.compress(written[:500]) + gzip.compress(written[500:]), "gzip")

    shown = html(page(viewer, claimed_id))

    assert "red &lt;b&gt;" in shown
    assert "line 099" in shown
    assert "line 001" not in shown
    seen = re.findall(r"line (\d+)", shown)
    begin = shown.partition("&amp;until=")[2].partition("#")[0]
    earlier = html(page(viewer, claimed_id, artifact=LOG, until=begin))
    assert re.findall(r"line (\d+)", earlier)[-1] == f"{int(seen[0]) - 1:03d}"


def test_a_log_that_grows_is_followed_by_its_revision(claimed_id, viewer, clock):
    add_artifact(clock, claimed_id, LOG, b"one\n")
    live = reverse("admin:standalone_log", args=[claimed_id])
    first = viewer.get(live, {"artifact": LOG})

    assert viewer.get(live, {"artifact": LOG, "rev": first["X-Revision"]}).status_code == 204
    artifact_contents.store_content(claimed_id, 0, LOG, ContentFile(b"one\ntwo\n"))
    assert b"two" in viewer.get(live, {"artifact": LOG, "rev": first["X-Revision"]}).content


@pytest.mark.parametrize(
    ("content", "encoding", "said"),
    [(b"no gzip", "gzip", "is not valid gzip data"), (b"x", "br", "which cannot be shown")],
)
def test_an_unreadable_log_states_the_reason(claimed_id, viewer, clock, content, encoding, said):
    add_artifact(clock, claimed_id, LOG, content, encoding)

    assert said in page_text(page(viewer, claimed_id))


def test_a_linked_log_is_followed_and_a_log_on_a_worker_is_explained(claimed_id, viewer, clock):
    add_artifact(clock, claimed_id, "public/logs/kept.txt", b"kept here\n")
    add_artifact(clock, claimed_id, "public/logs/live.log", kind="link", artifact="public/logs/kept.txt")
    assert "kept here" in page_text(page(viewer, claimed_id))

    add_artifact(clock, claimed_id, "public/a.log", kind="reference", url="https://worker/a?x=1")
    assert "The log is still on its worker" in page_text(page(viewer, claimed_id, artifact="public/a.log"))
    add_artifact(clock, claimed_id, "public/b.log", kind="reference", url="javascript:alert(1)")
    assert 'href="javascript' not in html(page(viewer, claimed_id, artifact="public/b.log"))


def test_private_artifacts_ask_for_a_permission(claimed_id, limited, viewer, clock):
    add_artifact(clock, claimed_id, "private/secret.log", b"secret\n")
    add_artifact(clock, claimed_id, "public/way-in.log", kind="link", artifact="private/secret.log")
    file = reverse("admin:standalone_file", args=[claimed_id])

    for name in ("private/secret.log", "public/way-in.log"):
        assert "secret\n" not in html(page(limited, claimed_id, artifact=name))
        assert "conductor.view_artifact" in page_text(page(limited, claimed_id, artifact=name))
    assert limited.get(file, {"artifact": "private/secret.log"}).status_code == 403
    assert "secret" in page_text(page(viewer, claimed_id, artifact="private/secret.log"))
    there = viewer.get(file, {"artifact": "private/secret.log"})
    assert unquote(there["Location"]).startswith(f"/api/artifacts/v1/{claimed_id}/0/private/secret.log?")
    assert "sandbox" in Client().get(there["Location"])["Content-Security-Policy"]


def test_its_priority_is_changed_and_all_actions_are_audited(db, operator, clock):
    id = create(clock)

    operator.post(standalone_task_address(id), {"do": "prioritize", "priority": "very-high", "reason": "release day"})

    assert StandaloneTask.objects.get(pk=id).priority == 6
    assert "release day" in page_text(page(operator, id))
    task_actions.apply_action("cancel", id, "olga")
    assert "before a worker claimed it" in page_text(page(operator, id))


def test_the_page_takes_few_queries(claimed_id, viewer, clock, django_assert_max_num_queries):
    for number in range(5):
        add_artifact(clock, claimed_id, f"public/{number}.txt", b"x")
    # The permissions of the viewer are read once.
    page(viewer, claimed_id)

    with django_assert_max_num_queries(15):
        page(viewer, claimed_id)
