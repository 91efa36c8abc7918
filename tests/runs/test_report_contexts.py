"""A report is decided from the context of its attempt, with the same result as from the whole run."""

import pytest

from conductor_app.runs.models import Run
from tests.hypothesis_profile import seeds
from tests.runs.random_workers import RandomWorkers

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


@pytest.mark.parametrize("seed", seeds(0, 12))
def test_partial_and_complete_snapshots_lead_to_the_same_decisions(clock, seed):
    chance = RandomWorkers(clock, seed)

    chance.live(steps=30)
    chance.finish()

    assert chance.scenario.row.ended_at
    assert Run.objects.filter(name="cleanup").count() == chance.bad_ends


@pytest.mark.parametrize("seed", seeds(100, 112))
def test_partial_and_complete_snapshots_agree_after_skips_and_jumps(clock, seed):
    chance = RandomWorkers(clock, seed, detours=0.8)

    chance.live(steps=30)
    chance.finish()

    assert chance.scenario.row.ended_at
