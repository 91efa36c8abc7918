"""Keeps the parts of a streamed reply as log lines of the task, so that its page shows the progress."""

import logging
from time import monotonic

from conductor_app import clock
from conductor_app.access.redaction import redact
from conductor_app.engine.queues.queue_lookups import release_connection
from conductor_app.engine.tasks.task_commands import add_logs
from conductor_app.models.claimed_attempts import ClaimedAttempt
from conductor_app.transient_errors import describe_transient, discard_broken_connection, is_transient

log = logging.getLogger(__name__)

WRITE_SECONDS = 1.0


class StreamedLog:
    """Writes what has arrived, at most once per second.

    The text of a task with secrets or masked values is written when it is complete: only then can they be recognized.
    """

    def __init__(self, attempt: ClaimedAttempt) -> None:
        self._attempt = attempt
        self._secrets = tuple(attempt.task.step_state.get("secrets", ()))
        self._is_confidential = bool(self._secrets or attempt.masked)
        self._parts: list[str] = []
        self._written_at = monotonic()

    def add(self, text: str) -> None:
        """Add a part of the reply."""
        self._parts.append(text)
        if not self._is_confidential and monotonic() - self._written_at >= WRITE_SECONDS:
            self.write()

    def write(self) -> None:
        """Write the parts that are not written yet."""
        text = "".join(self._parts)
        if not text:
            return
        now, self._written_at = clock.now(), monotonic()
        try:
            add_logs(self._attempt.id, [(redact(text, self._secrets, tuple(self._attempt.masked)), now)], now)
        except Exception as error:
            if not is_transient(error):
                raise
            # The log only shows the progress: the paid reply must not be lost with it.
            why = describe_transient(error)
            log.warning("progress_not_written", extra={"attempt_id": self._attempt.id, "why": why})
            discard_broken_connection()
            return
        self._parts.clear()
        release_connection()
