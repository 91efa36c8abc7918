"""The permissions of an actor, which can be checked without a query."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .access_types import Right


@dataclass(frozen=True, slots=True)
class NamePatterns:
    """A set of names and of prefixes of names."""

    exact: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return name in self.exact or name.startswith(self.prefixes)


NO_PATTERNS = NamePatterns()


@dataclass(frozen=True, slots=True)
class PermissionSet:
    """Rights on all objects of a type, and on objects by name."""

    is_admin: bool = False
    rights: frozenset[Right] = frozenset()
    names: Mapping[Right, NamePatterns] = field(default_factory=dict)

    def allows_all(self, *rights: Right) -> bool:
        """Return True if one of these rights applies to all objects of its type."""
        return self.is_admin or not self.rights.isdisjoint(rights)

    def allows_any(self, *rights: Right) -> bool:
        """Return True if one of these rights applies to any object."""
        return self.allows_all(*rights) or any(right in self.names for right in rights)

    def allows(self, access: str, target_type: str, name: str) -> bool:
        """Return True if the access applies to the object with this name."""
        right = (access, target_type)
        return self.is_admin or right in self.rights or name in self.names.get(right, NO_PATTERNS)


ALL_PERMISSIONS, NO_PERMISSIONS = PermissionSet(is_admin=True), PermissionSet()


def name_patterns(ids: Iterable[str]) -> NamePatterns:
    """Return the patterns of the ids in grants: exact names, and prefixes before a trailing `*`."""
    exact, prefixes = set(), []
    for id in ids:
        if id.endswith("*"):
            prefixes.append(id[:-1])
        else:
            exact.add(id)
    return NamePatterns(frozenset(exact), tuple(sorted(prefixes)))
