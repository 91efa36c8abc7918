"""Optimistic concurrency: a decision based on a stale state is not written."""

import pytest
from django.db import transaction

from conductor_app.core import commands
from conductor_app.core.decide import Report, RevisionInfo, apply_command, apply_report
from conductor_app.core.decision_context import Command
from conductor_app.runs.commands.change import RunCommand, change_run
from conductor_app.runs.store import loading as store
from conductor_app.runs.store import writing as run_writer
from conductor_app.runs.store.writing import StaleRow, StatementBatch
from conductor_app.utils import clock as product_clock
from tests.builders import policy, step
from tests.runs.report_contexts import decide_command
from tests.scenario import ACTOR, Scenario

pytestmark = pytest.mark.django_db


def save_after(scenario: Scenario, command: Command, meanwhile) -> None:
    """Decide, let a concurrent change happen, then write."""
    with transaction.atomic():
        before = store.load_for_update(scenario.id)
        decision, _ = decide_command(scenario.id, None, command)
        meanwhile()
        writes = StatementBatch()
        run_writer.add_changes(writes, before, decision, RevisionInfo(product_clock.now(), ACTOR))
        run_writer.send(writes)


def test_a_concurrently_changed_run_is_not_written(clock):
    scenario = Scenario(clock, step("a"))

    with pytest.raises(StaleRow):
        save_after(scenario, commands.pause_run, scenario.terminate)


@pytest.mark.parametrize("retries", [0, 1])
def test_a_concurrently_claimed_attempt_is_not_written(clock, retries):
    scenario = Scenario(clock, step("a", policy=policy(retries=retries)))
    said = apply_report(scenario.task("a").id, Report("FAILED"))

    with pytest.raises(StaleRow):
        save_after(scenario, said, scenario.worker("a").polls)


def test_a_change_based_on_stale_rows_is_decided_again(clock):
    scenario = Scenario(clock, step("a", policy=policy(retries=1)))
    attempt, tries = scenario.task("a").id, []
    said = apply_report(attempt, Report("FAILED", reason="no luck"))

    def command(run, ctx, now):
        tries.append(run.task_of_attempt(attempt).attempt.status)
        return said(run, ctx, now)

    def poll_before_the_first_write(now):
        if len(tries) == 1:
            scenario.worker("a").polls()

    change_run(
        RunCommand(scenario.id, command, ACTOR, attempts=[attempt], within_transaction=poll_before_the_first_write)
    )

    assert (len(tries), tries[0]) == (2, "PENDING")
    assert tries[-1] in ("PENDING", "LEASED")
    assert scenario.attempts("a") == ["FAILED", "SCHEDULED"]


def test_deciding_from_stored_rows_produces_no_further_changes(clock):
    scenario = Scenario(clock, step("a"), step("b"))
    scenario.worker("a").completes()

    assert apply_command(store.load_run(scenario.id), commands.no_command, {}, product_clock.now()).effects == ()
