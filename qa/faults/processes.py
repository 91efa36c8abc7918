"""Processes of the server under test: start, signal, kill and restart them."""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from .history import History

ROOT = Path(__file__).resolve().parents[2]
PR_SET_PDEATHSIG = 1
RESTART_SECONDS = 0.5
CHECK_SECONDS = 0.1


@dataclass
class Member:
    """One process of the server, with its descendants. It is restarted when it ends, unless it is held."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    user: str | None = None
    is_held: bool = False
    process: subprocess.Popen[bytes] | None = None
    ended_at: float = field(default=0.0)

    def start(self) -> None:
        """Start the process. The kernel kills it when the test ends."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=ROOT if self.user is None else "/",
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=self.user,
                preexec_fn=_die_with_parent,
            )

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def send(self, number: int) -> None:
        """Send a signal to the process alone."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def send_to_all(self, number: int) -> None:
        """Send a signal to the process and its descendants, ancestors first."""
        for pid in process_tree(self.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """Kill the process and its descendants, and wait for its end."""
        if self.process is not None:
            self.send_to_all(signal.SIGKILL)
            self.process.wait()

    def terminate(self, number: int = signal.SIGTERM, seconds: float = 15) -> None:
        """Stop the process gracefully, or kill it after `seconds`."""
        if self.process is None:
            return
        tree = process_tree(self.pid)
        self.send(number)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        for pid in tree:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def process_tree(pid: int) -> list[int]:
    """Return the ids of a process and its descendants."""
    children: list[str] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += (task / "children").read_text().split()
    return [pid, *(each for child in children for each in process_tree(int(child)))]


def restart_ended(members: Sequence[Member], history: History) -> None:
    """Restart the members that have ended, after a pause, as a supervisor of services does."""
    for member in members:
        if member.is_alive or member.is_held or member.process is None:
            member.ended_at = 0.0
        elif not member.ended_at:
            history.record("exit", member=member.name, code=member.process.returncode)
            member.ended_at = time.monotonic()
        elif time.monotonic() - member.ended_at > RESTART_SECONDS:
            # Descendants of a killed process may still hold its port.
            member.ended_at = 0.0
            member.start()


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
