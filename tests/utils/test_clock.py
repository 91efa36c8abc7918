"""Clock of the product, and the clock that tests set."""

import time

from conductor_app.utils import clock as product_clock


def test_time_is_told_in_epoch_milliseconds():
    assert abs(product_clock.now() - time.time() * 1000) < 1000


def test_a_test_moves_time_by_hand(clock):
    began = product_clock.now()

    clock.advance(seconds=1.5)

    assert product_clock.now() - began == 1500
    assert clock.now() == product_clock.now()
