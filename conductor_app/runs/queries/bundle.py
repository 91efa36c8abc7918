"""Run bundles: a run with its definition, attempts and history in one document, for a report of a problem.

A bundle contains what the pages show: masked values are redacted.
"""

from typing import Any

from ...core.errors import Conflict
from ..documents.workflows import run_document
from ..models import Attempt, HistoryEntry, Run

KIND, FORMAT = "run", 1
MAX_ATTEMPTS, MAX_HISTORY = 20_000, 5_000
REPEATED_FIELDS = ("workflowTask", "taskDefinition")
"""Fields of each attempt that repeat the definition."""


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
