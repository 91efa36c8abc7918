"""Standalone tasks and task groups in the command palette, by id."""

from collections.abc import Iterator

from django.http import HttpRequest
from django.utils.translation import gettext as _

from ...models import StandaloneTask, TaskGroup
from .page_addresses import group_address, standalone_task_address

MIN_ID_LENGTH = 20
"""Minimum length of a search term. Shorter terms are never ids."""


def find_by_id(request: HttpRequest, term: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield kind, name, address and secondary text of the group and of the task with this id."""
    if len(term) < MIN_ID_LENGTH:
        return
    if request.user.has_perm("conductor.view_taskgroup") and TaskGroup.objects.filter(pk=term).exists():
        yield _("Group"), term, group_address(term), _("task group")
    if request.user.has_perm("conductor.view_standalonetask"):
        for standalone in (
            StandaloneTask.objects.select_related("task").only("pk", "task__name", "task__status").filter(pk=term)
        ):
            yield _("Task"), standalone.task.name or term, standalone_task_address(term), standalone.task.status
