"""Run bundles: a run with its definition, attempts and history in one document, to be opened on another server.

A bundle contains what the pages show: masked values are redacted. An opened bundle is untrusted input: each field
accepts only a value of its type, and nothing is saved.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.errors import Conflict, Invalid
from ...core.primitives import JsonValue
from ..documents.workflows import run_document
from ..models import Attempt, HistoryEntry, Run

KIND, FORMAT = "run", 1
MAX_ATTEMPTS, MAX_HISTORY = 20_000, 5_000
LAST_MOMENT = 253_402_300_799_000
"""The end of the year 9999, the latest date that can be represented."""
REPEATED_FIELDS = ("workflowTask", "taskDefinition")
"""Fields of each attempt that repeat the definition."""
ITERATION_SUFFIX = re.compile(r"(__\d+)+$")
STATUSES = {"SCHEDULED": "PENDING", "IN_PROGRESS": "LEASED", "FAILED_WITH_TERMINAL_ERROR": "FAILED_FOR_GOOD"}
"""Attempt statuses whose names on the wire differ from those on the pages."""


def export_run(run: Run, now: int, by: str, server: str) -> dict[str, Any]:
    """Return the bundle of a run.

    Raises:
        Conflict: when the run has more than MAX_ATTEMPTS attempts.
    """
    if Attempt.objects.filter(run_id=run.pk).values("pk")[: MAX_ATTEMPTS + 1].count() > MAX_ATTEMPTS:
        raise Conflict(f"Run {run.pk} has more than {MAX_ATTEMPTS} attempts, the maximum for a bundle.")
    document = run_document(run)
    for task in document["tasks"]:
        for name in REPEATED_FIELDS:
            task.pop(name, None)
    entries = HistoryEntry.objects.filter(run_id=run.pk).order_by("-revision")[:MAX_HISTORY]
    fields = ("revision", "at", "by", "reason", "effects")
    return {
        "bundle": KIND,
        "format": FORMAT,
        "takenAt": now,
        "takenBy": by,
        "server": server,
        "labels": list(run.labels.order_by("name").values_list("name", flat=True)),
        "run": document,
        "history": [{name: getattr(entry, name) for name in fields} for entry in entries],
    }


@dataclass(frozen=True, slots=True)
class BundledAttempt:
    """One attempt in a bundle."""

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
    input: JsonValue
    output: JsonValue

    @property
    def ref(self) -> str:
        """Return the reference of the step."""
        return ITERATION_SUFFIX.sub("", self.task) if self.iteration else self.task


@dataclass(frozen=True, slots=True)
class BundledHistoryEntry:
    """One decision in the history of a bundle."""

    revision: int
    at: int | None
    by: str
    reason: str
    effects: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class RunBundle:
    """Content of a bundle."""

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


def parse_bundle(document: JsonValue) -> RunBundle:
    """Parse a bundle.

    Raises:
        Invalid: when the document is not a run bundle, or has an unsupported format.
    """
    bundle = _as_mapping(document)
    if bundle.get("bundle") != KIND or not isinstance(bundle.get("run"), dict):
        raise Invalid('Not a run bundle: expected "bundle": "run" and an object "run".')
    if bundle.get("format") != FORMAT:
        raise Invalid(f"Unsupported bundle format {bundle.get('format')!r:.50}. This server reads format {FORMAT}.")
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
    for task in filter(None, map(_as_mapping, _as_list(run.get("tasks"))[:MAX_ATTEMPTS])):
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
    for entry in filter(None, map(_as_mapping, _as_list(bundle.get("history"))[:MAX_HISTORY])):
        effects = [each for each in _as_list(entry.get("effects")) if isinstance(each, dict)]
        texts = (_as_text(entry.get("by")), _as_text(entry.get("reason")))
        yield BundledHistoryEntry(_as_number(entry.get("revision")), _as_time(entry.get("at")), *texts, effects)


def _as_mapping(value: JsonValue) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_list(value: JsonValue) -> list[Any]:
    return value if isinstance(value, list) else []


def _as_text(value: JsonValue) -> str:
    return value[:4_000] if isinstance(value, str) else ""


def _as_number(value: JsonValue) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _as_time(value: Any) -> int | None:
    return value if 0 < _as_number(value) <= LAST_MOMENT else None
