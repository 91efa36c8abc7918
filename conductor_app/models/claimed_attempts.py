"""Claimed attempts: what a worker's response contains of an attempt, its task and its run."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..core.masking import MARK
from .fields import dumps, loads, loads_encrypted


class ClaimedAttemptTask(NamedTuple):
    """The task of a claimed attempt. `step_state_text` is JSON text."""

    ref: str
    iteration_path: str
    type: str
    status: str
    attempt_id: str
    iteration: int
    branch_head: str
    step_state_text: str

    @property
    def step_state(self) -> dict[str, Any]:
        """Return the step state. Masked values are `***`."""
        return loads(self.step_state_text) or {}

    def __str__(self) -> str:
        return "__".join([self.ref, *filter(None, self.iteration_path.split("."))])


class ClaimedAttemptRun(NamedTuple):
    """The run of a claimed attempt. `domains_text` is JSON text."""

    id: str
    name: str
    correlation_id: str
    priority: int
    resolved_definition_id: str
    version: int
    domains_text: str

    @property
    def domains(self) -> dict[str, str]:
        return loads(self.domains_text) or {}


@dataclass(slots=True)
class ClaimedAttempt:
    """An attempt that a worker has just claimed. Payloads are JSON texts, which most responses pass on unparsed.

    `masked`: the decrypted values of masked fields of its input, which must not appear in error messages.
    """

    id: str
    task_id: str
    run_id: str
    number: int
    seq: int
    status: str
    name: str
    queue: str
    domain: str
    scheduled_at: int
    started_at: int | None
    updated_at: int
    ended_at: int | None
    ends_at: int
    lease_ms: int
    delay_ms: int
    callback_ms: int
    rate_count: int
    rate_seconds: int
    poll_count: int
    worker: str
    reason: str
    previous_id: str
    child_id: str
    input_path: str
    output_path: str
    input_text: str
    output_text: str
    task: ClaimedAttemptTask
    run: ClaimedAttemptRun
    masked: Iterable[str] = ()

    @property
    def input(self) -> Any:
        """Return the parsed input."""
        return loads_encrypted(self.input_text)

    @input.setter
    def input(self, value: Any) -> None:
        self.input_text = dumps(value) or "null"

    @property
    def output(self) -> Any:
        """Return the parsed output."""
        return loads_encrypted(self.output_text)

    @output.setter
    def output(self, value: Any) -> None:
        self.output_text = dumps(value) or "null"

    @property
    def has_masked_values(self) -> bool:
        """True if a payload has encrypted parts."""
        return MARK in self.input_text or MARK in self.output_text
