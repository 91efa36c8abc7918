"""What a worker process of a Django project does beside its tasks: timers, built-in tasks and periodic jobs.

In a server, Celery does it. Here each worker process is ready to, and one of them does.
"""

from threading import Event, Thread
from time import monotonic

from ..processes import background
from ..processes.periodic_jobs import PERIODIC_JOBS
from ..processes.sweep_loop import CHECK_SECONDS, SweepWatchdog, watch_once
from ..processes.sweeps import sweep_until
from ..system_tasks.network_guard import require_network_guards

PERIODIC = ("measure", "alerts", "prune")
"""The jobs that run at their intervals. The others start when they have something to do."""
FIRST_SECONDS = 30.0
"""The time after which a process that sweeps runs the periodic jobs for the first time."""


class PeriodicJobs:
    """When each periodic job is due in this process, which is the one that sweeps."""

    def __init__(self, moment: float) -> None:
        self._due_at = dict.fromkeys(PERIODIC, moment + FIRST_SECONDS)

    def take_due(self, moment: float) -> list[str]:
        """Return the jobs that are due at a monotonic time, and plan their next runs."""
        due = [name for name, at in self._due_at.items() if at <= moment]
        self._due_at |= {name: moment + PERIODIC_JOBS[name].every_seconds for name in due}
        return due


def start_background(stopping: Event) -> Thread:
    """Start the thread that sweeps unless another process does, until `stopping`.

    Raises:
        GuardIneffective: when built-in workers could reach addresses that are not allowed.
    """
    require_network_guards()
    thread = Thread(target=_watch, args=(stopping,), name="sweeps", daemon=True)
    thread.start()
    return thread


def _watch(stopping: Event) -> None:
    """Sweep while this process is the one that does, and start the jobs that are due after each sweep.

    When it stops, built-in workers claim nothing more, and return the tasks that they cannot finish.
    """
    watchdog, periodic = SweepWatchdog(sweep_until, is_regular=True), PeriodicJobs(monotonic())

    def start_jobs() -> None:
        background.start_due_jobs()
        for name in periodic.take_due(monotonic()):
            Thread(target=background.run_job, args=(name,), name=name, daemon=True).start()

    while not stopping.wait(CHECK_SECONDS):
        watch_once(watchdog, after_sweep=start_jobs)
    background.stopping.set()
    background.release_before_exit()
