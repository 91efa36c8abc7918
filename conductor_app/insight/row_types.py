"""Named tuples for the rows of queries whose columns are listed elsewhere."""

from collections import namedtuple
from collections.abc import Iterable
from typing import Any


def row_type(name: str, columns: Iterable[str]) -> Any:
    """Return a named tuple class with these columns. It is untyped, because its columns are known at run time only."""
    return namedtuple(name, list(columns))
