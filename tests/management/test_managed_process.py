"""A child is started again, each time after a longer pause."""

import os
from functools import partial
from tempfile import TemporaryDirectory
from time import sleep

import pytest

from conductor_app.monitoring.queries.health import Liveness
from conductor_app.processes import serving as managed_process
from conductor_app.processes.serving import ManagedProcess

from .server import wait_until


@pytest.fixture
def time(monkeypatch):
    """Return a clock that the test advances."""
    passed = [1000.0]
    monkeypatch.setattr(managed_process, "monotonic", lambda: passed[0])

    def pass_by(seconds):
        passed[0] += seconds

    return pass_by


@pytest.fixture
def log():
    return []


@pytest.fixture
def child(time):
    """Return a child that ends at once with code 3."""
    child = ManagedProcess("web", partial(os._exit, 3))
    child.start()
    yield child
    child.kill()


def end_and_be_seen(child, log):
    wait_until(lambda: not child.is_running)
    child.restart_if_ended(log.append)


def test_the_pause_before_a_restart_doubles(child, log, time):
    for pause in (0.5, 1, 2):
        end_and_be_seen(child, log)
        time(pause)
        child.restart_if_ended(log.append)

    assert log == [f"web ended with code 3. Restarting in {pause} s." for pause in ("0.5", "1", "2")]


def test_the_pause_grows_no_longer_than_half_a_minute(child, log, time):
    child.pause = 30.0

    for _ in range(2):
        end_and_be_seen(child, log)
        time(30)
        child.restart_if_ended(log.append)

    assert log == ["web ended with code 3. Restarting in 30 s."] * 2


def test_a_child_that_ran_stably_restarts_after_a_short_pause(child, log, time):
    child.pause = 16.0
    time(61)

    end_and_be_seen(child, log)

    assert log == ["web ended with code 3. Restarting in 0.5 s."]


def test_no_process_is_restarted_before_the_end_of_its_pause(child, log, time):
    end_and_be_seen(child, log)
    time(0.4)

    child.restart_if_ended(log.append)

    assert not child.is_running


def test_the_end_of_a_process_deletes_no_temporary_folder_of_its_parent():
    with TemporaryDirectory() as folder:
        child = ManagedProcess("web", lambda: None)
        child.start()
        wait_until(lambda: not child.is_running)

        assert os.path.exists(folder)


def test_a_process_is_killed_before_it_has_a_group_of_its_own(monkeypatch):
    monkeypatch.setattr(os, "setsid", lambda: None)
    child = ManagedProcess("web", partial(sleep, 60))
    child.start()

    child.kill()

    assert not child.is_running


@pytest.fixture
def frozen(time, tmp_path):
    """Return a process that runs without touching its heartbeat, and a function that lets seconds pass."""
    seconds = [0.0]
    heartbeat = tmp_path / "beat"
    heartbeat.touch()
    child = ManagedProcess("beat", partial(sleep, 60), heartbeat=heartbeat)
    child.liveness = Liveness(lambda: seconds[0])
    child.start()

    def pass_by(passed):
        seconds[0] += passed
        time(passed)

    yield child, pass_by
    child.kill()


def test_a_process_whose_heartbeat_stops_is_killed(frozen, log):
    child, pass_by = frozen
    child.kill_if_frozen(log.append)
    pass_by(40)

    child.kill_if_frozen(log.append)

    assert not child.is_running
    assert log == ["beat has not responded for 40 s and is killed."]


def test_a_process_that_still_starts_or_has_a_heartbeat_is_not_killed(frozen, log):
    child, pass_by = frozen
    child.kill_if_frozen(log.append)
    pass_by(20)
    child.kill_if_frozen(log.append)
    pass_by(20)
    os.utime(child.heartbeat, (1, 1))
    child.kill_if_frozen(log.append)

    assert (child.is_running, log) == (True, [])
