"""The shape of a built-in worker: it is given an attempt's input and says what became of the work."""

from dataclasses import dataclass, field
from typing import Any, Literal

from ..access.redaction import substitute_secrets
from ..models import Attempt

Status = Literal["COMPLETED", "FAILED", "FAILED_WITH_TERMINAL_ERROR", "IN_PROGRESS"]


@dataclass(frozen=True)
class WorkResult:
    """What a built-in worker reports of its attempt, in the words that a worker across the network uses."""

    status: Status
    output: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    callback_seconds: int = 0  # in progress: hand it out again after so long; 0: somebody else will report on it


class BuiltInWorker:
    """Does the tasks of one type. It sees the input alone, never the database."""

    type: str

    def inputs_of(self, attempt: Attempt) -> dict[str, Any]:
        """What it is told of an attempt: the input, with the secrets put in that the step's author names."""
        return substitute_secrets(attempt.input, attempt.task.step_state.get("secrets", ()))

    def perform(self, inputs: dict[str, Any]) -> WorkResult:
        """Do the work and say how it went; a bad input is an outcome, not an exception."""
        raise NotImplementedError

    def perform_again(self, inputs: dict[str, Any], polls: int) -> WorkResult:
        """Do the work of an attempt that is handed out for the `polls`th time, counted from one."""
        return self.perform(inputs)
