"""The query parameters of a page whose address is a permalink: it shows the same view to every user."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import urlencode

MAX_NUMBER_LENGTH = 14


@dataclass(frozen=True)
class PageQuery:
    """Parsed query parameters. `parameters`: the names that links to other views of the page keep."""

    parameters: ClassVar[tuple[str, ...]] = ()
    values: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.values.get(name, "")

    def number(self, name: str) -> int | None:
        """Return a parameter as a whole number, or None."""
        text = self[name]
        return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_NUMBER_LENGTH else None

    def current_choices(self, *without: str) -> dict[str, str]:
        """Return the current parameters, except those named."""
        return {name: self[name] for name in self.parameters if self[name] and name not in without}

    def address(self, **changed: str | int | None) -> str:
        """Return the address of the page with changed parameters. Parameters that are None are removed."""
        chosen = {**self.current_choices(), **changed}
        return "?" + urlencode({name: value for name, value in chosen.items() if value not in (None, "")})
