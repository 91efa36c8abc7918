"""Addresses of the pages of standalone tasks and task groups."""

from django.urls import reverse


def standalone_task_address(task_id: str) -> str:
    """Return the address of a standalone task."""
    return reverse("admin:conductor_standalonetask_change", args=[task_id])


def group_address(group_id: str) -> str:
    """Return the address of a task group."""
    return reverse("admin:conductor_taskgroup_change", args=[group_id])
