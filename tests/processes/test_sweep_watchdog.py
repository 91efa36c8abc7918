"""Processes sweep by themselves when no other process has for two seconds."""

import pytest

from conductor_app.monitoring.queries.health import Liveness
from conductor_app.processes import jobs
from conductor_app.processes.sweep_loop import SweepWatchdog
from conductor_app.processes.sweeps import sweep_once
from conductor_app.utils import clock as product_clock
from tests.builders import wait
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db


class Process:
    """One process with its watchdog, which counts its sweeps."""

    def __init__(self, seconds):
        self.sweeps = 0
        self.watchdog = SweepWatchdog(self.sweep, Liveness(lambda: seconds[0]))

    def sweep(self, horizon):
        self.sweeps += 1
        sweep_once()


@pytest.fixture
def seconds():
    return [1000.0]


def check(seconds, times, *processes):
    for _ in range(times):
        seconds[0] += 0.5
        for process in processes:
            process.watchdog.check()


def test_a_timer_is_handled_although_celery_has_stopped(clock, seconds):
    scenario = Scenario(clock, wait("w", duration="5 seconds"))
    process = Process(seconds)
    check(seconds, 10, process)
    clock.advance(seconds=5)

    check(seconds, 1, process)

    assert scenario.status == "COMPLETED"
    assert product_clock.now() == clock.now()


def test_a_first_start_sweeps_without_a_warning_and_later_silence_is_warned_of(clock, seconds, db, caplog):
    process = Process(seconds)
    check(seconds, 6, process)
    assert process.sweeps > 0 and "sweeps_replaced" not in caplog.text

    jobs.sweep(0)
    check(seconds, 6, process)
    assert "sweeps_replaced" in caplog.text


def test_no_process_sweeps_while_celery_does(clock, seconds, db):
    process = Process(seconds)

    for _ in range(10):
        jobs.sweep(0)
        check(seconds, 1, process)

    assert process.sweeps == 0


def test_sweeps_are_replaced_after_two_seconds_until_celery_returns(clock, seconds, db):
    process = Process(seconds)
    jobs.sweep(0)
    check(seconds, 4, process)
    assert process.sweeps == 0

    check(seconds, 6, process)
    assert process.sweeps > 0

    swept = process.sweeps
    for _ in range(4):
        jobs.sweep(0)
        check(seconds, 1, process)
    assert process.sweeps == swept


def test_one_of_several_processes_replaces_the_sweeps(clock, seconds, db):
    processes = [Process(seconds) for _ in range(4)]

    check(seconds, 20, *processes)

    assert [process.sweeps > 0 for process in processes] == [True, False, False, False]
