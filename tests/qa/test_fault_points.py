"""Fault points: what the product names, and what the hooks of the tests do at them."""

import os
import re
import time

import pytest

from conductor_app.utils import fault_points
from conductor_app.utils.fault_points import POINTS, reach, set_handler
from qa.faults.product_hooks import FaultPointHandler, SteppedClock
from tests.architecture.modules import APP

REACHED = re.compile(r'fault_points\.reach\("([\w-]+)"\)')


def test_the_product_reaches_exactly_the_listed_points():
    reached = {point for path in APP.rglob("*.py") for point in REACHED.findall(path.read_text())}

    assert reached == set(POINTS)


def test_a_server_has_no_handler():
    assert fault_points._handler.value is None


def test_only_the_first_process_at_an_armed_point_gets_the_signal(tmp_path, monkeypatch):
    sent = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    (tmp_path / "claimed").write_text("9")
    set_handler(FaultPointHandler(tmp_path))
    try:
        for point in ("reported", "claimed", "claimed"):
            reach(point)
    finally:
        set_handler(None)

    assert sent == [(os.getpid(), 9)]


@pytest.mark.parametrize("offset", [-10_000, 1_500])
def test_a_clock_is_stepped_by_its_file(tmp_path, offset):
    path = tmp_path / "web1"
    path.write_text(str(offset))

    assert SteppedClock(path)() / 1e9 == pytest.approx(time.time() + offset / 1000, abs=0.5)
