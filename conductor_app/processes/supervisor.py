"""Supervise child processes: fork, monitor, restart, and stop them within five seconds of a stop signal."""

import atexit
import ctypes
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from time import monotonic, sleep
from typing import Generic, TypeVar

from ..monitoring.queries.health import Liveness

Result = TypeVar("Result")
FORK = get_context("fork")
"""Forked processes share the memory of what their parent has loaded. The parent must have no threads."""


class ForkedCall(Generic[Result]):
    """The call of a function. It starts at once, in parallel to this process."""

    def __init__(self, function: Callable[[], Result]) -> None:
        self._receiver, sender = FORK.Pipe(duplex=False)
        self._process = FORK.Process(target=_send_result, args=(function, sender))
        self._process.start()
        sender.close()

    def result(self) -> Result:
        """Wait for the end of the call and return its result, or raise its exception.

        Raises:
            EOFError: when the process was killed.
        """
        result, error = self._receiver.recv()
        self._process.join()
        if error:
            raise error
        return result


def _send_result(function: Callable[[], object], sender: Connection) -> None:
    gc.enable()
    try:
        sender.send((function(), None))
    except Exception as error:
        sender.send((None, error))


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
            # A process that has just started has no group of its own yet.
            self.process.kill()
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
    # The functions of the parent would delete its temporary folders.
    atexit._clear()
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


CHECK_SECONDS = 0.1
# Longer than the three seconds in which gunicorn finishes requests.
GRACE_SECONDS = 4.0


class Supervisor:
    """The child processes and the stop flag."""

    def __init__(self, children: Sequence[ManagedProcess], report: Callable[[str], None]) -> None:
        self.children = children
        self.report = report
        self.is_stopping = False

    def run(self, on_check: Callable[[], None]) -> None:
        """Start and monitor all children, and stop them on the first SIGINT or SIGTERM."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        try:
            for child in self.children:
                child.start()
            while not self.is_stopping:
                self._check_processes()
                on_check()
                sleep(CHECK_SECONDS)
        finally:
            self._kill_remaining()

    def _check_processes(self) -> None:
        for child in self.children:
            child.restart_if_ended(self.report)
            child.kill_if_frozen(self.report)

    def _stop(self, *_: object) -> None:
        self.is_stopping = True

    def _kill_remaining(self) -> None:
        for child in self.children:
            child.signal(signal.SIGTERM)
        kill_at = monotonic() + GRACE_SECONDS
        while monotonic() < kill_at and any(child.is_running for child in self.children):
            sleep(0.02)
        for child in self.children:
            child.kill()
