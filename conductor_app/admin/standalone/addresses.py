"""Where the pages of stand-alone tasks and of their groups are."""

from django.urls import reverse


def standalone_task_address(task_id: str) -> str:
    """The page of a stand-alone task."""
    return reverse("admin:conductor_standalonetask_change", args=[task_id])


def group_address(group_id: str) -> str:
    """The page of a task group."""
    return reverse("admin:conductor_taskgroup_change", args=[group_id])
