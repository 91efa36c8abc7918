"""The delay before the next attempt (execution §3.1)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core.definition import EXPONENTIAL, FIXED, LINEAR, Policy
from conductor_app.core.retry_backoff import MAX_SECONDS, delay_seconds, jitter_ms

SIXTY = Policy(logic=FIXED, delay_seconds=60)
GROWING = Policy(logic=LINEAR, delay_seconds=2, scale=2)
DOUBLING = Policy(logic=EXPONENTIAL, delay_seconds=2)
SCALED = replace(DOUBLING, scale=3)


@pytest.mark.parametrize(
    ("policy", "delays"),
    [
        pytest.param(SIXTY, [60, 60, 60], id="fixed"),
        pytest.param(GROWING, [4, 8, 12], id="linear grows by the delay times the scale"),
        pytest.param(DOUBLING, [2, 4, 8], id="exponential doubles without a factor"),
        pytest.param(SCALED, [6, 18, 54], id="exponential with a factor above 1"),
        pytest.param(replace(SIXTY, max_delay_seconds=45), [45, 45, 45], id="the cap holds for fixed delays too"),
        pytest.param(replace(GROWING, max_delay_seconds=9), [4, 8, 9], id="linear is capped"),
        pytest.param(replace(DOUBLING, max_delay_seconds=5), [2, 4, 5], id="exponential is capped"),
        pytest.param(replace(SIXTY, delay_seconds=0), [0, 0, 0], id="no delay"),
        pytest.param(replace(DOUBLING, delay_seconds=0), [0, 0, 0], id="nothing doubled is nothing"),
    ],
)
def test_the_delays_after_the_first_three_failures(policy, delays):
    assert [delay_seconds(policy, number) for number in range(3)] == delays


@pytest.mark.parametrize("policy", [GROWING, DOUBLING, SCALED], ids=["linear", "doubling", "scaled"])
def test_a_delay_never_exceeds_the_integers_of_clients(policy):
    assert delay_seconds(replace(policy, delay_seconds=10**9), 1000) == MAX_SECONDS == 2**31 - 1


@given(most=st.integers(0, 100_000), share=st.floats(0, 1, exclude_max=True))
def test_jitter_is_within_its_bounds(most, share):
    assert 0 <= jitter_ms(Policy(jitter_ms=most), share) <= most


def test_jitter_can_equal_its_bounds():
    policy = Policy(jitter_ms=10)

    assert {jitter_ms(policy, share / 1000) for share in range(1000)} == set(range(11))
