"""Hits of the command palette, and the type of its sources."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.http import HttpRequest


@dataclass(frozen=True, slots=True)
class PaletteHit:
    """One hit: its kind, its name, its address, and a secondary text."""

    kind: str
    name: str
    address: str
    icon: str
    note: str = ""
    is_page: bool = False


Source = Callable[[HttpRequest, str], Iterator[PaletteHit]]
