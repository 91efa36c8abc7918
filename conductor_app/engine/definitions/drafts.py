"""Commands on drafts of definitions, which belong to their authors, and on the simulation cases of workflows."""

from typing import Any

from django.db import transaction

from ... import clock
from ...core.errors import Invalid, NotFound
from ...models import DefinitionDraft, SaveRequirement, SimulationCase
from ...store.rows import strip_nul
from .. import audit

MAX_DRAFT_LENGTH = 5_000_000
MAX_CASES = 100


def save_draft(kind: str, name: str, text: str, base: str, by: str) -> None:
    """Save an author's draft of a definition. It replaces the previous draft.

    Raises:
        Invalid: when the draft is too long.
    """
    if len(text) > MAX_DRAFT_LENGTH:
        raise Invalid(f"A draft can have at most {MAX_DRAFT_LENGTH:,} characters (got {len(text):,}).")
    values = {"text": strip_nul(text), "base": base[:64], "updated_at": clock.now()}
    DefinitionDraft.objects.update_or_create(kind=kind, name=name[:255], author=by[:255], defaults=values)


def delete_draft(kind: str, name: str, by: str) -> None:
    """Delete an author's draft, if there is one."""
    DefinitionDraft.objects.filter(kind=kind, name=name[:255], author=by[:255]).delete()


def save_case(workflow: str, name: str, case: dict[str, Any], by: str) -> None:
    """Save a simulation case of a workflow. It replaces a case of the same name.

    Raises:
        Invalid: when the name is empty, or the workflow has too many cases.
    """
    name = strip_nul(name).strip()[:120]
    if not name:
        raise Invalid("Enter a name for the case.")
    with transaction.atomic():
        others = SimulationCase.objects.filter(workflow=workflow).exclude(name=name)
        if others.count() >= MAX_CASES:
            raise Invalid(f"{workflow} already has {MAX_CASES} cases. Delete one first.")
        now = clock.now()
        values = {**case, "created_at": now, "created_by": by[:255]}
        SimulationCase.objects.update_or_create(workflow=workflow, name=name, defaults=values)
        audit.record("workflow_definition", workflow, "save test case", by, reason=name, at=now)


def set_save_requirement(workflow: str, holds: bool, by: str) -> None:
    """Set whether a workflow can be saved while one of its simulation cases fails."""
    with transaction.atomic():
        SaveRequirement.objects.update_or_create(workflow=workflow, defaults={"holds": holds})
        audit.record("workflow_definition", workflow, "require test cases" if holds else "make test cases optional", by)


def delete_case(workflow: str, name: str, by: str) -> None:
    """Delete a simulation case.

    Raises:
        NotFound: when the workflow has no such case.
    """
    with transaction.atomic():
        if not SimulationCase.objects.filter(workflow=workflow, name=name).delete()[0]:
            raise NotFound(f"{workflow} has no case {name}.")
        now = clock.now()
        audit.record("workflow_definition", workflow, "delete test case", by, reason=name, at=now)
