"""Permissions to use secrets, databases, integrations and workflows in definitions, and to start workflows."""

from collections.abc import Iterable, Mapping
from typing import Any

from ..core.data_requests import PUBLIC_VARIABLES
from ..core.document.uses import EVERY_VARIABLE, uses_of
from ..core.errors import Forbidden
from ..models import Prompt, Run, WorkflowDefinition
from .access_types import (
    CREATE,
    DEBUG,
    EXECUTE,
    INTEGRATION,
    INTEGRATION_PROVIDER,
    PROMPT,
    READ,
    SECRET,
    TASK_DEF,
    UPDATE,
    VARIABLE,
    WORKFLOW,
    WORKFLOW_DEF,
    Right,
)
from .conductor_auth import Actor
from .current_actor import actor_of_user, current_actor
from .permissions import Target, is_allowed, missing_permission_error, require_permission

USE_ACCESSES: dict[str, tuple[str, ...]] = {
    # EXECUTE permits the use of a secret without permission to read it.
    SECRET: (EXECUTE, READ),
    VARIABLE: (EXECUTE, READ),
    INTEGRATION: (EXECUTE,),
    INTEGRATION_PROVIDER: (EXECUTE,),
    PROMPT: (EXECUTE, READ),
    # Who may change a workflow determines what it does anyway.
    WORKFLOW_DEF: (EXECUTE, UPDATE),
}
"""The accesses of which one permits the use of an object, by its target type."""


def require_debug() -> None:
    """Check that the current actor may use the debugger.

    Raises:
        Forbidden: when it may not; the message names the permission.
    """
    actor = current_actor()
    if actor is not None and not actor.permissions.allows_all((EXECUTE, DEBUG)):
        raise missing_permission_error(actor, [(EXECUTE, DEBUG)], {})


def require_uses(document: Mapping[str, Any]) -> None:
    """Check that the current actor may use every object that a definition names.

    Raises:
        Forbidden: when a permission is missing; the message names it.
    """
    actor = current_actor()
    if actor is None or actor.permissions.is_admin:
        return
    for target_type, name in sorted(uses_of(document)):
        if refusal := use_refusal(actor, target_type, name):
            raise Forbidden(f"The definition uses {target_type} '{name[:200]}'. {refusal}", code="FORBIDDEN")


def use_refusal(actor: Actor, target_type: str, name: str) -> str:
    """Return why the actor may not use an object, or an empty text."""
    target, rights = {target_type: name}, _use_rights(target_type, name)
    if target_type == INTEGRATION and ":" in name:
        # A model: the permission on its integration is sufficient.
        target[INTEGRATION_PROVIDER] = name.partition(":")[0]
        rights = ((EXECUTE, INTEGRATION_PROVIDER), *rights)
    if target_type == VARIABLE and name in (EVERY_VARIABLE, *PUBLIC_VARIABLES):
        is_permitted = name != EVERY_VARIABLE or actor.permissions.allows_all(*rights)
    elif target_type == PROMPT and not Prompt.objects.filter(name=name).exists():
        # The step uses the text itself if there is no prompt of that name.
        is_permitted = True
    else:
        is_permitted = is_allowed(actor, rights, target)
    return "" if is_permitted else missing_permission_error(actor, rights, target).message


def _use_rights(target_type: str, name: str) -> tuple[Right, ...]:
    rights = tuple((access, target_type) for access in USE_ACCESSES[target_type])
    # A workflow that does not exist yet is used by the definition that is saved first.
    if target_type == WORKFLOW_DEF and not WorkflowDefinition.objects.filter(name=name).exists():
        return (*rights, (CREATE, WORKFLOW_DEF))
    return rights


def starter_refusal(user_id: int, target_type: str, name: str) -> str:
    """Return why the starter of a run may not use an object that data names, or an empty text."""
    actor = actor_of_user(user_id)
    if target_type == WORKFLOW_DEF:
        # The run starts the workflow itself, so the permission to change it is not sufficient.
        right = ((EXECUTE, WORKFLOW_DEF),)
        is_permitted = is_allowed(actor, right, {WORKFLOW_DEF: name})
        return "" if is_permitted else missing_permission_error(actor, right, {WORKFLOW_DEF: name}).message
    return use_refusal(actor, target_type, name)


def readable_variables(user_id: int, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment values that a user may use."""
    actor = actor_of_user(user_id)
    return {name: value for name, value in variables.items() if not use_refusal(actor, VARIABLE, name)}


def require_starts(names: Iterable[str]) -> None:
    """Check that the current actor may start these workflows.

    Raises:
        Forbidden: when it may not start one of them; the message names the permission.
    """
    actor = current_actor()
    if actor is None:
        return
    right = ((EXECUTE, WORKFLOW_DEF),)
    for name in names:
        if not is_allowed(actor, right, {WORKFLOW_DEF: name}):
            raise missing_permission_error(actor, right, {WORKFLOW_DEF: name})


def require_inline_definition(document: Any) -> None:
    """Check that the current actor may save a definition of this name, and use what it names.

    `document`: as received; an invalid one is refused when it is read.

    Raises:
        Forbidden: when a permission is missing; the message names it.
    """
    actor = current_actor()
    if actor is None or not isinstance(document, dict):
        return
    name = document.get("name")
    rights = ((CREATE, WORKFLOW_DEF), (UPDATE, WORKFLOW_DEF))
    require_permission(actor, rights, [{WORKFLOW_DEF: name if isinstance(name, str) else ""}])
    require_uses(document)


def may_control_run(run_id: str, task_type: str = "") -> bool:
    """Return True if the current actor may change the run, or report on its tasks of this type."""
    actor = current_actor()
    return actor is None or is_allowed(actor, _CONTROL_RIGHTS, _run_target(run_id, task_type))


def require_run_control(run_id: str, task_type: str = "") -> None:
    """Check that the current actor may change the run, or report on its tasks of this type.

    Raises:
        Forbidden: when it may not; the message names the permission.
    """
    actor = current_actor()
    if actor is not None:
        require_permission(actor, _CONTROL_RIGHTS, [_run_target(run_id, task_type)])


_CONTROL_RIGHTS = ((EXECUTE, WORKFLOW_DEF), (UPDATE, WORKFLOW), (EXECUTE, TASK_DEF))


def _run_target(run_id: str, task_type: str) -> Target:
    name = Run.objects.filter(pk=run_id).values_list("name", flat=True).first()
    target = {WORKFLOW: run_id, WORKFLOW_DEF: name or ""}
    return target | {TASK_DEF: task_type} if task_type else target
