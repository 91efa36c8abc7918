"""Stand-alone tasks and their groups in the palette: by their ids."""

from collections.abc import Iterator

from django.http import HttpRequest
from django.utils.translation import gettext as _

from ...models import StandaloneTask, TaskGroup
from .addresses import group_address, standalone_task_address

MIN_ID_LENGTH = 20
"""Ids are longer than that."""


def find_by_id(request: HttpRequest, term: str) -> Iterator[tuple[str, str, str, str]]:
    """Kind, name, address and a quiet word of the group, and of the task, that has this id."""
    if len(term) < MIN_ID_LENGTH:
        return
    if request.user.has_perm("conductor.view_taskgroup") and TaskGroup.objects.filter(pk=term).exists():
        yield _("Group"), term, group_address(term), _("task group")
    if request.user.has_perm("conductor.view_standalonetask"):
        for standalone in (
            StandaloneTask.objects.select_related("task").only("pk", "task__name", "task__status").filter(pk=term)
        ):
            yield _("Task"), standalone.task.name or term, standalone_task_address(term), standalone.task.status
