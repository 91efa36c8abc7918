"""The interface of built-in workers: they get the input of an attempt and return its result."""

from dataclasses import dataclass, field
from typing import Any, Literal

from ..access.secrets import substitute_secrets
from ..tasks.store import ClaimedAttempt

Status = Literal["COMPLETED", "FAILED", "FAILED_WITH_TERMINAL_ERROR", "IN_PROGRESS"]


@dataclass(frozen=True)
class WorkResult:
    """The result of an attempt, as a remote worker would report it."""

    status: Status
    output: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    callback_seconds: int = (
        0  # If in progress: seconds until the attempt can be claimed again, or 0 if a client will report on it.
    )
    is_interrupted: bool = False  # A fault of this server prevented the work: the output of the attempt stays as it is.


class BuiltInWorker:
    """Executes the tasks of one type. Most workers use only their input, never the database."""

    type: str

    def work_on(self, attempt: ClaimedAttempt) -> WorkResult | None:
        """Execute a claimed attempt and return its result, or None if it was put back into its queue."""
        return self.perform_again(self.inputs_of(attempt), attempt.poll_count)

    def finish(self, attempt: ClaimedAttempt, result: WorkResult) -> None:
        """Delete what the worker has stored for the attempt, whose result is accepted."""

    def inputs_of(self, attempt: ClaimedAttempt) -> dict[str, Any]:
        """Return the input of an attempt, with the secrets resolved that the author of the step names."""
        return substitute_secrets(attempt.input, attempt.task.step_state.get("secrets", ()))

    def perform(self, inputs: dict[str, Any]) -> WorkResult:
        """Execute the work and return its result. An invalid input is a failed result, not an exception."""
        raise NotImplementedError

    def perform_again(self, inputs: dict[str, Any], polls: int) -> WorkResult:
        """Execute the work of an attempt at its `polls`th claim, counted from one."""
        return self.perform(inputs)
