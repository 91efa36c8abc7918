"""Simulated time for schedules: due work runs on time, except while the server is down."""

from typing import Any

from conductor_app.core.decide import Report
from conductor_app.processes import sweeps
from conductor_app.runs.models import Run
from conductor_app.runs.store import due_rows
from conductor_app.schedules import commands as schedules
from conductor_app.tasks.commands import reports as task_commands
from tests.scenario import ACTOR, run_commit_hooks


class SimulatedServer:
    """A clock and a server."""

    def __init__(self, clock: Any) -> None:
        self.clock, self.started_at = clock, clock.now()

    def pass_hours(self, *, hours: float, sleeping: bool = False) -> None:
        """Advance the time; while the server is down, nothing is handled."""
        until = self.clock.now() + round(hours * 3_600_000)
        while not sleeping and (moment := due_rows.next_due_moment()) is not None and moment <= until:
            self._at(moment)
            if not self._sweep():
                break
        self._at(until)

    def _at(self, moment: int) -> None:
        self.clock.advance(seconds=max(moment - self.clock.now(), 0) / 1000)

    def _sweep(self) -> int:
        with run_commit_hooks():
            return sweeps.sweep_once()

    def ends(self, *, hour: float) -> None:
        """Complete the run of a slot."""
        slot = self.started_at + round(hour * 3_600_000)
        [run] = [run for run in Run.objects.open() if run.input["_scheduledTime"] == slot]
        with run_commit_hooks():
            assert task_commands.report_by_ref(run.pk, "pay", Report("COMPLETED", {}), ACTOR)

    def run_now(self, schedule: str) -> str:
        with run_commit_hooks():
            return schedules.run_now(schedule, ACTOR)
