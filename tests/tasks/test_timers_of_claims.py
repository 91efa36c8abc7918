"""The next timer that a claim sets in SQL is the one that `core/timers.py` computes from the same attempt."""

import pytest

from conductor_app.core.snapshot import NEVER
from conductor_app.core.timers import next_timer
from conductor_app.runs.models import Attempt
from conductor_app.runs.store.loading import load_run
from tests.builders import policy, step
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db
LIMITS = {"total_seconds": 900, "timeout_seconds": 600, "lease_seconds": 300, "poll_seconds": 120}
RETRIES = {"retries": 2, "delay_seconds": 20}


def check_timer(scenario, *, is_limited):
    [task] = load_run(scenario.id).tasks.values()
    stored = Attempt.objects.get(pk=task.attempt.id)
    assert stored.status == "LEASED"
    assert stored.due_at == next_timer(task.step.policy, task.attempt)
    assert (stored.due_at < NEVER) is is_limited


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param({"lease_seconds": 0}, id="no limit"),
        *(pytest.param({"lease_seconds": 0, limit: seconds}, id=limit) for limit, seconds in LIMITS.items()),
        pytest.param(LIMITS, id="all"),
        pytest.param({**LIMITS, "total_seconds": 200}, id="total first"),
        pytest.param({**LIMITS, "timeout_seconds": 310}, id="task before the second lease ends"),
    ],
)
def test_a_claim_and_the_core_have_the_same_next_timer(clock, limits):
    scenario = Scenario(clock, step("ship", policy=policy(**RETRIES, **limits)))
    worker, is_limited = scenario.worker("ship"), any(limits.get(limit) for limit in LIMITS if limit != "poll_seconds")
    scenario.later(7)
    worker.polls()
    check_timer(scenario, is_limited=is_limited)

    worker.in_progress(callback_seconds=30)
    scenario.later(40)
    worker.polls()
    check_timer(scenario, is_limited=is_limited)

    worker.fails()
    scenario.later(25)
    worker.polls()
    check_timer(scenario, is_limited=is_limited)
