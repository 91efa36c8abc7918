"""Execution of runs in memory."""

from .simulate import Simulation
from .simulated_run import SimulatedRun, SimulationScript, TaskMock

__all__ = ["SimulatedRun", "Simulation", "SimulationScript", "TaskMock"]
