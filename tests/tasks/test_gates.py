"""The claim and the page read the same gate: its SQL holds for an attempt exactly while its verdict is open."""

import pytest

from conductor_app.tasks.gates import GATES
from conductor_app.tasks.models import QueueHold
from conductor_app.tasks.queries.waiting import verdicts_on
from conductor_app.tasks.store import find_candidates
from tests.builders import policy, step
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting(clock):
    return Scenario(clock, step("ship", policy=policy(retries=1, delay_seconds=60))).task("ship")


def verdicts(attempt, clock):
    found = {each.gate: each.is_open for each in verdicts_on(attempt, clock.now())}
    return {gate.name: found[gate.name] for gate in GATES}


def is_candidate(attempt, clock):
    return [each.id for each in find_candidates("ship", "worker", clock.now(), 10)] == [attempt.pk]


def change(attempt, **fields):
    type(attempt).objects.filter(pk=attempt.pk).update(**fields)
    attempt.refresh_from_db()


def test_an_attempt_that_passes_all_gates_is_a_candidate(waiting, clock):
    assert all(verdicts(waiting, clock).values())
    assert is_candidate(waiting, clock)


@pytest.mark.parametrize("ahead", [-1, 0, 1])
def test_a_delay_closes_the_gate_to_its_last_millisecond(waiting, clock, ahead):
    change(waiting, visible_at=clock.now() + ahead)

    assert verdicts(waiting, clock)["due"] is is_candidate(waiting, clock) is (ahead <= 0)


@pytest.mark.parametrize("ahead", [-1, 0, 1])
def test_a_deadline_closes_the_gate_from_its_first_millisecond(waiting, clock, ahead):
    change(waiting, ends_at=clock.now() + ahead)

    assert verdicts(waiting, clock)["deadline"] is is_candidate(waiting, clock) is (ahead > 0)


@pytest.mark.parametrize("ahead", [-1, 0, 1])
def test_a_pause_closes_the_gate_to_its_end(waiting, clock, ahead):
    QueueHold.objects.create(queue="ship", until_at=clock.now() + ahead, held_at=clock.now())

    assert verdicts(waiting, clock)["queue"] is is_candidate(waiting, clock) is (ahead <= 0)


def test_every_gate_has_a_condition_or_a_limit_except_those_that_delay():
    assert [gate.name for gate in GATES if not gate.condition and not gate.usage] == [
        "run_slot",
        "breakpoint",
        "budget",
    ]
