"""Permissions to start workflows and to control runs, tags that grants name, and the protection against escalation.

Actors give only what they have. A grant on a tag applies to all objects that have the tag.
"""

from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import Q, QuerySet

from ..core.errors import Forbidden, Invalid
from ..db.fields import UserKey
from ..runs.models import Run
from .audit import announce_access_change
from .authentication import (
    Actor,
    Target,
    actor_of_user,
    current_actor,
    is_allowed,
    missing_permission_error,
    require_permission,
)
from .models import Grant, Tag
from .permissions import (
    ACCESSES,
    CREATE,
    DEBUG,
    EXECUTE,
    INTEGRATION,
    INTEGRATION_PROVIDER,
    NO_PATTERNS,
    PROMPT,
    RUN_VIEW_RIGHTS,
    TAG,
    TASK_DEF,
    UPDATE,
    WORKFLOW,
    WORKFLOW_DEF,
    PermissionSet,
    Right,
    name_field,
    permission_set_of,
    read_group_permission_set,
    read_permission_set,
    require_plain_name,
)

MODEL_BY_TARGET_TYPE = {WORKFLOW_DEF: "WorkflowDefinition", TASK_DEF: "TaskDefinition", PROMPT: "Prompt"}
"""The table of each target type, by name: the slices of these tables import this module."""
_CONTROL_RIGHTS = ((EXECUTE, WORKFLOW_DEF), (UPDATE, WORKFLOW), (EXECUTE, TASK_DEF))


def creator_accesses(target_type: str, name: str) -> tuple[str, list[str]]:
    """Return the username of the definition's creator, and the accesses that they have by a role or a grant.

    Both are empty if the creator is unknown, such as on a server without authentication.
    """
    if target_type not in (WORKFLOW_DEF, TASK_DEF):
        return "", []
    rows = _rows_named(target_type, name)
    created_by = rows.order_by("pk").values_list("created_by", flat=True).first()
    if not created_by:
        return "", []
    users = get_user_model()._default_manager.filter(Q(application__name=created_by) | Q(**{name_field(): created_by}))
    user = users.order_by("pk").first()
    if user is None:
        return "", []
    permissions = permission_set_of(user.pk)
    return user.get_username(), [access for access in ACCESSES if permissions.allows(access, target_type, name)]


def _rows_named(target_type: str, name: str) -> QuerySet[Any]:
    return apps.get_model("conductor", MODEL_BY_TARGET_TYPE[target_type])._default_manager.filter(name=name)


def require_debug() -> None:
    """Raise Forbidden unless the current actor may use the debugger."""
    actor = current_actor()
    if actor is not None and not actor.permissions.allows_all((EXECUTE, DEBUG)):
        raise missing_permission_error(actor, [(EXECUTE, DEBUG)], {})


def starter_refusal(user_id: UserKey, target_type: str, name: str) -> str:
    """Return why the starter of a run may not use an object that data names, or an empty text."""
    if target_type == PROMPT and not _rows_named(PROMPT, name).exists():
        # The step uses the text itself if there is no prompt of that name.
        return ""
    actor, target, rights = actor_of_user(user_id), {target_type: name}, [(EXECUTE, target_type)]
    if target_type == INTEGRATION and ":" in name:
        # A model: the permission on its integration is sufficient.
        target[INTEGRATION_PROVIDER] = name.partition(":")[0]
        rights.insert(0, (EXECUTE, INTEGRATION_PROVIDER))
    return "" if is_allowed(actor, rights, target) else missing_permission_error(actor, rights, target).message


def require_starts(names: Iterable[str]) -> None:
    """Raise Forbidden unless the current actor may start these workflows."""
    actor = current_actor()
    if actor is None:
        return
    right = ((EXECUTE, WORKFLOW_DEF),)
    for name in names:
        if not is_allowed(actor, right, {WORKFLOW_DEF: name}):
            raise missing_permission_error(actor, right, {WORKFLOW_DEF: name})


def require_inline_definition(document: Any) -> None:
    """Check that the current actor may save a definition of this name.

    `document`: as received; an invalid one is refused when it is read.

    Raises:
        Invalid: when it has a name that no new definition may have.
        Forbidden: when a permission is missing; the message names it.
    """
    if not isinstance(document, dict):
        return
    name = document.get("name")
    require_plain_name(str(name))
    actor = current_actor()
    if actor is None:
        return
    rights = ((CREATE, WORKFLOW_DEF), (UPDATE, WORKFLOW_DEF))
    require_permission(actor, rights, [{WORKFLOW_DEF: name if isinstance(name, str) else ""}])


def may_control_run(run_id: str) -> bool:
    """Return True if the current actor may change the run."""
    actor = current_actor()
    return actor is None or is_allowed(actor, _CONTROL_RIGHTS, _run_target(run_id, ""))


def require_run_control(run_id: str, task_type: str = "") -> None:
    """Raise Forbidden unless the current actor may change the run, or report on its tasks of this type."""
    actor = current_actor()
    if actor is not None:
        require_permission(actor, _CONTROL_RIGHTS, [_run_target(run_id, task_type)])


def require_run_view(run_id: str) -> None:
    """Raise Forbidden unless the current actor may see the run."""
    actor = current_actor()
    if actor is not None:
        require_permission(actor, RUN_VIEW_RIGHTS, [_run_target(run_id, "")])


def _run_target(run_id: str, task_type: str) -> Target:
    name = Run.objects.filter(pk=run_id).values_list("name", flat=True).first()
    target = {WORKFLOW: run_id, WORKFLOW_DEF: name or ""}
    return target | {TASK_DEF: task_type} if task_type else target


def missing_permissions(holder: PermissionSet, wanted: PermissionSet) -> list[str]:
    """Return the permissions in `wanted` that the holder does not have, as texts."""
    if holder.is_admin:
        return []
    if wanted.is_admin:
        return ["the role ADMIN"]
    missing = [f"{access} on {target_type} (all)" for access, target_type in sorted(wanted.rights - holder.rights)]
    for right, patterns in wanted.names.items():
        missing += [_describe(right, name) for name in sorted(patterns.exact) if not holder.allows(*right, name)]
        missing += [
            _describe(right, f"{prefix}*") for prefix in patterns.prefixes if not _allows_prefix(holder, right, prefix)
        ]
    return missing


def _allows_prefix(holder: PermissionSet, right: Right, prefix: str) -> bool:
    """Return True if the holder has the right on all names with a prefix."""
    return holder.allows_all(right) or prefix.startswith(holder.names.get(right, NO_PATTERNS).prefixes)


def _describe(right: Right, name: str) -> str:
    return f"{right[0]} on {right[1]} '{name[:200]}'"


def may_give(wanted: PermissionSet) -> bool:
    """Return True if the current actor has all of these permissions."""
    actor = current_actor()
    return actor is None or not missing_permissions(actor.permissions, wanted)


def require_held(wanted: PermissionSet) -> None:
    """Raise Forbidden unless the current actor has all permissions that it is about to give, or to take over."""
    actor = current_actor()
    if actor is None:
        return
    if missing := missing_permissions(actor.permissions, wanted):
        raise _error(actor, missing)


def require_user_permissions(user_id: UserKey) -> None:
    """Check that the current actor has all permissions of a user, whose keys or password it is about to set.

    Raises:
        Forbidden: when it lacks one of them.
    """
    if current_actor() is not None:
        require_held(read_permission_set(user_id))


def require_group_permissions(groups: Iterable[Group]) -> None:
    """Raise Forbidden unless the current actor has all permissions of these groups and roles."""
    if current_actor() is not None:
        for group in groups:
            require_held(read_group_permission_set(group.pk))


def require_rights(rights: Iterable[Right]) -> None:
    """Raise Forbidden unless the current actor has these rights on all objects of their types."""
    require_held(PermissionSet(rights=frozenset(rights)))


def require_grant(target_type: str, target_id: str, accesses: Iterable[str], *, is_prefix: bool = False) -> None:
    """Check that the current actor has the accesses to a target that it is about to grant.

    `is_prefix`: to all names with the prefix before the `*` at the end of `target_id`. A grant on a tag applies to
    objects that get the tag later, so it requires the same grant.

    Raises:
        Forbidden: when it lacks one of them.
    """
    actor = current_actor()
    if actor is None or actor.permissions.is_admin:
        return
    if target_type == TAG:
        own = Grant.objects.filter(Q(user_id=actor.user_id), target_type=TAG, target_id=target_id)
        granted = set(own.values_list("access", flat=True)) if actor.user_id else set()
        missing = [_describe((access, TAG), target_id) for access in accesses if access not in granted]
    else:
        rights = [(access, target_type) for access in accesses]
        held = actor.permissions
        missing = [
            _describe(right, target_id)
            for right in rights
            if not (_allows_prefix(held, right, target_id[:-1]) if is_prefix else held.allows(*right, target_id))
        ]
    if missing:
        raise _error(actor, missing)


def require_tag(target_type: str, name: str, key: str, value: str) -> None:
    """Check that a tag gives the holders of grants on it only accesses that the current actor has to the object.

    Raises:
        Forbidden: when it lacks one of them.
    """
    if current_actor() is not None:
        granted = Grant.objects.filter(target_type=TAG, target_id=f"{key}:{value}")
        require_grant(target_type, name, sorted(set(granted.values_list("access", flat=True))))


def _error(actor: Actor, missing: list[str]) -> Forbidden:
    return Forbidden(
        f"{actor.name} cannot give a permission that it does not have: {', '.join(missing)[:500]}.", code="FORBIDDEN"
    )


Document = dict[str, Any]
Tags = list[Document]
METADATA, RATE_LIMIT = "METADATA", "RATE_LIMIT"
MAX_LENGTH = 128


def metadata_tags(target: str, name: str) -> list[Document]:
    """Return the stored tags of an object, without rate limits."""
    rows = Tag.objects.filter(object_type=target, object_name=name).order_by("key", "value")
    return [{"key": row.key, "value": row.value, "type": METADATA} for row in rows]


def tags_by_name(target: str, names: Iterable[str]) -> dict[str, list[Document]]:
    """Return the tags of several objects of one kind by name, in one query. Names without tags are omitted."""
    rows = Tag.objects.filter(object_type=target, object_name__in=list(names)).order_by("key", "value")
    found: dict[str, list[Document]] = {}
    for row in rows:
        found.setdefault(row.object_name, []).append({"key": row.key, "value": row.value, "type": METADATA})
    return found


def require_valid_tag(tag: Document) -> None:
    """Check the length of a tag.

    Raises:
        Invalid: when the key or the value is too long.
    """
    if max(len(tag["key"]), len(tag["value"])) > MAX_LENGTH:
        raise Invalid(f"The key and the value of a tag must have at most {MAX_LENGTH} characters.")


def mirror_tags(target: str, name: str, tags: Iterable[Document]) -> None:
    """Copy the tags of an object that stores them itself, so that grants on tags apply to it.

    Raises:
        Forbidden: when a grant on one of them gives accesses that the current actor does not have.
    """
    tags = [tag for tag in tags if len(tag["key"]) <= MAX_LENGTH and len(tag["value"]) <= MAX_LENGTH]
    present = set(Tag.objects.filter(object_type=target, object_name=name).values_list("key", "value"))
    for tag in tags:
        if (tag["key"], tag["value"]) not in present:
            require_tag(target, name, tag["key"], tag["value"])
    Tag.objects.filter(object_type=target, object_name=name).delete()
    Tag.objects.bulk_create(
        [Tag(object_type=target, object_name=name, key=tag["key"], value=tag["value"]) for tag in tags],
        ignore_conflicts=True,
    )
    # `bulk_create` sends no signals.
    announce_access_change()
