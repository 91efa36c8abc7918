"""Expansion of scopes: `assume:<role>` stands for the scopes of the role and of the roles that it assumes in turn.

A role id that ends in `*` matches every `assume:` with that prefix. `<..>` in its scopes stands for the rest.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..core.errors import Forbidden
from .scopes import ALL_SCOPES, drop_covered

ASSUME_PREFIX = "assume:"
STAR_PLACEHOLDER = "<..>"
MAX_ID_LENGTH = 512
MAX_EXPANDED_SCOPES = 10_000
"""A few roles can double the number of scopes with each level."""
ScopesByRole = Mapping[str, Sequence[str]]
"""The scopes of each role, by its id."""


def expand_scopes(scopes: Iterable[str], roles: ScopesByRole) -> list[str]:
    """Return the scopes and those that they imply, sorted, without those that another one satisfies.

    Raises:
        Forbidden: when there are more than `MAX_EXPANDED_SCOPES`.
    """
    expanded = set(scopes)
    pending = [scope for scope in expanded if assumes_role(scope)]
    # No role can add to all scopes.
    while pending and ALL_SCOPES not in expanded:
        for scope in implied_scopes(pending.pop(), roles):
            if scope not in expanded:
                expanded.add(scope)
                if len(expanded) > MAX_EXPANDED_SCOPES:
                    raise Forbidden(f"The scopes expand to more than {MAX_EXPANDED_SCOPES} scopes. Simplify the roles.")
                if assumes_role(scope):
                    pending.append(scope)
    return [ALL_SCOPES] if ALL_SCOPES in expanded else drop_covered(expanded)


def assumes_role(scope: str) -> bool:
    """Return True if the scope can assume roles: `assume:…`, or a prefix of it with a star."""
    return scope.startswith(ASSUME_PREFIX) or (scope.endswith("*") and ASSUME_PREFIX.startswith(scope[:-1]))


def implied_scopes(scope: str, roles: ScopesByRole) -> Iterator[str]:
    """Yield the scopes of the roles that one scope assumes."""
    assumed = _assumed_pattern(scope)
    for role in _assumed_roles(assumed, roles):
        star_value = _star_value(assumed, role) or ""
        yield from (fill_in_star(each, star_value) if role.endswith("*") else each for each in roles[role])


def _assumed_roles(assumed: str, roles: ScopesByRole) -> list[str]:
    """Return the ids of the assumed roles.

    There may be many roles, so a single id is looked up with its prefixes instead of compared with each role.
    """
    if assumed.endswith("*"):
        return [role for role in roles if _star_value(assumed, role) is not None]
    prefixes = (f"{assumed[:length]}*" for length in range(min(len(assumed), MAX_ID_LENGTH) + 1))
    return [role for role in (assumed, *prefixes) if role in roles]


def _star_value(assumed: str, role: str) -> str | None:
    """Return the text that matches the star of the role's id, "" without a star, or None if the role is not assumed."""
    beginning = role[:-1] if role.endswith("*") else role
    if role.endswith("*") and assumed.startswith(beginning):
        return assumed[len(beginning) :]
    if assumed.endswith("*") and role.startswith(assumed[:-1]):
        return "*"
    return "" if assumed == role else None


def fill_in_star(scope: str, star_value: str) -> str:
    """Return a scope of the role with the text that matches the star of its id."""
    if "*" in star_value:
        before, place, _ = scope.partition(STAR_PLACEHOLDER)
        return before + star_value if place else scope
    return scope.replace(STAR_PLACEHOLDER, star_value)


def assumes_itself(role: str, roles: ScopesByRole) -> bool:
    """Return True if a role assumes itself, directly or through others. Its scopes could grow without end."""
    visited: set[str] = set()
    pending = [role]
    while pending:
        for assumed in _assumable_roles(pending.pop(), roles):
            if assumed == role:
                return True
            if assumed not in visited:
                visited.add(assumed)
                pending.append(assumed)
    return False


def _assumable_roles(role: str, roles: ScopesByRole) -> list[str]:
    """Return the roles that a role may assume for any text that matches its star."""
    widest = (fill_in_star(scope, "*") if role.endswith("*") else scope for scope in roles[role])
    assumed = [_assumed_pattern(scope) for scope in widest if scope != ALL_SCOPES and assumes_role(scope)]
    return [other for each in assumed for other in _assumed_roles(each, roles)]


def _assumed_pattern(scope: str) -> str:
    """Return the pattern of role ids that a scope assumes: one id, or all with a prefix."""
    return scope[len(ASSUME_PREFIX) :] if scope.startswith(ASSUME_PREFIX) else ALL_SCOPES
