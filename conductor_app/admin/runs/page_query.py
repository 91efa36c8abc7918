"""What an address of a run's page says: copied to a colleague, it shows the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

LOG_PARAMETERS = ("find", "log", "line")
"""Choices that speak of the log of one attempt: another task or attempt has another."""
RUN_PARAMETERS = ("tab", "task", "attempt", "only", "status", "from", "to", "children", "critical", "revision")
KEPT_PARAMETERS = RUN_PARAMETERS + LOG_PARAMETERS
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

    def current_choices(self, *but: str) -> dict[str, str]:
        """The choices that were made, without some."""
        return {name: self[name] for name in KEPT_PARAMETERS if self[name] and name not in but}

    def address(self, **other: str | int | None) -> str:
        """The same page with something else chosen; what is None is left out."""
        dropped = LOG_PARAMETERS if other.keys() & {"task", "attempt"} else ()
        chosen = {**self.current_choices(*dropped), **other}
        return "?" + urlencode({name: value for name, value in chosen.items() if value not in (None, "")})
