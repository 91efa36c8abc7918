"""Consequences of the end of an attempt, of a lease and of a deadline."""

import pytest

from conductor_app.taskcluster.core import decisions
from conductor_app.taskcluster.core.decisions import apply_command
from conductor_app.taskcluster.core.snapshot import ATTEMPT_RESOLUTIONS, PublishMessage, PublishResolution
from tests.taskcluster.simulated_task import DEADLINE_MS, GRACE_MS, LEASE_MS, StandaloneTaskInMemory


def published_effects(task: StandaloneTaskInMemory, command) -> list:
    """Return the messages and the resolution that the command publishes."""
    effects = apply_command(task.snapshot, command, task.now).effects
    return [
        (each.about, each.number) if isinstance(each, PublishMessage) else each.reason
        for each in effects
        if isinstance(each, PublishMessage | PublishResolution)
    ]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("completed", [("completed", 0), "completed"]),
        ("failed", [("failed", 0), "failed"]),
        ("malformed-payload", [("exception", 0), "exception"]),
        ("worker-shutdown", [("retried", 0), ("pending", 1)]),
        ("intermittent-task", [("retried", 0), ("pending", 1)]),
    ],
)
def test_an_end_is_published_and_resolves_the_task_unless_it_is_retried(reason, expected):
    task = StandaloneTaskInMemory(retries=1)
    task.claim()

    assert published_effects(task, decisions.report_attempt(0, reason)) == expected


@pytest.mark.parametrize("reason", sorted(ATTEMPT_RESOLUTIONS))
def test_without_retries_the_end_of_an_attempt_resolves_its_task(reason):
    task = StandaloneTaskInMemory(retries=0)
    task.claim()

    task.apply_command_and_check(decisions.report_attempt(0, reason))

    assert not task.snapshot.is_open
    assert len(task.attempt_results) == 1


def test_an_expired_lease_is_retried_when_it_is_due():
    task = StandaloneTaskInMemory(retries=1)
    task.claim()

    task.later(LEASE_MS - 1)
    assert len(task.attempt_results) == 1
    task.later(1)

    assert task.attempt_results == [("EXPIRED", "scheduled", "claim-expired"), ("PENDING", "retry", "")]


def test_a_lease_that_expires_after_the_deadline_ends_with_the_deadline():
    task = StandaloneTaskInMemory(retries=1)
    task.later(DEADLINE_MS - 1)
    task.claim()

    task.later(LEASE_MS + 1)
    assert task.snapshot.attempt.status == "LEASED"
    task.later(GRACE_MS - LEASE_MS)

    assert task.attempt_results == [("EXPIRED", "scheduled", "deadline-exceeded")]


def test_due_timers_are_handled_before_a_command():
    task = StandaloneTaskInMemory()
    task.claim()
    task.now += DEADLINE_MS + GRACE_MS

    effects = apply_command(task.snapshot, decisions.cancel_if_open, task.now).effects

    assert [each.reason for each in effects if isinstance(each, PublishResolution)] == ["exception"]
