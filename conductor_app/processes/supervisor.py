"""Fork, monitor, restart and stop one child process."""

import atexit
import ctypes
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.context import ForkProcess
from pathlib import Path
from time import monotonic

from conductor_app.insight.monitoring.liveness import Liveness
from conductor_app.management.forked_call import FORK

FIRST_PAUSE, MAX_PAUSE = 0.5, 30.0
# A child that has run for this time is healthy. The next restart begins with a short pause again.
HEALTHY_SECONDS = 60.0
# The time without a heartbeat after which a process is killed, and the time that its start may take.
FROZEN_SECONDS, START_SECONDS = 10.0, 30.0
PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15
STANDARD_OUTPUT = 1
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class ManagedProcess:
    """A process that is restarted whenever it ends."""

    name: str
    run: Callable[[], object]
    process: ForkProcess | None = None
    started_at: float = 0.0
    restart_at: float = 0.0
    pause: float = field(default=FIRST_PAUSE)
    heartbeat: Path | None = None
    """A file that the process touches at least once a second."""
    liveness: Liveness = field(default_factory=Liveness)

    def start(self) -> None:
        """Fork the process. A stop signal that arrives meanwhile waits until both processes handle it."""
        self.started_at = monotonic()
        self.process = FORK.Process(target=_run_child, args=(self.name, self.run, os.getpid()), name=self.name)
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.is_alive()

    def restart_if_ended(self, report: Callable[[str], None]) -> None:
        """Restart the process if it has ended, after a pause that doubles with each restart."""
        if self.is_running:
            return
        if not self.restart_at:
            self._plan_restart(report)
        elif monotonic() >= self.restart_at:
            self.restart_at = 0.0
            self.start()

    def kill_if_frozen(self, report: Callable[[str], None]) -> None:
        """Kill the process if its heartbeat has stopped. The next check restarts it."""
        if self.heartbeat is None or not self.is_running:
            return
        revision = self.heartbeat.stat().st_mtime_ns if self.heartbeat.exists() else 0
        silent_seconds = self.liveness.observe(self.name, revision)
        if silent_seconds > FROZEN_SECONDS and monotonic() - self.started_at > START_SECONDS:
            report(f"{self.name} has not responded for {silent_seconds:.0f} s and is killed.")
            self.kill()
            self.liveness = Liveness()

    def signal(self, number: int) -> None:
        """Send a signal to the process if it runs."""
        if self.is_running and self.process and self.process.pid:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, number)

    def kill(self) -> None:
        """Kill the process and its children."""
        if self.process and self.process.pid:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.join()

    def _plan_restart(self, report: Callable[[str], None]) -> None:
        if monotonic() - self.started_at > HEALTHY_SECONDS:
            self.pause = FIRST_PAUSE
        code = self.process.exitcode if self.process else None
        report(f"{self.name} ended with code {code}. Restarting in {self.pause:g} s.")
        self.restart_at = monotonic() + self.pause
        self.pause = min(self.pause * 2, MAX_PAUSE)


def _run_child(name: str, run: Callable[[], object], parent: int) -> None:
    """Execute `run` in a session of its own, so that only the parent receives Ctrl-C and stops all children."""
    os.setsid()
    _name_process(f"serve: {name}", parent)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    # Logs go to standard error. Standard output has only banners.
    os.dup2(os.open(os.devnull, os.O_WRONLY), STANDARD_OUTPUT)
    try:
        run()
    finally:
        # A forked process of `multiprocessing` does not call them.
        atexit._run_exitfuncs()


def _name_process(name: str, parent: int) -> None:
    """Name this process for `ps` and `top`, and make the kernel stop it when the parent dies."""
    if sys.platform != "linux":
        return
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(PR_SET_NAME, name.encode())
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    # The parent may have died before the call of prctl.
    if os.getppid() != parent:
        os._exit(1)
