"""One helper process, seen from the process that owns it: start, ask with a deadline, kill."""

import contextlib
import os
import select
import signal
import struct
import subprocess
import sys
import time
from math import ceil
from pathlib import Path

PROGRAM = Path(__file__).with_name("helper.py")
LENGTH = struct.Struct(">I")
MAX_RESPONSE_SIZE = 11 << 20
START_SECONDS = 10
CHUNK = 1 << 20


class HelperTimedOut(Exception):
    """The helper has not answered in time."""


class HelperDied(Exception):
    """The helper process has ended without an answer."""


class Helper:
    """A process that evaluates one program at a time. After any exception it must be killed."""

    def __init__(self, engine):
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(PROGRAM), engine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={},
            cwd="/",
            # Ctrl-C at the terminal is for the parent; this process ends when its stdin does.
            start_new_session=True,
        )
        for pipe in (self._process.stdin, self._process.stdout):
            os.set_blocking(pipe.fileno(), False)

    @property
    def is_alive(self):
        """Return True if the process runs."""
        return self._process.poll() is None

    @property
    def pid(self):
        """Return the process id."""
        return self._process.pid

    def await_ready(self):
        """Return when the helper has loaded its engine, so that no script pays for that."""
        self._receive_frame(time.monotonic() + START_SECONDS)

    def ask(self, frames, seconds):
        """Send the frames of one question and return the answer's bytes."""
        deadline = time.monotonic() + seconds
        self._send(b"".join(LENGTH.pack(len(frame)) + frame for frame in frames), deadline)
        return self._receive_frame(deadline)

    def kill(self):
        """End the process at once, leaving neither zombie nor descriptor."""
        # A session of its own is a process group too: an engine's own process ends with it.
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()

    def _send(self, data, deadline):
        descriptor, rest = self._process.stdin.fileno(), memoryview(data)
        while rest:
            wait_until_ready(descriptor, select.POLLOUT, deadline)
            try:
                rest = rest[os.write(descriptor, rest[:CHUNK]) :]
            except BrokenPipeError:
                raise HelperDied(self._exit_cause()) from None

    def _receive_frame(self, deadline):
        (size,) = LENGTH.unpack(self._receive(LENGTH.size, deadline))
        if size > MAX_RESPONSE_SIZE:
            raise HelperDied("its result exceeds the size limit")
        return self._receive(size, deadline)

    def _receive(self, size, deadline):
        descriptor, received = self._process.stdout.fileno(), bytearray()
        while len(received) < size:
            wait_until_ready(descriptor, select.POLLIN, deadline)
            chunk = os.read(descriptor, min(size - len(received), CHUNK))
            if not chunk:
                raise HelperDied(self._exit_cause())
            received += chunk
        return bytes(received)

    def _exit_cause(self):
        # The pipe closes before the process can be reaped. One that only closed its pipe is killed here.
        try:
            code = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return "closed its pipe"
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def wait_until_ready(descriptor, event, deadline):
    """Wait until the pipe is ready.

    Raises:
        HelperTimedOut: when it is not ready before the deadline.
    """
    poller = select.poll()
    poller.register(descriptor, event)
    left = deadline - time.monotonic()
    if left <= 0 or not poller.poll(ceil(left * 1000)):
        raise HelperTimedOut
