"""Workflows that use a task, according to the newest versions of their definitions."""

from django.db.models import OuterRef, Subquery

from ...core.step_tree import walk
from ...models import WorkflowDefinition

LIMIT = 50


def newest_definitions():
    """Return the newest version of every workflow definition."""
    versions = WorkflowDefinition.objects.filter(name=OuterRef("name")).order_by("-version")
    return WorkflowDefinition.objects.filter(pk=Subquery(versions.values("pk")[:1]))


def workflows_using_task(name: str) -> list[WorkflowDefinition]:
    """Return the workflows whose steps name this task."""
    # The text search narrows the rows. Only the steps decide: a name may occur elsewhere in a document.
    rows = newest_definitions().filter(document__contains=name).order_by("name")[: 4 * LIMIT]
    return [row for row in rows if any(spot.name == name for spot in walk(row.document.get("tasks")))][:LIMIT]
