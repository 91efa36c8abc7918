"""Start a helper process, send it requests with a deadline, and kill it."""

import contextlib
import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from pathlib import Path

PROGRAM = Path(__file__).with_name("helper.py")
LENGTH = struct.Struct(">I")
MAX_RESPONSE_SIZE = 11 << 20
START_SECONDS = 10
CHUNK = 1 << 20


class HelperTimedOut(Exception):
    """The helper has not responded in time."""


class HelperDied(Exception):
    """The helper process has ended without a response."""


@dataclass(frozen=True)
class Isolation:
    """How a helper is isolated besides its limits: by another user, and by a filter of system calls.

    Each field is an empty text, or why the helper is not isolated in this way.
    """

    user: str
    filter: str


class Helper:
    """A process that evaluates one script at a time. After any exception it must be killed."""

    def __init__(self, engine: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(PROGRAM), engine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={},
            cwd="/",
            # The process does not receive Ctrl-C of the terminal. It ends when its stdin is closed.
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        for pipe in (self._stdin, self._stdout):
            os.set_blocking(pipe.fileno(), False)

    @property
    def is_alive(self) -> bool:
        """Return True if the process runs."""
        return self._process.poll() is None

    @property
    def is_stopped(self) -> bool:
        """Return True if a signal from outside has stopped the process. Always False on other systems than Linux."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        except OSError:
            return False

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    def await_ready(self) -> None:
        """Wait until the helper has loaded its engine, so that this time does not count for a script."""
        self.isolation = Isolation(**json.loads(self._receive_frame(time.monotonic() + START_SECONDS)))

    def ask(self, frames: Iterable[bytes], seconds: float) -> bytes:
        """Send the frames of one request, and return the response.

        Raises:
            HelperTimedOut: when there is no response within `seconds`
            HelperDied: when the process ends.
        """
        deadline = time.monotonic() + seconds
        self._send(b"".join(LENGTH.pack(len(frame)) + frame for frame in frames), deadline)
        return self._receive_frame(deadline)

    def kill(self) -> None:
        """Kill the process with its children, and release its resources."""
        # The new session is also a process group, which contains the worker process of an engine.
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._stdin.close()
        self._stdout.close()

    def _send(self, data: bytes, deadline: float) -> None:
        descriptor, rest = self._stdin.fileno(), memoryview(data)
        while rest:
            wait_until_ready(descriptor, select.POLLOUT, deadline)
            try:
                rest = rest[os.write(descriptor, rest[:CHUNK]) :]
            except BrokenPipeError:
                raise HelperDied(self._exit_cause()) from None

    def _receive_frame(self, deadline: float) -> bytes:
        (size,) = LENGTH.unpack(self._receive(LENGTH.size, deadline))
        if size > MAX_RESPONSE_SIZE:
            raise HelperDied("its result exceeds the size limit")
        return self._receive(size, deadline)

    def _receive(self, size: int, deadline: float) -> bytes:
        descriptor, received = self._stdout.fileno(), bytearray()
        while len(received) < size:
            wait_until_ready(descriptor, select.POLLIN, deadline)
            chunk = os.read(descriptor, min(size - len(received), CHUNK))
            if not chunk:
                raise HelperDied(self._exit_cause())
            received += chunk
        return bytes(received)

    def _exit_cause(self) -> str:
        # The pipe closes before the process has ended. A process that only closed its pipe is killed later.
        try:
            code = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return "closed its pipe"
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def wait_until_ready(descriptor: int, event: int, deadline: float) -> None:
    """Wait until the pipe is ready.

    Raises:
        HelperTimedOut: when it is not ready before the deadline.
    """
    poller = select.poll()
    poller.register(descriptor, event)
    remaining = deadline - time.monotonic()
    if remaining <= 0 or not poller.poll(ceil(remaining * 1000)):
        raise HelperTimedOut
