"""The pool of helper processes that evaluate scripts. They are started on demand."""

import atexit
import json
import os
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from conductor_app.scripts.helper_queue import HelperQueue
from conductor_app.scripts.process import Helper, HelperDied, HelperTimedOut, Isolation

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
    language: str, source: str, inputs: Any, limit_seconds: float | None = None, *, key: str = ""
) -> EvaluationResult:
    """Evaluate a script in the pool of this process, which keys, such as names of definitions, share fairly.

    `limit_seconds`: the time limit, `EVALUATION_SECONDS` if it is None.

    Raises:
        ScriptsUnavailable: when no helper process is available.
    """
    return shared_pool().evaluate(language, source, inputs, limit_seconds or EVALUATION_SECONDS, key)


@cache
def shared_pool() -> "Pool":
    """Return the pool of this process. It starts helpers on demand."""
    return Pool()


class Pool:
    """At most `size` busy helpers, and as many idle helpers per engine. Further callers wait."""

    def __init__(self, size: int = POOL_SIZE, queue_seconds: float = QUEUE_SECONDS) -> None:
        self._size, self._queue_seconds = size, queue_seconds
        self.drop_helpers()
        POOLS.add(self)

    def evaluate(
        self, language: str, source: str, inputs: Any, limit_seconds: float = EVALUATION_SECONDS, key: str = ""
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
        ticket, result = self._queue.enter(key), None
        try:
            if not ticket.granted.wait(self._queue_seconds):
                raise ScriptsUnavailable(f"All {self._size} helper processes were busy for {self._queue_seconds:g} s.")
            result = self._evaluate(language, (order_text, text), limit_seconds)
        finally:
            self._queue.leave(ticket, None if result is None else result.timed_out)
        return result

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
            result = parse_answer(helper.ask(frames, limit + GRACE_SECONDS), limit, has_floats=language != "javascript")
            return result
        except HelperTimedOut:
            if helper.is_stopped and not is_last:
                return None
            return EvaluationResult(error=timeout_message(limit), timed_out=True)
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


def input_names(inputs: Any) -> list[str]:
    """Return the names of the inputs if they are an object."""
    return [name for name in inputs if isinstance(name, str)] if isinstance(inputs, dict) else []


def parse_answer(answer: bytes, limit: float, has_floats: bool) -> EvaluationResult | None:
    """Return the result in the response of a helper, or None if it has not evaluated the script.

    `has_floats`: True if the language distinguishes 1 from 1.0.
    """
    try:
        document = json.loads(answer, parse_float=finite_float if has_floats else whole_or_float)
    except RecursionError:
        return EvaluationResult(error="The script's result is nested too deeply.")
    if document is None:
        return None
    timed_out = document.get("timed_out", False)
    error = timeout_message(limit) if timed_out else document.get("error")
    return EvaluationResult(document.get("value"), error, timed_out, tuple(document.get("logs", ())))


def timeout_message(limit: float) -> str:
    """Return the message for a script that exceeded its time limit in seconds."""
    return f"The script ran longer than {limit:g} s and was stopped."


def finite_float(text: str) -> float:
    """Return a float. The largest one replaces those beyond, which jq can write and JSON cannot contain."""
    return min(max(float(text), -sys.float_info.max), sys.float_info.max)


def whole_or_float(text: str) -> int | float:
    """Return a float, or the integer that it equals."""
    value = float(text)
    return int(value) if value.is_integer() and -(2.0**63) <= value < 2.0**63 else value


POOLS: "weakref.WeakSet[Pool]" = weakref.WeakSet()


def for_each_pool(action: Callable[[Pool], None]) -> Callable[[], None]:
    """Return a function that applies an action to every pool of this process."""

    def apply() -> None:
        for pool in tuple(POOLS):
            action(pool)

    return apply


atexit.register(for_each_pool(Pool.close))
os.register_at_fork(after_in_child=for_each_pool(Pool.drop_helpers))
