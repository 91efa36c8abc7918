"""Resolved definitions, parsed once and cached by their hash."""

import hashlib
from functools import lru_cache
from typing import Any

from .. import conf
from ..core.definition import Definition, RunLimits
from ..core.document import read_definition
from ..models import ResolvedDefinition
from ..models.fields import dumps
from .payload_placement import OVERHEAD_BYTES
from .statements import fetch


def definitions_revision() -> int:
    """Return a number that every change of a definition increases."""
    rows = fetch("SELECT revision FROM conductor_definitionrevision WHERE id = 1")
    return rows[0][0] if rows else 0


@lru_cache(maxsize=1000)
def load_definition(hash: str) -> Definition:
    """Return the resolved definition with this hash."""
    return parse_document(ResolvedDefinition.objects.get(pk=hash).document, hash)


def parse_document(document: dict[str, Any], hash: str = "") -> Definition:
    """Return the definition of a resolved document."""
    limits = RunLimits(
        conf.max_workflow_depth,
        conf.max_tasks_per_workflow,
        conf.max_loop_iterations,
        conf.max_history_entries,
        max_value_bytes(),
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
