"""Delayed starts: the run exists at once and takes its first step at its start time."""

import pytest

from conductor_app.bulk import commands as bulk_commands
from conductor_app.bulk import executor as bulk_executor
from conductor_app.bulk.commands import BulkRequest
from conductor_app.core.errors import Invalid
from conductor_app.explanations.cause import run_cause
from conductor_app.runs.models import Run
from conductor_app.runs.store import due_rows
from tests.builders import step
from tests.scenario import ACTOR, RunView, Scenario

pytestmark = pytest.mark.django_db

HOUR_MS = 3_600_000


def ahead(clock, *steps, **fields) -> tuple[Scenario, RunView]:
    """Return a run that has started and one that starts an hour later."""
    scenario = Scenario(clock, *(steps or [step("pay")]), **fields)
    return scenario, scenario.starts("order", starts_at=clock.now() + HOUR_MS)


def test_a_scheduled_run_starts_at_its_start_time(clock):
    scenario, later = ahead(clock)
    moment = clock.now() + HOUR_MS
    assert (later.status, later.statuses, due_rows.next_due_moment()) == ("RUNNING", {}, moment)
    assert run_cause(later.row).sentence.endswith("in 1 h")

    scenario.later(seconds=3599)
    assert later.statuses == {}
    scenario.later(seconds=1)

    assert later.is_waiting_for("pay")
    assert later.task("pay").scheduled_at == moment == later.row.created_at


def test_the_timeout_of_a_scheduled_run_counts_from_its_start(clock):
    scenario, later = ahead(clock, timeoutSeconds=60, timeoutPolicy="TIME_OUT_WF")

    scenario.later(seconds=3659)
    assert later.status == "RUNNING"
    scenario.later(seconds=1)

    assert later.status == "TIMED_OUT"


def test_it_is_paused_and_terminated_before_its_start(clock):
    scenario, later = ahead(clock)
    later.pause()
    scenario.later(seconds=3601)
    assert (later.status, later.statuses) == ("PAUSED", {})
    later.resume()
    assert later.is_waiting_for("pay")

    other = scenario.starts("order", starts_at=clock.now() + HOUR_MS)
    other.terminate("not any more")
    scenario.later(seconds=3601)
    assert (other.status, other.statuses) == ("TERMINATED", {})


def test_a_restarted_run_starts_immediately(clock):
    _, later = ahead(clock)
    later.terminate()

    later.restart()

    assert later.is_waiting_for("pay")


def test_a_scheduled_run_uses_no_slot_of_its_limit_before_its_start(clock):
    limit = {"rateLimitConfig": {"rateLimitKey": "one", "concurrentExecLimit": 1}}
    scenario, later = ahead(clock, **limit)
    scenario.worker("pay").completes()
    second = scenario.starts("order")
    assert not second.row.is_held

    scenario.later(seconds=3600)
    assert later.row.is_held
    scenario.worker("pay").completes()

    assert second.status == "COMPLETED"
    assert later.is_waiting_for("pay") and not later.row.is_held


def test_operations_on_many_runs_reach_it_too(clock):
    _, later = ahead(clock)
    bulk_commands.start(BulkRequest("terminate", {"definition": "order", "status": ["RUNNING"]}, rate=1000.0), ACTOR)

    for _ in range(3):
        clock.advance(seconds=1)
        bulk_executor.run_due_operations()

    assert set(Run.objects.values_list("status", flat=True)) == {"TERMINATED"}
    assert later.row.reason


def test_a_past_start_time_means_now_and_a_distant_one_is_refused(clock):
    scenario, _ = ahead(clock)

    assert scenario.starts("order", starts_at=clock.now() - 5).is_waiting_for("pay")
    with pytest.raises(Invalid):
        scenario.starts("order", starts_at=clock.now() + 400 * 24 * HOUR_MS)
