"""The pool of helper processes that evaluate scripts and check their syntax. They are started on demand.

Callers get helper processes in turns by owner and key, so that slow scripts delay few others.
"""

import atexit
import contextlib
import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from itertools import accumulate
from math import ceil
from pathlib import Path
from threading import Event, Lock
from typing import Any, NamedTuple

from conductor_app.utils import process_state
from conductor_app.utils.process_state import Slot

from ..core.primitives import JsonValue

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
            _wait_until_ready(descriptor, select.POLLOUT, deadline)
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
            _wait_until_ready(descriptor, select.POLLIN, deadline)
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


def _wait_until_ready(descriptor: int, event: int, deadline: float) -> None:
    poller = select.poll()
    poller.register(descriptor, event)
    remaining = deadline - time.monotonic()
    if remaining <= 0 or not poller.poll(ceil(remaining * 1000)):
        raise HelperTimedOut


MAX_SLOW = 4
SLOW_FROM = 2
MAX_KEYS = 1_000
MAX_PATIENT, MAX_PATIENT_OF_OWNER = 24, 8
"""Callers that may wait longer than `PATIENCE_SECONDS`, in all and of one owner. Each of them can be a request, which
occupies a thread of the server."""


class TurnKey(NamedTuple):
    """Whose script waits: that of a definition, and of the user who has started its run."""

    owner: Hashable
    name: Hashable


class Ticket:
    """A place in the queue. `granted` is set when its caller may use a helper."""

    def __init__(self, key: TurnKey) -> None:
        self.key, self.granted, self.is_patient = key, Event(), False


class HelperQueue:
    """Grants `size` helpers to the callers that wait for them.

    A free helper goes to the owner with the fewest helpers; among equals, the one that was served longest ago. The keys
    of an owner take turns alike. A key whose scripts take most of their time limit is slow until others complete. A
    slow key gets one helper, and all slow keys together get all helpers but one. So a script waits for one time limit
    at most, unless many owners wait.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = Lock()
        # In the order of the turns.
        self._waiting: dict[TurnKey, deque[Ticket]] = {}
        self._granted: Counter[TurnKey] = Counter()
        self._slow: dict[TurnKey, int] = {}

    def enter(self, name: Hashable, owner: Hashable = None) -> Ticket:
        """Return a new ticket, which is granted at once if a helper is free for its key. A key may own itself."""
        ticket = Ticket(TurnKey(owner or name, name))
        with self._lock:
            self._waiting.setdefault(ticket.key, deque()).append(ticket)
            self._grant()
        return ticket

    def may_keep_waiting(self, ticket: Ticket) -> bool:
        """Return True if the caller may wait on: few callers do, and few of the same owner."""
        with self._lock:
            owners = Counter(each.key.owner for all in self._waiting.values() for each in all if each.is_patient)
            ticket.is_patient = owners.total() < MAX_PATIENT and owners[ticket.key.owner] < MAX_PATIENT_OF_OWNER
            return ticket.is_patient or ticket.granted.is_set()

    def leave(self, ticket: Ticket, was_slow: bool | None = None) -> None:
        """Return the helper of a ticket, or its place. `was_slow`: None if no script was evaluated."""
        with self._lock:
            if ticket.granted.is_set():
                self._granted -= Counter([ticket.key])
            else:
                self._remove(ticket)
            if was_slow is not None:
                self._count(ticket.key, was_slow)
            self._grant()

    def _grant(self) -> None:
        while self._granted.total() < self._size:
            eligible = [key for key in self._waiting if self._is_eligible(key)]
            if not eligible:
                return
            key = min(eligible, key=lambda each: (self._granted_to(each.owner), self._granted[each]))
            ticket = self._waiting[key][0]
            self._remove(ticket)
            # All keys of the owner move to the end, the served one last.
            owned = [each for each in self._waiting if each.owner == key.owner]
            for each in sorted(owned, key=lambda each: each == key):
                self._waiting[each] = self._waiting.pop(each)
            self._granted[key] += 1
            ticket.granted.set()

    def _granted_to(self, owner: Hashable) -> int:
        return sum(count for key, count in self._granted.items() if key.owner == owner)

    def _remove(self, ticket: Ticket) -> None:
        tickets = self._waiting[ticket.key]
        tickets.remove(ticket)
        if not tickets:
            del self._waiting[ticket.key]

    def _is_eligible(self, key: TurnKey) -> bool:
        if not self._is_slow(key):
            return True
        of_slow_keys = sum(count for each, count in self._granted.items() if self._is_slow(each))
        return not self._granted[key] and of_slow_keys < max(self._size - 1, 1)

    def _is_slow(self, key: TurnKey) -> bool:
        return self._slow.get(key, 0) >= SLOW_FROM

    def _count(self, key: TurnKey, was_slow: bool) -> None:
        count = min(self._slow.pop(key, 0) + (1 if was_slow else -1), MAX_SLOW)
        if count > 0:
            self._slow[key] = count
        if len(self._slow) > MAX_KEYS:
            # The key whose scripts ended longest ago.
            del self._slow[next(iter(self._slow))]


ENGINES = {
    "javascript": "javascript_jq",
    "javascript-syntax": "javascript_jq",
    "jq": "javascript_jq",
    "jq-syntax": "javascript_jq",
    "python": "monty",
    "python-syntax": "monty",
    "json-schema": "json_schema",
}
"""The engine of each language. A helper process runs one engine. `-syntax`: the inputs are scripts to parse."""
MAX_INPUT_SIZE = 16 << 20
GRACE_SECONDS = 0.5
KILLED = ("SIGKILL", "SIGTERM")
"""The causes of a helper's end that are not the script's fault: an operator or the kernel, which lacks memory."""
QUEUE_SECONDS = 30.0
PATIENCE_SECONDS = 0.25
"""The time that every caller may wait for a helper. A burst of fast scripts is evaluated within it."""
EVALUATION_SECONDS = 4.0
POOL_SIZE = 2


class ScriptsUnavailable(Exception):
    """No helper process was available. The script has not run, so the caller can retry."""


@dataclass(frozen=True)
class EvaluationResult:
    """The result of an evaluation: a value, or an error message."""

    value: Any = None
    error: str | None = None
    timed_out: bool = False
    logs: tuple[str, ...] = ()


def evaluate(
    language: str,
    source: str,
    inputs: JsonValue,
    limit_seconds: float | None = None,
    *,
    key: str = "",
    owner: Hashable = 0,
) -> EvaluationResult:
    """Evaluate a script in the pool of this process, which owners and their keys share fairly.

    `limit_seconds`: the time limit, `EVALUATION_SECONDS` if it is None. `key`: such as the name of a definition.
    `owner`: the user for whom the script runs; 0 or "": the key stands for itself.

    Raises:
        ScriptsUnavailable: when no helper process is available.
    """
    limit = EVALUATION_SECONDS if limit_seconds is None else limit_seconds
    return shared_pool().evaluate(language, source, inputs, limit, key, owner)


@cache
def shared_pool() -> "Pool":
    """Return the pool of this process. It starts helpers on demand."""
    return Pool()


class Pool:
    """At most `size` busy helpers, and as many idle helpers per engine. Further callers wait."""

    def __init__(self, size: int = POOL_SIZE, queue_seconds: float = QUEUE_SECONDS) -> None:
        self._size, self._queue_seconds = size, queue_seconds
        self.drop_helpers()
        _follow_process()
        POOLS.add(self)

    def evaluate(
        self,
        language: str,
        source: str,
        inputs: JsonValue,
        limit_seconds: float = EVALUATION_SECONDS,
        key: str = "",
        owner: Hashable = 0,
    ) -> "EvaluationResult":
        """Evaluate `source` with `inputs`. Errors of the script are part of the result and not raised.

        Raises:
            ValueError: when the language is unknown
            ScriptsUnavailable: when no helper process is available.
        """
        if language not in ENGINES:
            raise ValueError(f"unknown script language {language!r}")
        if not isinstance(source, str):
            return EvaluationResult(error="The script must be a string.")
        order = {"language": language, "source": source, "limit": limit_seconds}
        if language == "python":
            order["names"] = input_names(inputs)
        order_text = json.dumps(order).encode("ascii")
        try:
            text = json.dumps(inputs, allow_nan=False).encode("ascii")
        except (TypeError, ValueError, RecursionError) as error:
            return EvaluationResult(error=f"The script's inputs cannot be converted to JSON: {error}.")
        if len(text) + len(order_text) > MAX_INPUT_SIZE:
            return EvaluationResult(error="The script and its inputs are larger than 16 MB.")
        ticket, was_slow = self._queue.enter(key, owner), None
        try:
            self._wait(ticket)
            began = time.monotonic()
            result = self._evaluate(language, (order_text, text), limit_seconds)
            was_slow = time.monotonic() - began > limit_seconds / 2
        finally:
            self._queue.leave(ticket, was_slow)
        return result

    def _wait(self, ticket: Ticket) -> None:
        """Wait until the ticket is granted."""
        if ticket.granted.wait(PATIENCE_SECONDS):
            return
        if not self._queue.may_keep_waiting(ticket):
            raise ScriptsUnavailable("Too many scripts wait for a helper process.")
        if not ticket.granted.wait(self._queue_seconds):
            raise ScriptsUnavailable(f"All {self._size} helper processes were busy for {self._queue_seconds:g} s.")

    def idle_pids(self) -> list[int]:
        """Return the process ids of the idle helpers."""
        return [helper.pid for helpers in self._idle.values() for helper in helpers]

    def close(self) -> None:
        """Kill all idle helpers."""
        for helpers in self._idle.values():
            while helpers:
                helpers.pop().kill()

    def drop_helpers(self) -> None:
        """Discard the helpers, because after a fork they belong to the parent."""
        self._idle: dict[str, list[Helper]] = {engine: [] for engine in set(ENGINES.values())}
        self._queue = HelperQueue(self._size)

    def _evaluate(self, language: str, frames: tuple[bytes, bytes], limit: float) -> EvaluationResult:
        # The first helper may have lost its interpreter after an earlier script, or something else may kill it. What
        # happens twice is due to the script.
        for is_last in (False, True):
            if result := self._ask_helper(language, self._take(ENGINES[language]), frames, limit, is_last):
                return result
        raise ScriptsUnavailable("A helper process lost its interpreter.")

    def _ask_helper(
        self, language: str, helper: Helper, frames: tuple[bytes, bytes], limit: float, is_last: bool
    ) -> EvaluationResult | None:
        """Return the result, or None if another helper must evaluate the script. `is_last`: this is the last try."""
        # A helper is reused only after a complete exchange. After an interruption, its pipes contain parts of frames.
        result = None
        try:
            result = _parse_answer(
                helper.ask(frames, limit + GRACE_SECONDS), limit, has_floats=language != "javascript"
            )
            return result
        except HelperTimedOut:
            if helper.is_stopped and not is_last:
                return None
            return EvaluationResult(error=_timeout_message(limit), timed_out=True)
        except HelperDied as death:
            if str(death) in KILLED and not is_last:
                return None
            return EvaluationResult(error=f"The script crashed its helper process ({death}) and was stopped.")
        finally:
            if result is None:
                helper.kill()
            else:
                self._idle[ENGINES[language]].append(helper)

    def _take(self, engine: str) -> Helper:
        idle = self._idle[engine]
        while idle:
            helper = idle.pop()
            if helper.is_alive:
                return helper
            helper.kill()
        return start_helper(engine)


def start_helper(engine: str) -> Helper:
    """Start a helper with this engine, and wait until it is ready.

    Raises:
        ScriptsUnavailable: when it does not start.
    """
    try:
        helper = Helper(engine)
    except OSError as error:
        raise ScriptsUnavailable(f"A helper process could not be started: {error.strerror}.") from error
    try:
        helper.await_ready()
    except BaseException as error:
        helper.kill()
        if isinstance(error, (HelperTimedOut, HelperDied)):
            raise ScriptsUnavailable(f"A helper process did not start: {error or 'timeout'}.") from error
        raise
    return helper


def probe_isolation(engine: str) -> Isolation:
    """Return how helpers with this engine are isolated on this host. Starts one.

    Raises:
        ScriptsUnavailable: when it does not start.
    """
    helper = start_helper(engine)
    helper.kill()
    return helper.isolation


def input_names(inputs: JsonValue) -> list[str]:
    return [name for name in inputs if isinstance(name, str)] if isinstance(inputs, dict) else []


def _parse_answer(answer: bytes, limit: float, has_floats: bool) -> EvaluationResult | None:
    """Return the result in the response of a helper, or None if it has not evaluated the script.

    `has_floats`: True if the language distinguishes 1 from 1.0.
    """
    try:
        document = json.loads(answer, parse_float=_finite_float if has_floats else _whole_or_float)
    except RecursionError:
        return EvaluationResult(error="The script's result is nested too deeply.")
    if document is None:
        return None
    timed_out = document.get("timed_out", False)
    error = _timeout_message(limit) if timed_out else document.get("error")
    return EvaluationResult(document.get("value"), error, timed_out, tuple(document.get("logs", ())))


def _timeout_message(limit: float) -> str:
    """Return the message for a script that exceeded its time limit in seconds."""
    return f"The script ran longer than {limit:g} s and was stopped."


def _finite_float(text: str) -> float:
    """Return a float. The largest one replaces those beyond, which jq can write and JSON cannot contain."""
    return min(max(float(text), -sys.float_info.max), sys.float_info.max)


def _whole_or_float(text: str) -> int | float:
    """Return a float, or the integer that it equals."""
    value = float(text)
    return int(value) if value.is_integer() and -(2.0**63) <= value < 2.0**63 else value


POOLS: "weakref.WeakSet[Pool]" = weakref.WeakSet()


def _for_each_pool(action: Callable[[Pool], None]) -> Callable[[], None]:
    """Return a function that applies an action to every pool of this process."""

    def apply() -> None:
        for pool in tuple(POOLS):
            action(pool)

    return apply


@cache
def _follow_process() -> None:
    """Close the pools when this process ends, and let a forked one have helpers of its own. For the first pool."""
    atexit.register(_for_each_pool(Pool.close))
    os.register_at_fork(after_in_child=_for_each_pool(Pool.drop_helpers))


SECONDS = 2.0
"""The time for the scripts of one document. Those that are left then are not checked."""
MAX_KNOWN = 10_000
MAX_JQ_LENGTH, MAX_JQ_NESTING = 10_000, 500
"""A larger jq program is not checked: the compiler takes more than linear time, and nothing interrupts it."""
CHECKERS = {"javascript": "javascript-syntax", "jq": "jq-syntax", "python": "python-syntax"}


class SyntaxFault(NamedTuple):
    """A syntax error and its place in the script, from 1; 0 if the engine does not name it."""

    message: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.message
        return f"{self.message} (line {self.line}{f', column {self.column}' if self.column else ''})"


class ScriptText(NamedTuple):
    """A script and its language: `javascript`, `jq` or `python`."""

    language: str
    source: str


_known: Slot[dict[bytes, SyntaxFault | None]] = process_state.slot(dict)


def syntax_faults(scripts: Iterable[ScriptText]) -> dict[ScriptText, SyntaxFault]:
    """Return the faults of the scripts that cannot be parsed.

    A script counts as free of faults if no helper process is available to parse it.
    """
    known = _known.value
    wanted = {script: _digest(script) for script in scripts if not _is_slow(script)}
    for language in CHECKERS:
        fresh = [script for script, digest in wanted.items() if script.language == language and digest not in known]
        if fresh:
            _parse(language, fresh)
    faults = ((script, known.get(digest)) for script, digest in wanted.items())
    return {script: fault for script, fault in faults if fault is not None}


def _is_slow(script: ScriptText) -> bool:
    if script.language != "jq":
        return False
    if len(script.source) > MAX_JQ_LENGTH:
        return True
    nesting = accumulate({"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(letter, 0) for letter in script.source)
    return max(nesting, default=0) > MAX_JQ_NESTING


def _parse(language: str, scripts: list[ScriptText]) -> None:
    try:
        checked = evaluate(CHECKERS[language], "", [each.source for each in scripts], SECONDS, key="syntax")
    except ScriptsUnavailable:
        return
    known = _known.value
    if len(known) > MAX_KNOWN:
        known.clear()
    # After the time limit, the list is shorter than that of the scripts.
    for script, found in zip(scripts, checked.value or (), strict=False):
        known[_digest(script)] = None if found is None else SyntaxFault(*found)


def _digest(script: ScriptText) -> bytes:
    return blake2b(f"{script.language}\0{script.source}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
