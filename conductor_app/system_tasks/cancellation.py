"""Stop the work of built-in tasks that have ended without it, for example by the termination of their run.

One thread of each process looks at the attempts that the process executes, in one statement for all of them. Tasks that
end before its first look cost nothing. What an exchange must do to end early, it registers with the cancellation of its
thread: its sockets are shut down, or the database cancels its statement.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import NamedTuple

from django.db import connections

from ..core.states import ATTEMPT
from ..db.statements import is_in_transaction
from ..db.transient_errors import discard_broken_connection
from ..runs.models import Attempt
from ..tasks.store import ClaimedAttempt
from ..utils import process_state

log = logging.getLogger(__name__)
CHECK_SECONDS = 0.5
"""The period of looks at the attempts of this process that have been executed for that long."""
IDLE_SECONDS = 30.0
"""The time without attempts after which the thread ends."""
CANCELED = "the task was canceled"
_thread = threading.local()


class Cancellation:
    """Whether an attempt has ended without the work of this process, and what ends that work early."""

    def __init__(self) -> None:
        self.is_canceled = False
        self._lock = threading.Lock()
        self._stops: list[Callable[[], object]] = []

    @contextmanager
    def stopping_by(self, stop: Callable[[], object]) -> Iterator[None]:
        """Call `stop`, from another thread, if the attempt is canceled during the block or has been before.

        It must return soon. It may be called while the block ends.
        """
        with self._lock:
            self._stops.append(stop)
            was_canceled = self.is_canceled
        try:
            if was_canceled:
                _call(stop)
            yield
        finally:
            with self._lock, contextlib.suppress(ValueError):
                self._stops.remove(stop)

    def cancel(self) -> None:
        """End the work: what has begun last ends first."""
        with self._lock:
            self.is_canceled, stops = True, self._stops[::-1]
        for stop in stops:
            _call(stop)


def _call(stop: Callable[[], object]) -> None:
    try:
        stop()
    except Exception as error:
        # The work ends at its own time limit, and its result is discarded.
        log.warning("work_not_stopped", extra={"why": type(error).__name__})


def current_cancellation() -> Cancellation:
    """Return the cancellation of the attempt that this thread executes, or one that nothing cancels."""
    return getattr(_thread, "cancellation", None) or Cancellation()


class _Executed(NamedTuple):
    attempt: ClaimedAttempt
    cancellation: Cancellation
    began_at: float


class CancellationWatch:
    """The attempts that the threads of this process execute, and the thread that looks whether they have ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._executed: dict[str, _Executed] = {}
        self._has_attempts = threading.Event()
        self._is_running = False

    @contextmanager
    def watching(self, attempt: ClaimedAttempt) -> Iterator[Cancellation]:
        """Watch an attempt, which this thread executes, during the block.

        An attempt that was claimed in an open transaction is not watched: no other connection sees its row.
        """
        cancellation = _thread.cancellation = Cancellation()
        is_watched = not is_in_transaction()
        if is_watched:
            self._add(_Executed(attempt, cancellation, monotonic()))
        try:
            yield cancellation
        finally:
            _thread.cancellation = None
            if is_watched:
                self._remove(attempt)

    def _add(self, executed: _Executed) -> None:
        with self._lock:
            self._executed[executed.attempt.id] = executed
            self._has_attempts.set()
            begins, self._is_running = not self._is_running, True
        if begins:
            threading.Thread(target=self._look_forever, name="watches for canceled tasks", daemon=True).start()

    def _remove(self, attempt: ClaimedAttempt) -> None:
        with self._lock:
            del self._executed[attempt.id]
            if not self._executed:
                self._has_attempts.clear()

    def _look_forever(self) -> None:
        while self._has_attempts.wait(IDLE_SECONDS) or not self._ends():
            sleep(CHECK_SECONDS)
            self.look()

    def _ends(self) -> bool:
        with self._lock:
            self._is_running = bool(self._executed)
            return not self._is_running

    def look(self) -> None:
        """Cancel the work of attempts that have ended. It closes the connection of this thread."""
        begun_before = monotonic() - CHECK_SECONDS
        with self._lock:
            executed = [each for each in self._executed.values() if each.began_at <= begun_before]
        if not executed:
            return
        try:
            ended = _ended_attempts([each.attempt for each in executed])
        except Exception as error:
            log.warning("canceled_tasks_unknown", extra={"why": type(error).__name__})
            discard_broken_connection()
            return
        finally:
            connections.close_all()
        for each in executed:
            if each.attempt.id in ended and not each.cancellation.is_canceled:
                log.info("built_in_work_canceled", extra={"attempt_id": each.attempt.id})
                each.cancellation.cancel()


def _ended_attempts(attempts: Collection[ClaimedAttempt]) -> set[str]:
    """Return the ids of the attempts that have ended, are removed, or were reopened since."""
    rows = Attempt.objects.filter(pk__in=[attempt.id for attempt in attempts])
    found = {id: (status, at) for id, status, at in rows.values_list("id", "status", "scheduled_at")}
    return {
        attempt.id
        for attempt in attempts
        if attempt.id not in found
        or found[attempt.id][0] in ATTEMPT.final
        or found[attempt.id][1] != attempt.scheduled_at
    }


CANCELLATIONS = process_state.slot(CancellationWatch)
