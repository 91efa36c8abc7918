"""What this version does differently with the definitions that runs follow and clients start."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError
from django.db.models import Count

from conductor_app.core.document.workflow import read_definition
from conductor_app.core.step_tree import walk
from conductor_app.engine.definitions.definition_commands import validate_workflow
from conductor_app.management.upgrade_check import Finding
from conductor_app.models import ResolvedDefinition, Run, WorkflowDefinition


@dataclass(frozen=True)
class BehaviorChange:
    """A change of what steps do. `text`: completes "step x: …". `applies`: returns True for an affected step."""

    text: str
    applies: Callable[[Mapping[str, Any]], bool]


BEHAVIOR_CHANGES: tuple[BehaviorChange, ...] = ()
"""The changes since the previous release that affect existing definitions. The release notes explain each."""


def check_definitions(changes: Sequence[BehaviorChange] = BEHAVIOR_CHANGES) -> Iterator[Finding]:
    """Yield a problem for each definition of open runs that this version cannot execute, and notes on the others."""
    try:
        yield from [*_check_open_runs(changes), *_check_current_definitions()]
    except DatabaseError:
        yield Finding("Definitions cannot be checked before the migrations: their tables change.")


def _check_open_runs(changes: Sequence[BehaviorChange]) -> Iterator[Finding]:
    rows = Run.objects.open().order_by().values_list("resolved_definition_id").annotate(count=Count("pk"))
    counts = dict(rows.values_list("resolved_definition_id", "count"))
    for hash, count in counts.items():
        row = ResolvedDefinition.objects.filter(pk=hash).first()
        if row is None:
            continue
        runs = f"{count:,} open {'run' if count == 1 else 'runs'} of {row.name} version {row.version}"
        yield from check_document(row.document, runs, changes)


def check_document(document: dict[str, Any], runs: str, changes: Iterable[BehaviorChange]) -> Iterator[Finding]:
    """Yield what this version does differently with a resolved document. `runs`: the words for its open runs."""
    try:
        read_definition(document)
    except Exception as error:
        # Whatever the error is, these runs would fail with it.
        yield Finding(f"This version cannot continue {runs}: {error}", is_problem=True)
        return
    steps = [(spot.ref, spot.step) for spot in walk(document.get("tasks"))]
    for change in changes:
        if refs := [ref for ref, step in steps if change.applies(step)]:
            yield Finding(f"{runs}: step {', '.join(refs[:5])}: {change.text}")


def _check_current_definitions() -> Iterator[Finding]:
    for row in WorkflowDefinition.objects.filter(archived_at=None).order_by("name", "version").iterator():
        if errors := validate_workflow(row.document):
            first = f"{errors[0].path}: {errors[0].message}"
            yield Finding(f"This version refuses to save {row.name} version {row.version} unchanged: {first}")
