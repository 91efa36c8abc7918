"""Catalog data of task definitions: their use, and flags for missing workers and timeouts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from ...core.step_structure import structure_of
from ...core.step_tree import walk
from ...models import Poller, TaskDefinition
from .definition_usage import newest_definitions
from .task_policy import policy_of, time_limits

MAX_WORKFLOWS = 500


@dataclass(frozen=True, slots=True)
class CatalogTask:
    """Catalog data of one task definition. `flags`: problems, each with an explanation."""

    used_by: int = 0
    flags: Mapping[str, str] = field(default_factory=dict)


def catalog_tasks(rows: Sequence[TaskDefinition]) -> dict[int, CatalogTask]:
    """Return the catalog data of each row. The number of queries does not grow with the rows."""
    names = {row.name for row in rows}
    users, is_cut = _count_users(names)
    worked = set(Poller.objects.filter(task_type__in=names).values_list("task_type", flat=True))
    return {
        row.pk: CatalogTask(users[row.name], dict(_find_flags(row, users[row.name], row.name in worked, is_cut)))
        for row in rows
    }


def _count_users(names: set[str]) -> tuple[dict[str, int], bool]:
    """Count the workflows whose newest version uses each task. Return True if not all workflows were read."""
    counts = dict.fromkeys(names, 0)
    documents = list(newest_definitions().order_by("name").values_list("document", flat=True)[: MAX_WORKFLOWS + 1])
    for document in documents[:MAX_WORKFLOWS]:
        for name in {spot.name for spot in walk(document.get("tasks"))} & names:
            counts[name] += 1
    return counts, len(documents) > MAX_WORKFLOWS


def _find_flags(row: TaskDefinition, users: int, is_worked: bool, is_cut: bool) -> Iterator[tuple[str, str]]:
    if users and not is_worked and not structure_of(row.name).is_built_in:
        yield "no worker", _("No worker has ever polled this task.")
    if not time_limits(policy_of(row.document)):
        yield "no timeout", _("No timeout: if a worker stops responding, the run waits forever.")
    if not users and not is_cut:
        yield "unused", _("No workflow uses this task in its newest version.")
