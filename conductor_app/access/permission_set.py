"""Powers: all that somebody may do, as a value that answers without a query."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .access_types import Right


@dataclass(frozen=True, slots=True)
class NamePatterns:
    """Some names, and what names may begin with."""

    exact: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return name in self.exact or name.startswith(self.prefixes)


NO_PATTERNS = NamePatterns()


@dataclass(frozen=True, slots=True)
class PermissionSet:
    """Rights over all things of a type, and over some of them by name."""

    is_admin: bool = False
    rights: frozenset[Right] = frozenset()
    names: Mapping[Right, NamePatterns] = field(default_factory=dict)

    def allows_all(self, *rights: Right) -> bool:
        """Whether one of these rights is held over everything of its type."""
        return self.is_admin or not self.rights.isdisjoint(rights)

    def allows(self, access: str, target_type: str, name: str) -> bool:
        """Whether the thing with this name may be used so."""
        right = (access, target_type)
        return self.is_admin or right in self.rights or name in self.names.get(right, NO_PATTERNS)


ALL_PERMISSIONS, NO_PERMISSIONS = PermissionSet(is_admin=True), PermissionSet()


def name_patterns(ids: Iterable[str]) -> NamePatterns:
    """What grants name: exactly, or by the beginning before a last `*`."""
    exact, prefixes = set(), []
    for id in ids:
        if id.endswith("*"):
            prefixes.append(id[:-1])
        else:
            exact.add(id)
    return NamePatterns(frozenset(exact), tuple(sorted(prefixes)))
