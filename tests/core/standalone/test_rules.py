"""What follows from the end of an attempt, of a lease and of a deadline."""

import pytest

from conductor_app.core.standalone import commands, reports
from conductor_app.core.standalone.decide import apply_command
from conductor_app.core.standalone.effects import PublishMessage, PublishResolution
from conductor_app.core.standalone.resolutions import ATTEMPT_RESOLUTIONS
from tests.core.standalone.simulated_task import DEADLINE_MS, GRACE_MS, LEASE_MS, StandaloneTaskInMemory


def told(life: StandaloneTaskInMemory, command) -> list:
    """What others are told because of a command, and what waits for the task."""
    effects = apply_command(life.standalone, command, life.now).effects
    return [
        (each.about, each.number) if isinstance(each, PublishMessage) else each.reason
        for each in effects
        if isinstance(each, PublishMessage | PublishResolution)
    ]


@pytest.mark.parametrize(
    ("reason", "told_of_it"),
    [
        ("completed", [("completed", 0), "completed"]),
        ("failed", [("failed", 0), "failed"]),
        ("malformed-payload", [("exception", 0), "exception"]),
        ("worker-shutdown", [("retried", 0), ("pending", 1)]),
        ("intermittent-task", [("retried", 0), ("pending", 1)]),
    ],
)
def test_an_end_is_published_and_resolves_the_task_unless_it_is_retried(reason, told_of_it):
    life = StandaloneTaskInMemory(retries=1)
    life.claimed()

    assert told(life, reports.report_attempt(0, reason)) == told_of_it


@pytest.mark.parametrize("reason", sorted(ATTEMPT_RESOLUTIONS))
def test_without_retries_every_end_is_the_tasks(reason):
    life = StandaloneTaskInMemory(retries=0)
    life.claimed()

    life.apply_command_and_check(reports.report_attempt(0, reason))

    assert not life.standalone.is_open
    assert len(life.runs) == 1


def test_an_expired_lease_is_retried_when_it_is_due():
    life = StandaloneTaskInMemory(retries=1)
    life.claimed()

    life.later(LEASE_MS - 1)
    assert len(life.runs) == 1
    life.later(1)

    assert life.runs == [("EXPIRED", "scheduled", "claim-expired"), ("PENDING", "retry", "")]


def test_a_lease_that_is_lost_after_the_deadline_is_no_business_of_its_own():
    life = StandaloneTaskInMemory(retries=1)
    life.later(DEADLINE_MS - 1)
    life.claimed()

    life.later(LEASE_MS + 1)
    assert life.standalone.attempt.status == "LEASED"
    life.later(GRACE_MS - LEASE_MS)

    assert life.runs == [("EXPIRED", "scheduled", "deadline-exceeded")]


def test_due_timers_are_handled_before_a_command():
    life = StandaloneTaskInMemory()
    life.claimed()
    life.now += DEADLINE_MS + GRACE_MS

    effects = apply_command(life.standalone, commands.cancel_if_open, life.now).effects

    assert [each.reason for each in effects if isinstance(each, PublishResolution)] == ["exception"]
