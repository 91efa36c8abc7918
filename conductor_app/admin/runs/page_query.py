"""What an address of a run's page says: copied to a colleague, it shows the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

OF_A_LOG = ("find", "log", "line")
"""Choices that speak of the log of one attempt: another task or attempt has another."""
OF_A_RUN = ("tab", "task", "attempt", "only", "status", "from", "to", "children", "critical", "revision")
KEPT = OF_A_RUN + OF_A_LOG
"""The choices that other choices keep."""


@dataclass(frozen=True)
class RunPageQuery:
    """What the address asks for."""

    values: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.values.get(name, "")

    def number(self, name: str) -> int | None:
        """A whole number, if it is one."""
        given = self[name]
        return int(given) if given.isascii() and given.isdecimal() and len(given) < 15 else None

    def kept(self, *but: str) -> dict[str, str]:
        """The choices that were made, without some."""
        return {name: self[name] for name in KEPT if self[name] and name not in but}

    def address(self, **other: str | int | None) -> str:
        """The same page with something else chosen; what is None is left out."""
        of_another = OF_A_LOG if other.keys() & {"task", "attempt"} else ()
        chosen = {**self.kept(*of_another), **other}
        return "?" + urlencode({name: value for name, value in chosen.items() if value not in (None, "")})
