"""Accesses of creators to their definitions. Conductor lists them like granted ones."""

from django.contrib.auth import get_user_model
from django.db.models import Q

from ..models import TaskDefinition, WorkflowDefinition
from . import permission_cache
from .access_types import ACCESSES, TASK_DEF, WORKFLOW_DEF

MODEL_BY_TARGET_TYPE: dict[str, type[WorkflowDefinition] | type[TaskDefinition]] = {
    WORKFLOW_DEF: WorkflowDefinition,
    TASK_DEF: TaskDefinition,
}


def creator_accesses(target_type: str, name: str) -> tuple[str, list[str]]:
    """Return the username of the definition's creator, and the accesses that they have by a role or a grant.

    Both are empty if the creator is unknown, such as on a server without authentication.
    """
    model = MODEL_BY_TARGET_TYPE.get(target_type)
    if model is None:
        return "", []
    created_by = model.objects.filter(name=name).order_by("pk").values_list("created_by", flat=True).first()
    if not created_by:
        return "", []
    users = get_user_model().objects.filter(Q(application__name=created_by) | Q(username=created_by))
    user = users.order_by("pk").first()
    if user is None:
        return "", []
    permissions = permission_cache.permission_set_of(user.pk)
    return user.username, [access for access in ACCESSES if permissions.allows(access, target_type, name)]
