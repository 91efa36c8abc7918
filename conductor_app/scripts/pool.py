"""Evaluation of users' programs: a few helper processes per server process, started when needed."""

import atexit
import json
import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from threading import BoundedSemaphore
from typing import Any

from conductor_app.scripts.process import Helper, HelperDied, HelperTimedOut

ENGINES = {"javascript": "javascript_jq", "jq": "javascript_jq", "python": "monty"}
"""The engine of each language. A helper process runs one engine, and starts when it is needed."""
MAX_INPUT_SIZE = 16 << 20
GRACE_SECONDS = 0.5
QUEUE_SECONDS = 30.0


class ScriptsUnavailable(Exception):
    """No helper process could take the script; it has not run and may be tried again."""


@dataclass(frozen=True)
class EvaluationResult:
    """The result of an evaluation: a value, or an error message."""

    value: Any = None
    error: str | None = None
    timed_out: bool = False
    logs: tuple[str, ...] = ()


def evaluate(
    language: str, source: str, inputs: Any, limit_seconds: float = 4.0, *, pool_size: int = 2
) -> EvaluationResult:
    """Evaluate a program in this process's helpers."""
    return shared_pool(pool_size).evaluate(language, source, inputs, limit_seconds)


@cache
def shared_pool(size):
    """Return the pool of this process. It starts no helper before the first evaluation."""
    return Pool(size)


class Pool:
    """At most `size` busy helpers, and as many idle ones of each engine. Further callers wait."""

    def __init__(self, size=2, queue_seconds=QUEUE_SECONDS):
        self._size, self._queue_seconds = size, queue_seconds
        self.drop_helpers()
        POOLS.add(self)

    def evaluate(self, language: str, source: str, inputs: Any, limit_seconds: float = 4.0) -> "EvaluationResult":
        """Evaluate `source` with `inputs`. Errors of the script are part of the result and not raised.

        Raises:
            ValueError: when the language is unknown.
        """
        if language not in ENGINES:
            raise ValueError(f"unknown script language {language!r}")
        if not isinstance(source, str):
            return EvaluationResult(error="The script is not text.")
        asked = {"language": language, "source": source, "limit": limit_seconds}
        if language == "python":
            asked["names"] = input_names(inputs)
        order = json.dumps(asked).encode("ascii")
        try:
            text = json.dumps(inputs, allow_nan=False).encode("ascii")
        except (TypeError, ValueError, RecursionError) as error:
            return EvaluationResult(error=f"The script's inputs cannot be written as JSON: {error}.")
        if len(text) + len(order) > MAX_INPUT_SIZE:
            return EvaluationResult(error="The script and its inputs are larger than 16 MB.")
        return self._ask(language, (order, text), limit_seconds)

    def idle_pids(self):
        """Return the process ids of the idle helpers."""
        return [helper.pid for helpers in self._idle.values() for helper in helpers]

    def close(self):
        """End every helper that waits for work."""
        for helpers in self._idle.values():
            while helpers:
                helpers.pop().kill()

    def drop_helpers(self):
        """Discard the helpers: after a fork they belong to the parent."""
        self._idle: dict[str, list[Helper]] = {engine: [] for engine in ENGINES.values()}
        self._permits = BoundedSemaphore(self._size)

    def _ask(self, language, frames, limit):
        if not self._permits.acquire(timeout=self._queue_seconds):
            raise ScriptsUnavailable(f"All {self._size} helper processes were busy for {self._queue_seconds:g} s.")
        try:
            return self._ask_helper(language, self._take(ENGINES[language]), frames, limit)
        finally:
            self._permits.release()

    def _ask_helper(self, language, helper, frames, limit):
        # A helper goes back only after a whole exchange: whatever interrupts one leaves the pipes in the middle.
        answer = None
        try:
            answer = helper.ask(frames, limit + GRACE_SECONDS)
        except HelperTimedOut:
            return EvaluationResult(error=timeout_message(limit), timed_out=True)
        except HelperDied as death:
            return EvaluationResult(error=f"The script brought its helper process down ({death}) and was stopped.")
        finally:
            if answer is None:
                helper.kill()
            else:
                self._idle[ENGINES[language]].append(helper)
        return parse_answer(answer, limit, is_exact=language == "python")

    def _take(self, engine):
        idle = self._idle[engine]
        while idle:
            helper = idle.pop()
            if helper.is_alive:
                return helper
            helper.kill()
        return start_helper(engine)


def start_helper(engine):
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
            raise ScriptsUnavailable(f"A helper process did not start: {error or 'it took too long'}.") from error
        raise
    return helper


def input_names(inputs):
    """Return the names of the inputs; only an object has any."""
    return [name for name in inputs if isinstance(name, str)] if isinstance(inputs, dict) else []


def parse_answer(answer, limit, is_exact=False):
    """Return the helper's JSON as an EvaluationResult.

    `is_exact`: the language distinguishes 1 from 1.0 and has integers of any size.
    """
    try:
        told = json.loads(answer) if is_exact else json.loads(answer, parse_int=parse_integer, parse_float=parse_float)
    except RecursionError:
        return EvaluationResult(error="The script's result is nested too deeply.")
    timed_out = told.get("timed_out", False)
    error = timeout_message(limit) if timed_out else told.get("error")
    return EvaluationResult(told.get("value"), error, timed_out, tuple(told.get("logs", ())))


def timeout_message(limit):
    """Return the message for a script that exceeded its time limit."""
    return f"The script ran longer than {limit:g} s and was stopped."


def parse_integer(text):
    """Return an integer within 64 bits; a larger one becomes a float, as in the script."""
    value = int(text)
    return value if -(2**63) <= value < 2**63 else float(text)


def parse_float(text):
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
