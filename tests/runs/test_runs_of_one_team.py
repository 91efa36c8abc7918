"""Pages of runs, queues, failures and bulk operations for those who may see or control the runs of one team."""

import pytest
from django.urls import reverse

from conductor_app.access.permissions import clear_cache
from conductor_app.alerts.models import SavedView
from conductor_app.bulk.executor import run_due_operations
from conductor_app.bulk.models import BulkItem, BulkOperation
from conductor_app.failures.models import FailureGroup
from conductor_app.failures.pages.groups import ACTIONS as GROUP_ACTIONS
from conductor_app.runs.models import Attempt, Message, Run
from conductor_app.runs.pages.actions import RUN_ACTIONS
from conductor_app.tasks.pages.actions import TASK_ACTIONS
from conductor_app.tasks.pages.queues import ACTIONS as QUEUE_ACTIONS
from tests.access.two_teams import ALPHA, BRAVO, Team, create_teams
from tests.access.users import logged_in_client

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
LISTS = {
    "admin:conductor_run_changelist": {},
    "admin:queues": {},
    "admin:workers": {},
    "admin:failures": {"view": "all"},
    "admin:undelivered_messages": {},
    "admin:bulk_plan": {"action": "retry", "definition": f"{ALPHA}_order"},
}
TABS = ("timeline", "diagram", "tasks", "data", "events", "audit", "raw")


@pytest.fixture
def teams() -> dict[str, Team]:
    return create_teams()


@pytest.fixture
def viewer(teams):
    return logged_in_client(teams[ALPHA].viewer)


@pytest.fixture
def operator(teams):
    return logged_in_client(teams[ALPHA].operator)


def text_of(client, address: str) -> str:
    reply = client.get(address)
    assert reply.status_code == 200, (address, reply.status_code)
    content = b"".join(reply.streaming_content) if reply.streaming else reply.content
    for person in ("viewer", "operator"):
        content = content.replace(f"{person}-of-{ALPHA}".encode(), b"")
    return content.decode().lower()


def group_of(team: str) -> FailureGroup:
    return FailureGroup.objects.get(definition=f"{team}_order")


def pages_of(team: Team) -> list[str]:
    """Return the addresses of the pages about one object of a team."""
    run, group = team.runs["failed"], group_of(team.name)
    attempt = Attempt.objects.get(run_id=run).pk
    waiting = Attempt.objects.get(run_id=team.runs["waiting"]).pk
    message = Message.objects.get(to=team.runs["waiting"]).pk
    return [
        *(reverse("admin:conductor_run_change", args=[run], query={"tab": tab}) for tab in TABS),
        reverse("admin:conductor_run_change", args=[team.runs["parent"]], query={"children": "1"}),
        reverse("admin:run_parts", args=[run]),
        reverse("admin:run_raw", args=[run, "input"]),
        reverse("admin:run_bundle", args=[run]),
        reverse("admin:compare", args=[run], query={"with": team.runs["completed"]}),
        reverse("admin:plan", args=[run], query={"do": "retry"}),
        reverse("admin:attempt_raw", args=[attempt, "output"]),
        reverse("admin:attempt_log", args=[attempt]),
        reverse("admin:why_waiting", args=[waiting]),
        reverse("admin:queue", query={"name": f"{team.name}_pack"}),
        reverse("admin:worker", query={"name": f"{team.name}-worker"}),
        reverse("admin:failure_group", args=[group.pk]),
        reverse("admin:undelivered_message", args=[message]),
    ]


def test_pages_show_the_objects_of_ones_own_team_only(teams, viewer, operator):
    SavedView.objects.all().delete()  # tabs of the list of runs
    pages = pages_of(teams[ALPHA])
    lists = [reverse(name, query=query) for name, query in LISTS.items()]
    exports = [reverse("admin:run_export", args=[kind]) for kind in ("csv", "json")]

    for client in (viewer, operator):
        shown = {address: text_of(client, address) for address in [*pages, *lists, *exports]}
        assert not [address for address, text in shown.items() if ALPHA not in text]
        assert not [address for address, text in shown.items() if BRAVO in text]


def test_pages_of_another_team_are_like_missing_ones(teams, viewer, operator):
    for client in (viewer, operator):
        assert {address: client.get(address).status_code for address in pages_of(teams[BRAVO])} == dict.fromkeys(
            pages_of(teams[BRAVO]), 404
        )


def test_a_comparison_finds_no_run_of_another_team(teams, viewer):
    other = f"{BRAVO}-correlation"

    page = text_of(viewer, reverse("admin:compare", args=[teams[ALPHA].runs["failed"]], query={"with": other}))

    assert teams[BRAVO].runs["failed"] not in page and f"{BRAVO}_order" not in page


def test_the_name_of_a_parent_and_of_children_of_another_team_is_not_shown(teams, viewer):
    runs = teams[ALPHA].runs
    Run.objects.filter(pk=runs["failed"]).update(parent_id=teams[BRAVO].runs["parent"])
    Run.objects.filter(pk=teams[BRAVO].runs["completed"]).update(parent_id=runs["completed"])

    for run in (runs["failed"], runs["completed"]):
        assert BRAVO not in text_of(viewer, reverse("admin:conductor_run_change", args=[run]))


def posts_on(team: Team) -> list[tuple[str, dict[str, str]]]:
    """Return every form that changes something of a team, from the tables of actions."""
    run, group = team.runs["waiting"], group_of(team.name)
    attempt = Attempt.objects.get(run_id=run).pk
    queue = reverse("admin:queue", query={"name": f"{team.name}_pack"})
    message = Message.objects.get(to=run).pk
    return [
        *((reverse("admin:run_act", args=[run, name]), {"attempt_id": attempt}) for name in RUN_ACTIONS),
        *((reverse("admin:task_act", args=[attempt, name]), {}) for name in TASK_ACTIONS),
        *((queue, {"do": name, "attempt": attempt, "minutes": "1"}) for name in QUEUE_ACTIONS),
        *((reverse("admin:failure_group", args=[group.pk]), {"do": name}) for name in GROUP_ACTIONS),
        *((reverse("admin:run_debug", args=[run]), {"do": name}) for name in ("set", "remove", "go")),
        *((reverse("admin:undelivered_message", args=[message]), {"do": name}) for name in ("retry", "discard")),
        *((reverse("admin:workers"), {"do": do, "worker": f"{team.name}-worker"}) for do in ("drain", "release")),
        (reverse("admin:run_labels", args=[run]), {"labels": "late"}),
        (reverse("admin:plan", args=[run]), {"do": "retry", "confirm": "1", "revision": "1"}),
    ]


def test_no_action_changes_anything_of_another_team(teams, viewer, operator):
    before = list(Run.objects.order_by("pk").values_list("pk", "revision", "status"))

    for client in (viewer, operator):
        for address, form in posts_on(teams[BRAVO]):
            assert client.post(address, form).status_code in (403, 404), (address, form)

    assert list(Run.objects.order_by("pk").values_list("pk", "revision", "status")) == before
    assert Message.objects.filter(tries__gte=500).count() == 2


def test_a_viewer_of_a_team_changes_nothing_of_it(teams, viewer):
    for address, form in posts_on(teams[ALPHA]):
        assert viewer.post(address, form).status_code == 403, (address, form)


def test_an_operator_of_a_team_changes_its_runs(teams, operator):
    run = teams[ALPHA].runs["waiting"]
    page = text_of(operator, reverse("admin:conductor_run_change", args=[run]))
    assert reverse("admin:run_act", args=[run, "pause"]) in page

    operator.post(reverse("admin:run_act", args=[run, "pause"]), {"reason": "wait"})
    operator.post(reverse("admin:run_labels", args=[run]), {"labels": "late"})
    operator.post(reverse("admin:failure_group", args=[group_of(ALPHA).pk]), {"do": "acknowledge"})

    assert Run.objects.get(pk=run).status == "PAUSED"
    assert Run.objects.get(pk=run).labels.get().name == "late"
    assert group_of(ALPHA).state == "ACKNOWLEDGED"


def test_groups_of_failures_are_not_merged_with_those_of_another_team(teams, operator):
    form = {"do": "merge", "into": str(group_of(BRAVO).pk)}

    operator.post(reverse("admin:failure_group", args=[group_of(ALPHA).pk]), form)

    assert group_of(ALPHA).merged_into is None


def start_operation(client, **selection: str) -> BulkOperation:
    form = {"action": "terminate", "reason": "tidy", **selection}
    assert client.post(reverse("admin:bulk_plan"), form).status_code == 302
    return BulkOperation.objects.latest("created_at")


def test_a_bulk_operation_changes_the_runs_of_its_owner_only(teams, operator, viewer):
    operation = start_operation(operator, status="RUNNING")
    run_due_operations()

    items = BulkItem.objects.filter(operation=operation).values_list("run_id", flat=True)
    assert {run.name[: len(ALPHA)] for run in Run.objects.filter(pk__in=items)} == {ALPHA}
    page = reverse("admin:bulk_operation", args=[operation.pk])
    assert BRAVO not in text_of(operator, page)
    assert operation.pk in text_of(operator, reverse("admin:bulk"))
    assert viewer.get(page).status_code == 404
    assert operation.pk not in text_of(viewer, reverse("admin:bulk"))


def test_a_bulk_operation_refuses_what_its_owner_may_no_longer_control(teams, operator):
    operation = start_operation(operator, ids=",".join([teams[ALPHA].runs["waiting"]]))
    teams[ALPHA].operator.grants.filter(access="EXECUTE").delete()
    clear_cache()

    for _ in range(3):
        run_due_operations()

    assert BulkItem.objects.get(operation=operation).outcome == "REFUSED"
    assert Run.objects.get(pk=teams[ALPHA].runs["waiting"]).status == "RUNNING"
