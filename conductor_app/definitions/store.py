"""Stored definitions: the revision of all of them, and resolved definitions, parsed once and cached by their hash."""

import hashlib
from functools import lru_cache
from typing import Any

from django.db.models import F

from ..access import audit
from ..core.definition import Definition, RunLimits, path_to_step
from ..core.document.reading import read_definition
from ..db.fields import dumps
from ..db.statements import fetch
from ..payloads.store import OVERHEAD_BYTES
from ..runs.models import Task
from ..settings import conf
from .models import DefinitionRevision, ResolvedDefinition

REQUIRE_REVISION = "SELECT 1 / COUNT(*) FROM conductor_definitionrevision WHERE id = 1 AND revision = %s"
"""A statement that fails if a definition has changed since this revision."""


def definitions_revision() -> int:
    """Return a number that every change of a definition increases."""
    rows = fetch("SELECT revision FROM conductor_definitionrevision WHERE id = 1")
    return rows[0][0] if rows else 0


@lru_cache(maxsize=1000)
def load_definition(hash: str) -> Definition:
    """Return the resolved definition with this hash. It never changes, so it is cached."""
    return parse_document(ResolvedDefinition.objects.get(pk=hash).document, hash)


def parse_document(document: dict[str, Any], hash: str = "") -> Definition:
    limits = RunLimits(
        conf.max_workflow_depth,
        conf.max_tasks_per_workflow,
        conf.max_loop_iterations,
        conf.max_history_entries,
        max_value_bytes(),
        conf.max_forked_tasks,
    )
    return read_definition(
        document, hash=hash, publishes_task_events=bool(conf.task_status_listener_url), limits=limits
    )


def max_value_bytes() -> int:
    """Return the maximum size of a value that expressions compose: that of the largest payload."""
    return max(conf.task_payload_max_bytes, conf.workflow_payload_max_bytes) + OVERHEAD_BYTES


def save_definition(document: dict[str, Any], now: int) -> Definition:
    """Store a resolved document, so that runs can follow it, and return its definition."""
    hash = hashlib.sha256((dumps(document) or "").encode()).hexdigest()
    definition = parse_document(document, hash)
    ResolvedDefinition.objects.bulk_create(
        [
            ResolvedDefinition(
                hash=hash, name=definition.name, version=definition.version, document=document, created_at=now
            )
        ],
        ignore_conflicts=True,
    )
    return definition


def parsed_definition(hash: str) -> Definition | None:
    try:
        return load_definition(hash)
    except ResolvedDefinition.DoesNotExist:
        return None


def step_after(hash: str, ref: str) -> str:
    """Return the next step in the same sequence, or an empty text if there is none or `ref` is unknown."""
    definition = parsed_definition(hash)
    path = path_to_step(definition.document.get("tasks") or (), ref) if definition else ()
    return next(iter(path[-1].after), "") if path else ""


def attempts_allowed(definition: Definition | None, task: Task) -> int | None:
    """Return the attempts that the policy of a task allows, or None if the definition does not contain its step."""
    step = definition.step(task.ref) if definition else None
    return step.policy.retries + 1 if step else None


def record_definition_change(kind: str, id: str, action: str, by: str, reason: str, now: int) -> None:
    """Record who changed a definition, and invalidate the definition caches of all processes."""
    audit.record(kind, id, action, by, reason=reason, at=now)
    bump_definitions_revision()


def bump_definitions_revision() -> None:
    """Invalidate the definition caches of all processes."""
    if not DefinitionRevision.objects.filter(pk=1).update(revision=F("revision") + 1):
        DefinitionRevision.objects.create(pk=1, revision=1)
