"""Start, monitor, restart and stop one child process."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from conductor_app.insight.monitoring.liveness import Liveness

FIRST_PAUSE, MAX_PAUSE = 0.5, 30.0
# A child that has run for this time is healthy. The next restart begins with a short pause again.
HEALTHY_SECONDS = 60.0
# The time without a heartbeat after which a process is killed, and the time that its start may take.
FROZEN_SECONDS, START_SECONDS = 10.0, 30.0
PR_SET_PDEATHSIG = 1


@dataclass
class ManagedProcess:
    """A process that is restarted whenever it ends."""

    name: str
    command: list[str]
    inherits: tuple[int, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    restart_at: float = 0.0
    pause: float = field(default=FIRST_PAUSE)
    heartbeat: Path | None = None
    """A file that the process touches at least once a second."""
    liveness: Liveness = field(default_factory=Liveness)

    def start(self) -> None:
        """Start the process in a new session, so that only the parent receives Ctrl-C and stops all children."""
        self.started_at = monotonic()
        self.process = subprocess.Popen(
            self.command,
            start_new_session=True,
            pass_fds=self.inherits,
            stdin=subprocess.DEVNULL,
            # Logs go to standard error. Standard output has only banners.
            stdout=subprocess.DEVNULL,
            preexec_fn=_die_with_parent(os.getpid()),
        )

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

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
        if self.is_running and self.process:
            self.process.send_signal(number)

    def kill(self) -> None:
        """Kill the process and its children."""
        if self.process:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                return
            self.process.wait()

    def _plan_restart(self, report: Callable[[str], None]) -> None:
        if monotonic() - self.started_at > HEALTHY_SECONDS:
            self.pause = FIRST_PAUSE
        code = self.process.returncode if self.process else None
        report(f"{self.name} ended with code {code}. Restarting in {self.pause:g} s.")
        self.restart_at = monotonic() + self.pause
        self.pause = min(self.pause * 2, MAX_PAUSE)


def _die_with_parent(parent: int) -> Callable[[], None]:
    """Return a function that makes the kernel stop the child when the parent dies."""
    if sys.platform != "linux":
        return lambda: None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def in_child() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        # The parent may have died before the call of prctl.
        if os.getppid() != parent:
            os._exit(1)

    return in_child
