"""Commands on Taskcluster roles, which are sets of scopes."""

from collections.abc import Callable, Mapping, Sequence

from django.db import transaction

from ... import clock
from ...access import change_signals
from ...access.scope_roles import ASSUME_PREFIX, MAX_ID_LENGTH, assumes_itself, expand_scopes, fill_in_star
from ...access.scopes import ALL_SCOPES, SCOPE_PATTERN
from ...core.errors import Conflict, Forbidden, Invalid, NotFound
from ...models import ScopeRole
from .access_audit import record_access_change
from .clients import MAX_DESCRIPTION_LENGTH, check_scopes

KIND = "scope_role"


def find_role(id: str) -> ScopeRole:
    """Return a role by id.

    Raises:
        NotFound: when there is no such role.
    """
    found = ScopeRole.objects.filter(pk=id).first()
    if found is None:
        raise NotFound(f"There is no role {id}.")
    return found


def create_role(id: str, scopes: Sequence[str], description: str, by: str, reason: str = "") -> ScopeRole:
    """Create a role. An existing role with the same scopes and description is returned.

    Raises:
        Invalid: when the id, a scope or the description is invalid.
        Conflict: when a different role has this id.
    """
    with transaction.atomic():
        _lock_access_revision()
        check_role(id, scopes, description)
        found = ScopeRole.objects.filter(pk=id).first()
        if found is not None:
            if (found.scopes, found.description) != (sorted(set(scopes)), description):
                raise Conflict(f"The role {id} already exists.")
            return found
        now = clock.now()
        row = ScopeRole(id=id, created_at=now, created_by=by[:255])
        _save_role(row, scopes, description, by)
        record_access_change(KIND, id, "create", by, reason, scopes=list(scopes))
    return row


def update_role(
    id: str,
    scopes: Sequence[str],
    description: str,
    by: str,
    reason: str = "",
    *,
    authorize: Callable[[ScopeRole], None] = lambda row: None,
) -> ScopeRole:
    """Replace the scopes and the description of a role, after `authorize` has accepted its locked row.

    Raises:
        Invalid: when a scope or the description is invalid.
        NotFound: when there is no such role.
    """
    with transaction.atomic():
        _lock_access_revision()
        check_role(id, scopes, description)
        row = find_role(id)
        authorize(row)
        _save_role(row, scopes, description, by)
        record_access_change(KIND, id, "change", by, reason, scopes=list(scopes))
    return row


def delete_role(id: str, by: str, reason: str = "") -> None:
    """Delete a role, if it exists."""
    with transaction.atomic():
        if ScopeRole.objects.filter(pk=id).delete()[0]:
            record_access_change(KIND, id, "delete", by, reason)


def _lock_access_revision() -> None:
    """Serialize changes of roles by a write: two roles saved at the same time could assume each other."""
    change_signals.record_access_change()


def check_role(
    id: str, scopes: Sequence[str], description: str, planned_roles: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Check the id, the scopes and the description of a role.

    `planned_roles`: roles that are not saved yet, with their scopes.

    Raises:
        Invalid: when one of them is invalid, the role would assume itself, or it expands to too many scopes.
    """
    if not id or not SCOPE_PATTERN.match(id) or len(id) > MAX_ID_LENGTH:
        raise Invalid(f"A role id must have 1 to {MAX_ID_LENGTH} printable ASCII characters (got {id[:300]!r}).")
    if len(description) > MAX_DESCRIPTION_LENGTH or "\0" in description:
        raise Invalid(f"A description must have at most {MAX_DESCRIPTION_LENGTH} characters and no NUL.")
    check_scopes(scopes)
    saved = dict(ScopeRole.objects.values_list("id", "scopes"))
    roles = {**saved, **(planned_roles or {}), id: list(scopes)}
    if assumes_itself(id, roles):
        raise Invalid(f"The role {id} would assume itself, directly or through other roles.")
    try:
        expand_scopes([f"{ASSUME_PREFIX}{id}"], roles)
    except Forbidden as refused:
        raise Invalid(f"The role {id} cannot be saved. {refused.message}") from None


def expand_role_scopes(id: str, scopes: Sequence[str]) -> list[str]:
    """Return the scopes that a role grants at most: a star in the id of the role can stand for anything."""
    return [fill_in_star(scope, ALL_SCOPES) if id.endswith(ALL_SCOPES) else scope for scope in scopes]


def _save_role(row: ScopeRole, scopes: Sequence[str], description: str, by: str) -> None:
    row.scopes, row.description = sorted(set(scopes)), description
    row.updated_at, row.updated_by = clock.now(), by[:255]
    row.save()
