"""A stopping process releases the tasks of its built-in workers."""

import pytest

from conductor_app.runs.models import Attempt
from conductor_app.system_tasks import registry
from conductor_app.system_tasks.registry import WorkResult, workers
from conductor_app.tasks.commands.claims import claim_tasks
from tests.scenario import Scenario, run_commit_hooks

pytestmark = pytest.mark.django_db
CALL = {"name": "call", "taskReferenceName": "call", "type": "HTTP", "inputParameters": {"uri": "http://x/"}}


@pytest.mark.parametrize(("outcome", "status"), [("COMPLETED", "COMPLETED"), ("FAILED", "RUNNING")])
def test_tasks_in_progress_are_released_and_only_late_successes_accepted(clock, monkeypatch, outcome, status):
    scenario = Scenario(clock, CALL)
    seen = []

    def perform_while_the_process_is_told_to_stop(*_):
        with run_commit_hooks():
            assert registry.release_unfinished() == 1
        row = Attempt.objects.get(run_id=scenario.id)
        seen.append((row.status, row.number, row.visible_at <= clock.now()))
        return WorkResult(outcome, {"late": True})

    monkeypatch.setattr(workers()["HTTP"], "work_on", perform_while_the_process_is_told_to_stop)
    with run_commit_hooks():
        [attempt] = claim_tasks("HTTP", worker=registry.WORKER_ID, wait_ms=0)
        registry.run_attempt(attempt)

    assert seen == [("PENDING", 0, True)]
    assert scenario.status == status


def test_without_tasks_in_progress_nothing_is_released(clock):
    Scenario(clock, CALL)
    with run_commit_hooks():
        claim_tasks("HTTP", worker="another process", wait_ms=0)

        assert registry.release_unfinished() == 0
    assert Attempt.objects.get().status == "LEASED"
