"""Query parameters of a run's page. The address is a permalink: it shows the same view to every user."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

LOG_PARAMETERS = ("find", "log", "line")
"""Parameters of the log of one attempt. Selecting another task or attempt removes them."""
RUN_PARAMETERS = ("tab", "task", "attempt", "only", "status", "from", "to", "children", "critical", "revision")
VIEW_PARAMETERS = RUN_PARAMETERS + LOG_PARAMETERS
"""Parameters that links to other views keep."""


@dataclass(frozen=True)
class RunPageQuery:
    """Parsed query parameters."""

    values: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.values.get(name, "")

    def number(self, name: str) -> int | None:
        """Return a parameter as whole number, or None."""
        text = self[name]
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 15 else None

    def current_choices(self, *but: str) -> dict[str, str]:
        """Return the current parameters without some."""
        return {name: self[name] for name in VIEW_PARAMETERS if self[name] and name not in but}

    def address(self, **other: str | int | None) -> str:
        """Return the address of the page with other parameters. Parameters that are None are removed."""
        dropped = LOG_PARAMETERS if other.keys() & {"task", "attempt"} else ()
        chosen = {**self.current_choices(*dropped), **other}
        return "?" + urlencode({name: value for name, value in chosen.items() if value not in (None, "")})
