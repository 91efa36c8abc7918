"""Task definitions as they stand on the shelf: used or not, worked or not, bounded or not; for one page of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from ..core.step_structure import structure_of
from ..core.step_tree import walk
from ..models import Poller, TaskDefinition
from .definition_usage import newest_definitions
from .task_policy import policy_of, time_limits

MOST_WORKFLOWS = 500


@dataclass(frozen=True, slots=True)
class CatalogTask:
    """What a list says of one task definition. `flags`: what deserves a look, each with why."""

    used_by: int = 0
    flags: Mapping[str, str] = field(default_factory=dict)


def catalog_tasks(rows: Sequence[TaskDefinition]) -> dict[int, CatalogTask]:
    """What there is to say of each row, in a number of queries that does not grow with them."""
    names = {row.name for row in rows}
    users, is_cut = _count_users(names)
    worked = set(Poller.objects.filter(task_type__in=names).values_list("task_type", flat=True))
    return {
        row.pk: CatalogTask(users[row.name], dict(_find_flags(row, users[row.name], row.name in worked, is_cut)))
        for row in rows
    }


def _count_users(names: set[str]) -> tuple[dict[str, int], bool]:
    """How many workflows name each of these in their newest version; and whether not all were looked at."""
    counts = dict.fromkeys(names, 0)
    documents = list(newest_definitions().order_by("name").values_list("document", flat=True)[: MOST_WORKFLOWS + 1])
    for document in documents[:MOST_WORKFLOWS]:
        for name in {spot.name for spot in walk(document.get("tasks"))} & names:
            counts[name] += 1
    return counts, len(documents) > MOST_WORKFLOWS


def _find_flags(row: TaskDefinition, users: int, is_worked: bool, is_cut: bool) -> Iterator[tuple[str, str]]:
    if users and not is_worked and not structure_of(row.name).is_built_in:
        yield "no worker", _("No worker has ever polled for it.")
    if not time_limits(policy_of(row.document)):
        yield "no timeout", _("No time limit at all: if a worker falls silent, the run waits for ever.")
    if not users and not is_cut:
        yield "unused", _("No workflow definition names it in its newest version.")
