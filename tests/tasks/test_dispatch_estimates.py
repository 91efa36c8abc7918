"""Estimated times of dispatch: they agree with the gates and never promise more than a limit allows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core.snapshot import NEVER
from conductor_app.tasks.gates import GateFacts
from conductor_app.tasks.queries.waiting import cap_rate, earliest_dispatch_ms, estimate_dispatch_ms
from tests.hypothesis_profile import property_settings

NOW = 1_000_000
LIMITED = {"rate_count": 2, "rate_seconds": 120}


def facts(**fields):
    return GateFacts(**{"now": NOW, "visible_at": NOW, **fields})


def test_without_gates_the_estimate_is_the_place_divided_by_the_rate():
    assert estimate_dispatch_ms(3, 0.5, facts()) == 6_000


def test_a_closed_rate_limit_delays_the_first_in_the_queue_until_it_opens():
    limited = facts(**LIMITED, starts=2, start_times=(NOW - 44_800, NOW - 30_000))

    assert limited.rate_reopens_at == NOW + 75_200
    assert estimate_dispatch_ms(1, 1.5 / 60, limited) == 75_200


@pytest.mark.parametrize(("place", "delay"), [(1, 0), (2, 20_000), (3, 120_000), (4, 140_000), (5, 240_000)])
def test_each_start_frees_its_slot_of_the_rate_limit_after_one_window(place, delay):
    assert earliest_dispatch_ms(place, facts(**LIMITED, starts=1, start_times=(NOW - 100_000,))) == delay


def test_a_rate_above_the_limit_is_capped():
    assert cap_rate(1.5 / 60, facts(**LIMITED)) == 1 / 60
    assert cap_rate(0.5 / 60, facts(**LIMITED)) == 0.5 / 60
    assert cap_rate(None, facts(**LIMITED)) is None


def test_a_delay_and_a_pause_of_the_queue_are_waited_for():
    assert estimate_dispatch_ms(1, 10.0, facts(visible_at=NOW + 5_000)) == 5_000
    assert estimate_dispatch_ms(1, 10.0, facts(queue_held_until=NOW + 9_000)) == 9_000


@pytest.mark.parametrize("gate", [{"queue_held_until": NEVER}, {"ends_at": NOW}, {"is_run_held": True}])
def test_a_gate_that_opens_at_an_unknown_time_has_no_estimate(gate):
    assert estimate_dispatch_ms(1, 10.0, facts(**gate)) is None


@property_settings(100)
@given(
    st.integers(1, 5),
    st.lists(st.integers(0, 59_999), max_size=8).map(sorted),
    st.integers(1, 30),
)
def test_the_estimates_of_a_rate_limit_are_those_of_a_simulated_queue(limit, ages, place):
    starts = [NOW - age for age in reversed(ages)][-limit:]
    for _ in range(place):
        newest = starts[-limit:]
        starts.append(NOW if len(newest) < limit else max(NOW, newest[0] + 60_000))
    given_facts = facts(
        rate_count=limit,
        rate_seconds=60,
        starts=len(ages),
        start_times=tuple(NOW - age for age in reversed(ages))[-limit:],
    )

    assert earliest_dispatch_ms(place, given_facts) == starts[-1] - NOW
