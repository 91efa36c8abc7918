"""Commands on the roles of scopes."""

from collections.abc import Sequence

from django.db import transaction

from ... import clock
from ...access import change_signals
from ...access.scope_roles import MAX_ID_LENGTH, assumes_itself, fill_in_star
from ...access.scopes import ALL_SCOPES, SCOPE_PATTERN
from ...core.errors import Conflict, Invalid, NotFound
from ...models import ScopeRole
from .access_audit import record_access_change
from .clients import LONGEST_DESCRIPTION, check_scopes

KIND = "scope_role"


def find_role(id: str) -> ScopeRole:
    """The role with this id; raises NotFound."""
    found = ScopeRole.objects.filter(pk=id).first()
    if found is None:
        raise NotFound(f"There is no role {id}.")
    return found


def create_role(id: str, scopes: Sequence[str], description: str, by: str, reason: str = "") -> ScopeRole:
    """A new role. Raises Invalid, and Conflict if there is one with this id that is otherwise."""
    with transaction.atomic():
        _lock_access_revision()
        check_role(id, scopes, description)
        found = ScopeRole.objects.filter(pk=id).first()
        if found is not None:
            if (found.scopes, found.description) != (sorted(set(scopes)), description):
                raise Conflict(f"There is a role {id} already.")
            return found
        now = clock.now()
        row = ScopeRole(id=id, created_at=now, created_by=by[:255])
        _save_role(row, scopes, description, by)
        record_access_change(KIND, id, "create", by, reason, scopes=list(scopes))
    return row


def update_role(id: str, scopes: Sequence[str], description: str, by: str, reason: str = "") -> ScopeRole:
    """Let a role have other scopes. Raises Invalid and NotFound."""
    with transaction.atomic():
        _lock_access_revision()
        check_role(id, scopes, description)
        row = find_role(id)
        _save_role(row, scopes, description, by)
        record_access_change(KIND, id, "change", by, reason, scopes=list(scopes))
    return row


def delete_role(id: str, by: str, reason: str = "") -> None:
    """Delete a role; one that is not there is no fault."""
    with transaction.atomic():
        if ScopeRole.objects.filter(pk=id).delete()[0]:
            record_access_change(KIND, id, "delete", by, reason)


def _lock_access_revision() -> None:
    """Writing down that access changes is the lock: two roles written at once could assume one another."""
    change_signals.record_access_change()


def check_role(id: str, scopes: Sequence[str], description: str) -> None:
    """Raise Invalid unless there may be such a role."""
    if not id or not SCOPE_PATTERN.match(id) or len(id) > MAX_ID_LENGTH:
        raise Invalid(f"A role id has printable ASCII characters only, and at most {MAX_ID_LENGTH} of them.")
    if len(description) > LONGEST_DESCRIPTION or "\0" in description:
        raise Invalid(f"A description has at most {LONGEST_DESCRIPTION} characters, and no NUL.")
    check_scopes(scopes)
    roles = dict(ScopeRole.objects.values_list("id", "scopes")) | {id: list(scopes)}
    if assumes_itself(id, roles):
        raise Invalid(f"The role {id} would assume itself, at once or by way of others.")


def expand_role_scopes(id: str, scopes: Sequence[str]) -> list[str]:
    """The scopes that a role gives to whoever assumes it, whatever its star stands for."""
    return [fill_in_star(scope, ALL_SCOPES) if id.endswith(ALL_SCOPES) else scope for scope in scopes]


def _save_role(row: ScopeRole, scopes: Sequence[str], description: str, by: str) -> None:
    row.scopes, row.description = sorted(set(scopes)), description
    row.updated_at, row.updated_by = clock.now(), by[:255]
    row.save()
