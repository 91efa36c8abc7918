"""Bundles of runs: a run with all that explains it, as a document that a colleague opens elsewhere.

What is in one is what pages show: whatever a definition masks is hidden in it. What is opened has come from anywhere:
of each place only the kind of value is taken that belongs there, and nothing is written.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.errors import Conflict, Invalid
from ..models import Attempt, HistoryEntry, Run
from .execution import run_document

KIND, FORMAT = "run", 1
MOST_ATTEMPTS, MOST_HISTORY = 20_000, 5_000
LAST_MOMENT = 253_402_300_799_000
"""The end of the year 9999: behind it there are no dates."""
REPEATED_FIELDS = ("workflowTask", "taskDefinition")
"""What each attempt says again that stands in the definition."""
ITERATION_SUFFIX = re.compile(r"(__\d+)+$")
STATUSES = {"SCHEDULED": "PENDING", "IN_PROGRESS": "LEASED", "FAILED_WITH_TERMINAL_ERROR": "FAILED_FOR_GOOD"}
"""Clients' words for the states of an attempt, where pages have others."""


def export_run(run: Run, now: int, by: str, server: str) -> dict[str, Any]:
    """The run with its definition, attempts and history. Raises Conflict where it is too large for one document."""
    if Attempt.objects.filter(run_id=run.pk).values("pk")[: MOST_ATTEMPTS + 1].count() > MOST_ATTEMPTS:
        raise Conflict(f"A bundle holds {MOST_ATTEMPTS} attempts at most, and run {run.pk} has more.")
    document = run_document(run)
    for task in document["tasks"]:
        for name in REPEATED_FIELDS:
            task.pop(name, None)
    entries = HistoryEntry.objects.filter(run_id=run.pk).order_by("-revision")[:MOST_HISTORY]
    shown = ("revision", "at", "by", "reason", "effects")
    return {
        "bundle": KIND,
        "format": FORMAT,
        "takenAt": now,
        "takenBy": by,
        "server": server,
        "labels": list(run.labels.order_by("name").values_list("name", flat=True)),
        "run": document,
        "history": [{name: getattr(entry, name) for name in shown} for entry in entries],
    }


@dataclass(frozen=True, slots=True)
class BundledAttempt:
    """One try at a task, as the bundle tells of it."""

    task: str
    name: str
    type: str
    status: str
    number: int
    iteration: int
    worker: str
    reason: str
    scheduled_at: int | None
    started_at: int | None
    ended_at: int | None
    is_last: bool
    input: Any
    output: Any

    @property
    def ref(self) -> str:
        """The step that it is a try at."""
        return ITERATION_SUFFIX.sub("", self.task) if self.iteration else self.task


@dataclass(frozen=True, slots=True)
class BundledHistoryEntry:
    """One decision."""

    revision: int
    at: int | None
    by: str
    reason: str
    effects: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class RunBundle:
    """What a bundle holds."""

    id: str
    name: str
    version: int
    status: str
    reason: str
    correlation_id: str
    started_by: str
    created_at: int | None
    ended_at: int | None
    exported_at: int | None
    exported_by: str
    server: str
    labels: list[str]
    definition: dict[str, Any]
    documents: dict[str, Any]
    attempts: list[BundledAttempt]
    history: list[BundledHistoryEntry]


def parse_bundle(document: Any) -> RunBundle:
    """What the document holds. Raises Invalid where it is no bundle of a run."""
    bundle = _as_mapping(document)
    if bundle.get("bundle") != KIND or not isinstance(bundle.get("run"), dict):
        raise Invalid('This is no bundle of a run: those have "bundle": "run" and a "run".')
    if bundle.get("format") != FORMAT:
        raise Invalid(f"This bundle has a format that is not known here; known is {FORMAT}.")
    run = bundle["run"]
    return RunBundle(
        id=_as_text(run.get("workflowId")),
        name=_as_text(run.get("workflowName")),
        version=_as_number(run.get("workflowVersion")),
        status=_as_text(run.get("status"))[:40],
        reason=_as_text(run.get("reasonForIncompletion")),
        correlation_id=_as_text(run.get("correlationId")),
        started_by=_as_text(run.get("createdBy")),
        created_at=_as_time(run.get("startTime")),
        ended_at=_as_time(run.get("endTime")),
        exported_at=_as_time(bundle.get("takenAt")),
        exported_by=_as_text(bundle.get("takenBy")),
        server=_as_text(bundle.get("server")),
        labels=[_as_text(label) for label in _as_list(bundle.get("labels"))][:20],
        definition=_as_mapping(run.get("workflowDefinition")),
        documents={name: run.get(name) for name in ("input", "output", "variables")},
        attempts=list(_parse_attempts(run)),
        history=list(_parse_history(bundle)),
    )


def _parse_attempts(run: Mapping[str, Any]) -> Iterator[BundledAttempt]:
    for task in filter(None, map(_as_mapping, _as_list(run.get("tasks"))[:MOST_ATTEMPTS])):
        status = _as_text(task.get("status"))[:40]
        yield BundledAttempt(
            task=_as_text(task.get("referenceTaskName")),
            name=_as_text(task.get("taskDefName")),
            type=_as_text(task.get("taskType")),
            status=STATUSES.get(status, status),
            number=_as_number(task.get("retryCount")),
            iteration=_as_number(task.get("iteration")),
            worker=_as_text(task.get("workerId")),
            reason=_as_text(task.get("reasonForIncompletion")),
            scheduled_at=_as_time(task.get("scheduledTime")),
            started_at=_as_time(task.get("startTime")),
            ended_at=_as_time(task.get("endTime")),
            is_last=task.get("retried") is not True,
            input=task.get("inputData"),
            output=task.get("outputData"),
        )


def _parse_history(bundle: Mapping[str, Any]) -> Iterator[BundledHistoryEntry]:
    for entry in filter(None, map(_as_mapping, _as_list(bundle.get("history"))[:MOST_HISTORY])):
        effects = [each for each in _as_list(entry.get("effects")) if isinstance(each, dict)]
        said = (_as_text(entry.get("by")), _as_text(entry.get("reason")))
        yield BundledHistoryEntry(_as_number(entry.get("revision")), _as_time(entry.get("at")), *said, effects)


def _as_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _as_text(value: Any) -> str:
    return value[:4_000] if isinstance(value, str) else ""


def _as_number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _as_time(value: Any) -> int | None:
    return value if 0 < _as_number(value) <= LAST_MOMENT else None
