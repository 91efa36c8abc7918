"""Concurrent operations on standalone tasks: no attempt is claimed twice, none is lost, and all invariants hold."""

import random
from collections import Counter
from itertools import pairwise

import pytest

from conductor_app.core.errors import RequestRefused
from conductor_app.core.states import TASK
from conductor_app.failures.models import Failure
from conductor_app.processes import sweeps
from conductor_app.runs.models import Attempt, Message, PulseMessage, Task
from conductor_app.taskcluster.commands import artifacts as expiry
from conductor_app.taskcluster.commands import groups as group_commands
from conductor_app.taskcluster.commands import tasks as claims
from conductor_app.taskcluster.commands import tasks as task_actions
from conductor_app.taskcluster.commands import tasks as task_commands
from conductor_app.taskcluster.commands.groups import seal_group
from conductor_app.taskcluster.core.snapshot import ATTEMPT_RESOLUTIONS
from conductor_app.taskcluster.models import Dependency, StandaloneTask, TaskGroup
from tests.taskcluster.conftest import LINUX, new_id

from ..runs.test_parallel import at_once

pytestmark = pytest.mark.django_db(transaction=True)

HOUR_MS = 3_600_000
RETRIES = ("retry", "task-retry")
VERBS = ("claim", "claim", "completed", "failed", "worker-shutdown", "intermittent-task", "malformed-payload", "renew")
STEERING = ("rerun", "cancel", "schedule", "cancel group", "prioritize group", "expire")
ROWS = (Attempt, StandaloneTask, PulseMessage, Dependency, Failure)


@pytest.fixture(autouse=True)
def claims_without_waiting(monkeypatch):
    monkeypatch.setattr(claims, "CLAIM_WAIT_SECONDS", 0.0)


def new_task(clock, **fields) -> task_commands.NewTask:
    id = new_id()
    facts = {"id": id, "group_id": id, "scheduler_id": "-", "project_id": "none", "queue": LINUX, "priority": 1}
    moments = {"deadline_at": clock.now() + HOUR_MS, "expires_at": clock.now() + 2 * HOUR_MS}
    rest = {"retries": 2, "requires": (), "accepts_failure": False, "tags": {}, "routes": (), "name": "n"}
    return task_commands.NewTask(**{**facts, **moments, **rest, "definition": {}, **fields})


def create(clock, **fields) -> str:
    return task_commands.create_task(new_task(clock, **fields)).id


def validation_errors(task_id: str) -> list[str]:
    """Return all violated invariants of a task's rows."""
    row, attempts = (
        StandaloneTask.objects.select_related("task").get(pk=task_id),
        Attempt.objects.filter(task_id=task_id),
    )
    runs, task = list(attempts.order_by("number")), row.task
    retries, is_rerun = sum(run.cause in RETRIES for run in runs), any(run.cause == "rerun" for run in runs)
    wrong = {
        "a number is missing": [run.number for run in runs] != list(range(len(runs))),
        "an earlier run is open": any(run.ended_at is None for run in runs[:-1]),
        "it does not name its last run": task.attempt_id != (runs[-1].id if runs else ""),
        "its state is not its last run's": (task.status == "ACTIVE") != bool(runs and runs[-1].ended_at is None),
        "retries are not counted": not is_rerun and row.retries - retries != row.retries_left,
    }
    found = [validation_error for validation_error, is_so in wrong.items() if is_so]
    for last, following in pairwise(runs):
        if following.cause not in ("rerun", ATTEMPT_RESOLUTIONS[last.reason].retried_as):
            found.append(f"{following.cause} after {last.reason}")
    return found + told_wrongly(task_id, runs)


def told_wrongly(task_id: str, runs: list[Attempt]) -> list[str]:
    """Return the errors in the task's messages: each run is announced in the order of its transitions, each resolution
    once.
    """
    messages = list(PulseMessage.objects.filter(task_id=task_id).order_by("id"))
    order = {"task-pending": 0, "task-running": 1, "task-completed": 2, "task-failed": 2, "task-exception": 2}
    found = []
    for run in runs:
        of_run = [each for each in messages if each.payload.get("runId") == run.number]
        places = [order[each.name] for each in of_run if each.name in order]
        found += [f"run {run.number} is published as {places}"] if places != sorted(places) else []
        found += [f"run {run.number} was never published as running"] if run.claimed_at and 1 not in places else []
    ends = [each for each in messages if order.get(each.name) == 2]
    is_final = Task.objects.get(pk=task_id).status in TASK.final
    return found + (["its end was not published"] if is_final and not ends else [])


def test_every_attempt_is_claimed_exactly_one_time(clock):
    for _ in range(40):
        create(clock)

    taken = at_once(lambda number: claims.claim_tasks(LINUX, "here", f"w{number}", 4), 16)

    ids = [claimed.attempt.id for found in taken for claimed in found]
    rest = claims.claim_tasks(LINUX, "here", "last", 32)
    assert len(ids) + len(rest) == len({*ids, *(claimed.attempt.id for claimed in rest)}) == 40


def test_concurrent_creations_of_a_task_create_it_one_time(clock):
    new = new_task(clock)

    at_once(lambda number: task_commands.create_task(new), 10)

    assert Attempt.objects.filter(task_id=new.id).count() == 1
    assert TaskGroup.objects.count() == 1


def test_an_unscheduled_task_that_is_canceled_by_many_gets_one_run(clock):
    first = create(clock)
    id = create(clock, requires=(first,))

    at_once(lambda number: task_actions.apply_action("cancel", id, "olga"), 10)

    assert list(Attempt.objects.filter(task_id=id).values_list("cause", "reason")) == [("exception", "canceled")]


def test_a_task_is_unblocked_if_its_dependencies_end_during_its_creation(clock):
    firsts = [create(clock, group_id=new_id()) for _ in range(6)]
    held = {claimed.standalone.id for claimed in claims.claim_tasks(LINUX, "here", "w", 32)}
    assert held == set(firsts)
    waiting = [new_task(clock, requires=tuple(firsts)) for _ in range(6)]

    def act(number: int) -> None:
        if number % 2:
            task_commands.create_task(waiting[number // 2])
        else:
            task_commands.report_task(firsts[number // 2], 0, "completed")

    at_once(act, 12)
    sweeps.sweep_once()

    assert {Task.objects.get(pk=new.id).status for new in waiting} == {"ACTIVE"}
    assert not Message.objects.exists()


def act(id: str, verb: str, number: int, worker: str, group: str) -> None:
    """Perform one action of a worker, an operator or a timer; it may be rejected."""
    match verb:
        case "cancel group":
            group_commands.cancel_group(group, "olga")
        case "prioritize group":
            group_commands.prioritize_group(group, 1 + number, "olga")
        case "expire":
            expiry.delete_expired_tasks(2)
        case "claim":
            claims.claim_tasks(LINUX, "here", worker, 1)
        case "renew":
            task_commands.renew_lease(id, number)
        case "rerun" | "cancel" | "schedule":
            task_actions.apply_action(verb, id, "olga")
        case _:
            task_commands.report_task(id, number, verb)


@pytest.mark.parametrize("seed", range(4))
def test_the_invariants_hold_under_concurrent_requests(clock, seed, monkeypatch):
    monkeypatch.setattr(group_commands, "WAITED_FOR", 2)
    group = new_id()
    firsts = [create(clock, group_id=group) for _ in range(3)]
    more = {"requires": tuple(firsts), "accepts_failure": True, "group_id": group}
    ids = [*firsts, *(create(clock, **more) for _ in range(3))]
    expired = [create(clock, group_id=group, expires_at=clock.now() - HOUR_MS) for _ in range(2)]
    seal_group(group, "ana")

    def live(worker: int) -> Counter:
        chance, done = random.Random(seed * 1000 + worker), Counter()
        for _ in range(15):
            verb = chance.choice((*VERBS, *VERBS, *STEERING))
            try:
                act(chance.choice([*ids, *expired]), verb, chance.randrange(3), f"w{worker}", group)
                done["done"] += 1
            except RequestRefused as refused:
                done[type(refused).__name__] += 1
        return done

    at_once(live, 6)
    clock.advance(seconds=1300)
    while sweeps.sweep_once():
        pass

    assert {id: found for id in ids if (found := validation_errors(id))} == {}
    assert not Attempt.objects.filter(status="LEASED").exists()
    clock.advance(seconds=3600)
    while sweeps.sweep_once():
        pass
    expiry.delete_expired_tasks(10)
    assert not Task.objects.open().exists()
    assert {id: found for id in ids if (found := validation_errors(id))} == {}
    assert PulseMessage.objects.filter(task_id="", group_id=group, name="task-group-resolved").exists()
    assert not Message.objects.exists()
    for left in (Task.objects.filter(pk__in=expired), *(kind.objects.filter(task_id__in=expired) for kind in ROWS)):
        assert not left.exists(), left


def test_a_group_is_canceled_while_others_work_in_it(clock):
    group = new_id()
    ids = [create(clock, group_id=group) for _ in range(12)]
    seal_group(group, "ana")

    def live(number: int) -> list[str]:
        if number < 2:
            return group_commands.cancel_group(group, "olga")
        for claimed in claims.claim_tasks(LINUX, "here", f"w{number}", 2):
            try:
                task_commands.report_task(claimed.standalone.id, 0, "completed")
            except RequestRefused:
                continue
        return []

    canceled = [id for found in at_once(live, 6) for id in found]

    assert len(canceled) == len(set(canceled))
    assert set(canceled) == set(Attempt.objects.filter(reason="canceled").values_list("task_id", flat=True))
    assert {id: found for id in ids if (found := validation_errors(id))} == {}


def test_a_resolved_group_is_published_if_its_last_tasks_end_concurrently(clock):
    group = new_id()
    for _ in range(8):
        create(clock, group_id=group)
    held = claims.claim_tasks(LINUX, "here", "w", 8)

    at_once(lambda number: task_commands.report_task(held[number].standalone.id, 0, "completed"), 8)
    clock.advance(seconds=2)
    while sweeps.sweep_once():
        pass

    assert PulseMessage.objects.filter(group_id=group, name="task-group-resolved").exists()
    assert not Message.objects.exists()
