"""A report is decided from the neighbourhood of its attempt: that must come to the same as the whole run does."""

import pytest

from conductor_app.models import Run
from tests.engine.chance import RandomWorkers
from tests.tries import seeds

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("seed", seeds(0, 12))
def test_near_view_and_whole_view_agree_and_every_run_ends(clock, seed):
    chance = RandomWorkers(clock, seed)

    chance.live(steps=30)
    chance.finish()

    assert chance.story.row.ended_at
    assert Run.objects.filter(name="cleanup").count() == chance.bad_ends


@pytest.mark.parametrize("seed", seeds(100, 112))
def test_they_agree_about_a_run_that_was_led_off_its_way(clock, seed):
    chance = RandomWorkers(clock, seed, detours=0.8)

    chance.live(steps=30)
    chance.finish()

    assert chance.story.row.ended_at
