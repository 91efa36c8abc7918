"""Scopes, their expansion by roles, and the clients that hold them (taskcluster §6.5).

Methods require an expression: a scope, `{"AllOf": […]}` or `{"AnyOf": […]}`. In a template, `<name>` stands for a
parameter, `{"for": name, "in": list, "each": …}` for one expression per item, and `{"if": name, "then": …}` for an
optional expression.

`assume:<role>` stands for the scopes of the role and of the roles that it assumes in turn. A role id that ends in `*`
matches every `assume:` with that prefix. `<..>` in its scopes stands for the rest.

Clients and roles are cached per process until access changes: see `access.permissions`.
"""

import logging
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...access import encryption, permissions
from ...access.models import Client
from ...access.permissions import NamePatterns
from ...access.tokens import derive_keys
from ...core.errors import Forbidden
from ...settings import conf
from ..models import ScopeRole

Expression = str | Mapping[str, Any]
ALL_SCOPES = "*"
PLACEHOLDER_PATTERN = re.compile(r"<([^>]*)>")
SCOPE_PATTERN = re.compile(r"[\x20-\x7e]*\Z")
NO_SCOPES_REQUIRED: Expression = {"AllOf": []}


def scope_set(scopes: Iterable[str]) -> NamePatterns:
    """Return the patterns of the scopes: a scope with a trailing `*` satisfies all scopes with its prefix."""
    exact, prefixes = set(), []
    for scope in scopes:
        if scope.endswith("*"):
            prefixes.append(scope[:-1])
        else:
            exact.add(scope)
    return NamePatterns(frozenset(exact), tuple(sorted(prefixes)))


def is_satisfied(expression: Expression, granted: NamePatterns) -> bool:
    """Return True if the scopes satisfy the expression. An empty AllOf is satisfied, an empty AnyOf is not."""
    if isinstance(expression, str):
        return expression in granted
    if "AllOf" in expression:
        return all(is_satisfied(part, granted) for part in expression["AllOf"])
    return any(is_satisfied(part, granted) for part in expression["AnyOf"])


def missing_scopes(expression: Expression, granted: NamePatterns) -> Expression | None:
    """Return the unsatisfied part of an expression, or None if it is satisfied."""
    if isinstance(expression, str):
        return None if expression in granted else expression
    operator = "AllOf" if "AllOf" in expression else "AnyOf"
    parts = [missing_scopes(part, granted) for part in expression[operator]]
    remaining = [part for part in parts if part is not None]
    is_enough = not remaining if operator == "AllOf" else len(remaining) < len(parts)
    if is_enough:
        return None
    return remaining[0] if len(remaining) == 1 else {operator: remaining}


def render_expression(template: Expression | None, facts: Mapping[str, Any]) -> Expression:
    """Return the expression of a template with its parameters filled in.

    Raises:
        KeyError: when a parameter is unknown.
    """
    rendered = [] if template is None else list(_render(template, facts))
    return rendered[0] if rendered else NO_SCOPES_REQUIRED


def _render(template: Expression, facts: Mapping[str, Any]) -> Iterator[Expression]:
    if isinstance(template, str):
        yield PLACEHOLDER_PATTERN.sub(lambda place: str(facts[place[1]]), template)
    elif "for" in template:
        for item in facts[template["in"]]:
            yield from _render(template["each"], {**facts, template["for"]: item})
    elif "if" in template:
        if facts[template["if"]]:
            yield from _render(template["then"], facts)
    else:
        for operator, parts in template.items():
            yield {operator: [each for part in parts for each in _render(part, facts)]}


def format_expression(expression: Expression, indent: str = "") -> str:
    """Return the expression as indented lines."""
    if isinstance(expression, str):
        return f"{indent}{expression}"
    operator, parts = next(iter(expression.items()))
    label = {"AllOf": "all of", "AnyOf": "any of"}[operator]
    return "\n".join([f"{indent}{label}:", *(format_expression(part, f"{indent}  ") for part in parts)])


def drop_covered(scopes: Iterable[str]) -> list[str]:
    """Return the scopes, sorted, without those that another one satisfies."""
    remaining: list[str] = []
    prefixes: list[str] = []
    # Sorted by length, with stars first: a later scope cannot satisfy an earlier one.
    for scope in sorted(set(scopes), key=lambda scope: (not scope.endswith("*"), len(scope))):
        if not scope.startswith(tuple(prefixes)):
            remaining.append(scope)
            if scope.endswith("*"):
                prefixes.append(scope[:-1])
    return sorted(remaining)


ASSUME_PREFIX = "assume:"
STAR_PLACEHOLDER = "<..>"
MAX_ROLE_ID_LENGTH = 512
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
    prefixes = (f"{assumed[:length]}*" for length in range(min(len(assumed), MAX_ROLE_ID_LENGTH) + 1))
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


log = logging.getLogger(__name__)

ANONYMOUS_ROLE_SCOPE = "assume:anonymous"
"""The scope of the role of all callers, including unauthenticated ones."""
ISSUER_CLIENT_ID = "static/taskcluster/queue"
"""The client that issues the credentials of tasks. Its key is derived from the server's secret."""
MAX_CACHED = 10_000
NOT_CACHED = object()
NEVER_EXPIRES = 32_503_680_000_000
"""1 January 3000."""


@dataclass(frozen=True, slots=True)
class ClientKey:
    """A client with its decrypted key.

    `previous_keys`: keys before a rotation, which only verify certificates.
    """

    id: str
    key: str = field(repr=False)
    scopes: tuple[str, ...]
    expires_at: int
    is_disabled: bool = False
    used_at: int = 0
    previous_keys: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class ScopeSet:
    """A list of scopes, and the names that they satisfy."""

    scope_list: tuple[str, ...]
    names: NamePatterns


def find_client_key(client_id: str) -> ClientKey | None:
    """Return the client with this id, or None if it does not exist or its key cannot be decrypted."""
    return _read_once(("client", client_id), lambda: _read_client_key(client_id))


def find_issuer_key(client_id: str) -> ClientKey | None:
    """Return the client that certificates name as their issuer. It may be this server itself."""
    if client_id != ISSUER_CLIENT_ID:
        return find_client_key(client_id)
    key, *previous_keys = issuing_keys()
    return ClientKey(ISSUER_CLIENT_ID, key, ("*",), NEVER_EXPIRES, previous_keys=tuple(previous_keys))


def is_access_open() -> bool:
    """Return True if every caller has all permissions: on loopback, until the first client is created."""
    return conf.api_access == "open" and not _read_once("any", Client.objects.exists)


def expand_saved_scopes(scopes: Iterable[str]) -> list[str]:
    """Return the scopes with those of all roles that they assume."""
    roles = _read_once("roles", lambda: dict(ScopeRole.objects.values_list("id", "scopes")))
    return expand_scopes(scopes, roles)


def effective_scopes(scopes: Sequence[str]) -> ScopeSet:
    """Return the scopes with those that they imply and those of all callers."""
    return _read_once(("held", *scopes), lambda: _build_scope_set(expand_saved_scopes([*scopes, ANONYMOUS_ROLE_SCOPE])))


def _build_scope_set(scope_list: list[str]) -> ScopeSet:
    return ScopeSet(tuple(scope_list), scope_set(scope_list))


def issuing_keys() -> tuple[str, ...]:
    """Return the keys that verify the credentials of tasks. The first one also signs them."""
    return tuple(key.hex() for key in derive_keys("conductor_app.access.clients", "credentials of tasks"))


def encrypt_token(client_id: str, token: str) -> str:
    """Return an access token encrypted for storage."""
    return encryption.encrypt(_encryption_name(client_id), token)


def decrypt_token(client_id: str, ciphertext: str) -> str:
    """Return a decrypted access token."""
    return encryption.decrypt(_encryption_name(client_id), ciphertext)


def _encryption_name(client_id: str) -> str:
    # The names of secrets contain no space, so a secret and a token cannot be confused.
    return f"client {client_id}"


def _read_client_key(client_id: str) -> ClientKey | None:
    row = Client.objects.filter(pk=client_id).first()
    if row is None:
        return None
    try:
        key = decrypt_token(row.id, row.sealed)
    except encryption.DecryptionFailed:
        log.error("access_token_unreadable", extra={"client": client_id})
        return None
    return ClientKey(row.id, key, tuple(row.scopes), row.expires_at, row.is_disabled, row.used_at)


def _read_once(name: Hashable, read: Callable[[], Any]) -> Any:
    """Return the cached value of this name, or read it. A change of access clears the cache."""
    cached = permissions.current_cache().clients
    value = cached.get(name, NOT_CACHED)
    if value is NOT_CACHED:
        if len(cached) >= MAX_CACHED:
            cached.clear()
        value = cached[name] = read()
    return value


def remember_use(client_key: ClientKey, now: int) -> None:
    """Remember that this process has recorded the use of the client, so that it is not recorded again soon."""
    permissions.current_cache().clients["client", client_key.id] = replace(client_key, used_at=now)
