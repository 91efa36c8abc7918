"""Runs of a server of the test kit, as tests wait for them and assert on them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..tools.remote.client import ApiClient

Document = dict[str, Any]
UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
COMPLETED = "COMPLETED"
ENDED = (COMPLETED, "FAILED", "TIMED_OUT", "TERMINATED")


class RunNotEnded(AssertionError):
    """A run did not reach what the test waits for. The message has the reason, and the timeline of the run."""


@dataclass(frozen=True)
class TaskAttempt:
    """One attempt of a step: the task that a worker gets. The names are those of Conductor's API in snake case."""

    id: str
    ref: str
    """The reference of the step, for example `charge`; in a loop with the iteration, for example `charge__2`."""
    name: str
    """The name of the task, which is that of its queue."""
    type: str
    status: str
    input: Document
    output: Document
    reason: str
    """Why it has not completed, or an empty text."""
    retry_count: int
    """The number of attempts before this one."""
    worker: str
    scheduled_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @property
    def is_for_workers(self) -> bool:
        """Return True for the task of a worker, whose type is its name in Conductor's API."""
        return self.type == self.name

    @classmethod
    def parse(cls, document: Document) -> "TaskAttempt":
        """Return the attempt of a document of the API."""
        return cls(
            id=document["taskId"],
            ref=document["referenceTaskName"],
            name=document.get("taskDefName") or document["taskType"],
            type=document["taskType"],
            status=document["status"],
            input=document.get("inputData") or {},
            output=document.get("outputData") or {},
            reason=document.get("reasonForIncompletion") or "",
            retry_count=document.get("retryCount") or 0,
            worker=document.get("workerId") or "",
            scheduled_at=_parse_time(document["scheduledTime"]) or datetime.fromtimestamp(0, UTC),
            started_at=_parse_time(document.get("startTime")),
            ended_at=_parse_time(document.get("endTime")),
        )


class StartedRun:
    """A run of a workflow. Its properties are as of the last call of a method, until `refresh` reads it again."""

    def __init__(self, api: ApiClient, id: str, wait_for: "WaitFor") -> None:
        self._api, self._wait_for = api, wait_for
        self.id = id
        self._document: Document = {}
        self._cause = ""
        self.refresh()

    @property
    def name(self) -> str:
        """Return the name of the workflow."""
        return str(self._document["workflowName"])

    @property
    def status(self) -> str:
        """Return `RUNNING`, `PAUSED`, `COMPLETED`, `FAILED`, `TIMED_OUT` or `TERMINATED`."""
        return str(self._document["status"])

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED

    @property
    def input(self) -> Document:
        return self._document.get("input") or {}

    @property
    def output(self) -> Document:
        return self._document.get("output") or {}

    @property
    def variables(self) -> Document:
        return self._document.get("variables") or {}

    @property
    def reason(self) -> str:
        """Return why the run has failed, or an empty text."""
        return self._document.get("reasonForIncompletion") or ""

    @property
    def cause(self) -> str:
        """Return the sentence that explains the status, as the page of the run shows it."""
        return self._cause

    @property
    def document(self) -> Document:
        """Return the run as the API returns it."""
        return self._document

    @property
    def all_attempts(self) -> list[TaskAttempt]:
        """Return the attempts of all steps, in the order in which they were scheduled."""
        return [TaskAttempt.parse(each) for each in self._document.get("tasks") or ()]

    def attempts(self, ref: str) -> list[TaskAttempt]:
        """Return the attempts of a step, the oldest first; an empty list if the step was not reached."""
        return [each for each in self.all_attempts if each.ref == ref]

    def task(self, ref: str) -> TaskAttempt:
        """Return the last attempt of a step.

        Raises:
            AssertionError: when the step was not reached.
        """
        if found := self.attempts(ref):
            return found[-1]
        raise AssertionError(f"The run has not reached the step {ref!r}.\n\n{self}")

    def refresh(self) -> "StartedRun":
        """Read the run from the server."""
        self._document = self._api.get("workflow", self.id, includeTasks="true")
        self._cause = self._api.get("insight", "runs", self.id, "cause")["sentence"]
        return self

    def wait(self, *, skip_time: bool = True, timeout: float | None = None) -> "StartedRun":
        """Wait until the run has ended.

        `skip_time`: whether to skip the times in which nothing happens. `timeout`: the longest real time of the wait in
        seconds; by default that of the server.

        Raises:
            RunNotEnded: when it does not end.
        """
        self._wait_for(self, "", skip_time, timeout)
        return self

    def wait_for_task(self, ref: str, *, skip_time: bool = True, timeout: float | None = None) -> TaskAttempt:
        """Wait until a step waits for its worker or for a person, and return its task.

        `skip_time`, `timeout`: as for `wait`.

        Raises:
            RunNotEnded: when the run does not reach it.
            AssertionError: when the run has ended without an open task of the step.
        """
        self._wait_for(self, ref, skip_time, timeout)
        found = self.task(ref)
        if self.has_ended:
            raise AssertionError(f"The run has ended, so the step {ref!r} does not wait any more.\n\n{self}")
        return found

    def complete(self, ref: str, output: Document | None = None, *, status: str = COMPLETED) -> "StartedRun":
        """Report the result of an open step, in the place of a worker, a person or another system.

        `status`: `COMPLETED`, `FAILED`, `FAILED_WITH_TERMINAL_ERROR` or `IN_PROGRESS`.
        """
        self._api.post("tasks", self.id, ref, status, body=output or {})
        return self.refresh()

    def assert_completed(self) -> "StartedRun":
        """Assert that the run has completed. The error has its cause and its timeline."""
        return self.assert_status(COMPLETED)

    def assert_failed(self, reason: str = "") -> "StartedRun":
        """Assert that the run has failed. `reason`: a text that its reason must contain."""
        self.assert_status("FAILED")
        assert reason in self.reason, f"The reason of the failure is {self.reason!r}, without {reason!r}.\n\n{self}"
        return self

    def assert_status(self, status: str) -> "StartedRun":
        """Assert that the run has a status. The error has its cause and its timeline."""
        assert self.status == status, f"The run is {self.status}, not {status}.\n\n{self}"
        return self

    def timeline(self) -> str:
        """Return the attempts as lines of a text: when each began since the start, its duration, and its result."""
        origin = self._document.get("createTime") or self._document.get("startTime") or 0
        return "\n".join(_describe(each, origin) for each in self._document.get("tasks") or ()) or "  (no task)"

    def __repr__(self) -> str:
        return f"<Run of {self.name}: {self.status}. {self._cause}>"

    def __str__(self) -> str:
        return f"{self.name} {self.id}: {self.status}\n{self._cause}\n\n{self.timeline()}"


def _describe(task: Document, origin: int) -> str:
    began = task.get("startTime") or task["scheduledTime"]
    ended = task.get("endTime") or 0
    spent = f"for {format_span(ended - began)}" if ended else ""
    reason = task.get("reasonForIncompletion") or ""
    line = (
        f"  +{format_span(began - origin):<10} {task['referenceTaskName']:<20} {task['taskType']:<12} "
        f"{task['status']:<12} {spent:<10} {reason.splitlines()[0] if reason else ''}"
    )
    return line.rstrip()


def format_span(milliseconds: int) -> str:
    """Return a duration in its two largest units, such as `1d 2h`, without Django's translations."""
    left, parts = max(milliseconds, 0), []
    for unit in ("d", "h", "m", "s", "ms"):
        count, left = divmod(left, UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0ms"


def _parse_time(moment: int | None) -> datetime | None:
    return datetime.fromtimestamp(moment / 1000, UTC) if moment else None


WaitFor = Callable[[StartedRun, str, bool, float | None], None]
"""Waits until a run has ended, or has an open task of the reference.

It skips time if the third argument is true. The fourth is the longest wait in seconds.
"""
