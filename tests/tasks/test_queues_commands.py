"""Queue operations: pause and resume, drain workers, reorder and move pending tasks."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.core.errors import Conflict, Invalid, NotFound
from conductor_app.definitions import commands as definition_commands
from conductor_app.processes import sweep_loop, sweeps
from conductor_app.runs.models import Attempt, HistoryEntry
from conductor_app.tasks.commands import queues as queue_commands
from conductor_app.tasks.models import MinuteCount
from conductor_app.tasks.queries.queues import queue_position
from conductor_app.tasks.queries.waiting import closed_gates
from tests.builders import policy, simple, step
from tests.runs.test_statements import Counted
from tests.scenario import ACTOR, Scenario, explain_attempt, run_commit_hooks

pytestmark = pytest.mark.django_db


def do(command, *given, **more) -> None:
    with run_commit_hooks():
        command(*given, ACTOR, **more)


def obstacles(attempt: Attempt) -> dict[str, str]:
    return {verdict.gate: verdict.sentence for verdict in closed_gates(explain_attempt(attempt.pk))}


def test_a_paused_queue_dispatches_no_attempt_and_names_who_paused_it(clock):
    scenario = Scenario(clock, step("ship"))
    scenario.worker("other").polls()
    do(queue_commands.pause_queue, "ship", reason="the printer burns")

    assert scenario.worker("ship").polls() == []
    assert obstacles(scenario.task("ship")) == {"queue": "The queue was paused by ann: the printer burns."}

    do(queue_commands.resume_queue, "ship", reason="it is out")
    assert scenario.worker("ship").polls() == ["ship"]
    assert list(AuditEntry.objects.filter(object_type="queue").order_by("id").values_list("action", "reason")) == [
        ("pause", "the printer burns"),
        ("resume", "it is out"),
    ]


def test_a_pause_until_a_time_ends_automatically(clock):
    scenario = Scenario(clock, step("ship"))
    do(queue_commands.pause_queue, "ship", until_at=clock.now() + 60_000)

    assert scenario.worker("ship").polls() == []
    assert "It resumes in 60.0 s" in obstacles(scenario.task("ship"))["queue"]
    clock.advance(seconds=60)
    assert scenario.worker("ship").polls() == ["ship"]


def test_a_pause_affects_only_its_queue_and_limited_tasks_too(clock):
    scenario = Scenario(clock, simple("ship"), tasks=[policy("ship", concurrent_limit=5)])
    do(queue_commands.pause_queue, "east:ship")
    assert "queue" not in obstacles(scenario.task("ship"))
    do(queue_commands.pause_queue, "ship")

    assert scenario.worker("ship").polls() == []
    do(queue_commands.resume_queue, "ship")
    assert scenario.worker("ship").polls() == ["ship"]


def test_claimed_attempts_continue_in_a_paused_queue(clock):
    scenario = Scenario(clock, step("ship"))
    scenario.worker("ship").polls()
    do(queue_commands.pause_queue, "ship")

    assert scenario.worker("ship").completes()
    assert scenario.status == "COMPLETED"


def test_a_drained_worker_gets_no_attempts_and_others_do(clock):
    scenario = Scenario(clock, step("a"), step("b"))
    scenario.worker("a", "w1").polls()
    do(queue_commands.drain_worker, "w1", reason="its host is replaced")
    scenario.worker("a", "w1").completes()

    assert scenario.worker("b", "w1").polls() == []
    assert obstacles(scenario.task("b")) == {"polled": "Only draining workers poll queue `b`."}
    assert scenario.worker("b", "w2").polls() == ["b"]
    do(queue_commands.undrain_worker, "w1")
    assert AuditEntry.objects.filter(object_type="worker").count() == 2


def test_pauses_cost_a_poll_no_statement(clock):
    scenario = Scenario(clock, step("a"))
    do(queue_commands.pause_queue, "elsewhere")

    with Counted() as counted:
        assert scenario.worker("a").polls() == ["a"]

    assert counted.count <= 3, counted.statements


def three(clock) -> tuple[Scenario, list[Attempt]]:
    """Start three runs that wait for the same worker."""
    scenario = Scenario(clock, step("ship"))
    runs = [scenario]
    for _ in range(2):
        clock.advance(seconds=1)
        runs.append(scenario.starts("order"))
    return scenario, [run.task("ship") for run in runs]


def test_attempts_with_higher_priority_are_dispatched_first(clock):
    scenario, (first, _, third) = three(clock)

    do(queue_commands.prioritize, third.pk, 7, reason="a good customer")

    assert scenario.worker("ship").polls() and scenario.worker("ship").held.id == third.pk
    assert HistoryEntry.objects.filter(run_id=third.run_id).last().effects == [
        {"effect": "RequeueAttempt", "task": "ship", "priority": 7}
    ]
    with pytest.raises(Invalid):
        queue_commands.prioritize(first.pk, 100, ACTOR)


def test_an_attempt_moved_to_the_front_is_dispatched_next(clock):
    scenario, (_, second, third) = three(clock)
    do(queue_commands.prioritize, second.pk, 3)

    do(queue_commands.move_to_front, third.pk)

    assert queue_position(Attempt.objects.get(pk=third.pk), clock.now()).ahead == 0
    scenario.worker("ship").polls()
    assert scenario.worker("ship").held.id == third.pk


def test_a_delayed_retry_moved_to_the_front_is_dispatched_immediately(clock):
    scenario = Scenario(clock, step("ship", policy=policy(retries=1, delay_seconds=600)))
    scenario.worker("ship").fails()
    assert scenario.worker("ship").polls() == []

    do(queue_commands.move_to_front, scenario.task("ship").pk)

    assert scenario.worker("ship").polls() == ["ship"]


def test_an_attempt_can_be_moved_to_another_domain(clock):
    scenario = Scenario(clock, step("ship"))

    do(queue_commands.move_to_domain, scenario.task("ship").pk, "east")
    assert scenario.worker("ship").polls() == []
    assert scenario.worker("ship", domain="east").polls() == ["ship"]

    with pytest.raises(Conflict):
        queue_commands.move_to_domain(scenario.task("ship").pk, "west", ACTOR)


def test_an_attempt_that_is_not_pending_cannot_be_moved(clock):
    with pytest.raises(NotFound):
        queue_commands.move_to_front("nobody", ACTOR)
    with pytest.raises(Conflict):
        queue_commands.resume_queue("ship", ACTOR)
    with pytest.raises(Conflict):
        queue_commands.undrain_worker("w1", ACTOR)
    with pytest.raises(Invalid):
        queue_commands.pause_queue("ship", ACTOR, until_at=clock.now())
    with pytest.raises(Invalid):
        queue_commands.pause_queue(" ", ACTOR)


def test_the_queue_position_follows_the_dispatch_order(clock):
    scenario, attempts = three(clock)
    do(queue_commands.prioritize, attempts[1].pk, 1)
    now = clock.now()

    places = {attempt.pk: queue_position(Attempt.objects.get(pk=attempt.pk), now).ahead for attempt in attempts}
    order = []
    for _ in attempts:
        scenario.worker("ship").held = None
        scenario.worker("ship").polls()
        order.append(scenario.worker("ship").held.id)

    assert sorted(places, key=places.get) == order
    assert queue_position(Attempt.objects.get(pk=order[0]), now) is None


def test_the_dispatch_rate_of_a_queue_estimates_the_waiting_time(clock):
    scenario = Scenario(clock, step("ship"))
    for _ in range(12):
        scenario.worker("ship").completes()
        clock.advance(seconds=5)
        scenario.starts("order")
    scenario.worker("ship").completes()
    scenario.starts("order")
    scenario.starts("order")
    clock.advance(seconds=0.1)
    waiting = scenario.starts("order").task("ship")

    found = queue_position(waiting, clock.now())

    assert found.ahead == 2
    assert found.rate == pytest.approx(12 / 60, rel=0.1)
    assert "Position 3 · 12.0/min" in found.sentence
    counts = MinuteCount.objects.filter(kind="queue", name="ship")
    assert sum(row.done for row in counts) == 12
    assert sum(row.done for row in MinuteCount.objects.filter(kind="worker", name="worker")) == 12
    clock.advance(seconds=180)
    assert queue_position(waiting, clock.now()).rate == pytest.approx(12 / 240, rel=0.1)


@pytest.mark.django_db(transaction=True)
def test_the_counts_of_the_last_tasks_are_written_without_a_further_request(clock):
    scenario = Scenario(clock, step("ship"), name="order")
    scenario.worker("ship").completes()
    watchdog = sweep_loop.SweepWatchdog(lambda horizon: None)
    sweep_loop.watch_once(watchdog)
    clock.advance(seconds=5)

    sweep_loop.watch_once(watchdog)

    assert sum(row.done for row in MinuteCount.objects.filter(kind="queue", name="ship")) == 1


def test_counts_are_stored_for_a_month(clock):
    MinuteCount.objects.create(kind="queue", name="old", at=clock.now() - 32 * 86_400_000)
    MinuteCount.objects.create(kind="queue", name="new", at=clock.now())

    sweeps.prune_finished(100)

    assert [row.name for row in MinuteCount.objects.all()] == ["new"]


def test_a_shut_limit_names_its_holders_and_raising_it_releases(clock):
    scenario = Scenario(clock, simple("ship"), tasks=[policy("ship", concurrent_limit=1)])
    scenario.worker("ship", "w7").polls()
    waiting = scenario.starts("order").task("ship")

    [verdict] = [verdict for verdict in closed_gates(explain_attempt(waiting.pk)) if verdict.gate == "concurrency"]
    assert [(holder.run_id, holder.worker) for holder in verdict.holders] == [(scenario.id, "w7")]

    definition_commands.save_task(policy("ship", concurrent_limit=2), ACTOR)
    assert obstacles(waiting) == {}
    assert scenario.worker("ship", "w8").polls() == ["ship"]


def test_an_exhausted_rate_limit_states_when_it_reopens(clock):
    scenario = Scenario(clock, simple("ship"), tasks=[policy("ship", rate_count=1, rate_seconds=60)])
    scenario.worker("ship").completes()
    clock.advance(seconds=20)
    waiting = scenario.starts("order").task("ship")

    assert "next start is possible in 40.0 s" in obstacles(waiting)["rate"]
    clock.advance(seconds=40)
    assert scenario.worker("ship").polls() == ["ship"]


def test_minutes_older_than_two_days_are_added_up_to_hours(clock):
    hour_at = clock.now() // 3_600_000 * 3_600_000 - 50 * 3_600_000
    for minute in (0, 1, 59):
        MinuteCount.objects.create(kind="queue", name="ship", at=hour_at + minute * 60_000, done=2, busy_ms=100)
    recent = MinuteCount.objects.create(kind="queue", name="ship", at=clock.now() - 60_000, done=1)

    for _ in range(2):
        sweeps.prune_finished(100)

    counts = MinuteCount.objects.order_by("at").values_list("at", "done", "busy_ms")
    assert list(counts) == [(hour_at, 6, 300), (recent.at, 1, 0)]
