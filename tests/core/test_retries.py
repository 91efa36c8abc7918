"""Delay before the next attempt (execution §3.1)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core.definition import EXPONENTIAL, FIXED, LINEAR, Policy
from conductor_app.core.rules.retries_and_timeouts import MAX_SECONDS, delay_seconds, jitter_ms

FIXED_60 = Policy(logic=FIXED, delay_seconds=60)
LINEAR_2 = Policy(logic=LINEAR, delay_seconds=2, scale=2)
EXPONENTIAL_2 = Policy(logic=EXPONENTIAL, delay_seconds=2)
EXPONENTIAL_3 = replace(EXPONENTIAL_2, scale=3)


@pytest.mark.parametrize(
    ("policy", "delays"),
    [
        pytest.param(FIXED_60, [60, 60, 60], id="fixed"),
        pytest.param(LINEAR_2, [4, 8, 12], id="linear grows by the delay times the scale"),
        pytest.param(EXPONENTIAL_2, [2, 4, 8], id="exponential doubles without a factor"),
        pytest.param(EXPONENTIAL_3, [6, 18, 54], id="exponential with a factor above 1"),
        pytest.param(replace(FIXED_60, max_delay_seconds=45), [45, 45, 45], id="fixed with a maximum"),
        pytest.param(replace(LINEAR_2, max_delay_seconds=9), [4, 8, 9], id="linear with a maximum"),
        pytest.param(replace(EXPONENTIAL_2, max_delay_seconds=5), [2, 4, 5], id="exponential with a maximum"),
        pytest.param(replace(FIXED_60, delay_seconds=0), [0, 0, 0], id="fixed without a delay"),
        pytest.param(replace(EXPONENTIAL_2, delay_seconds=0), [0, 0, 0], id="exponential without a delay"),
    ],
)
def test_the_delays_after_the_first_three_failures(policy, delays):
    assert [delay_seconds(policy, number) for number in range(3)] == delays


@pytest.mark.parametrize("policy", [LINEAR_2, EXPONENTIAL_2, EXPONENTIAL_3], ids=["linear", "doubling", "scaled"])
def test_a_delay_never_exceeds_32_bits(policy):
    assert delay_seconds(replace(policy, delay_seconds=10**9), 1000) == MAX_SECONDS == 2**31 - 1


@given(most=st.integers(0, 100_000), fraction=st.floats(0, 1, exclude_max=True))
def test_jitter_is_within_its_bounds(most, fraction):
    assert 0 <= jitter_ms(Policy(jitter_ms=most), fraction) <= most


def test_jitter_can_equal_its_bounds():
    policy = Policy(jitter_ms=10)

    assert {jitter_ms(policy, fraction / 1000) for fraction in range(1000)} == set(range(11))
