"""`..`: the segment that looks at every depth."""

from dataclasses import dataclass
from typing import Any, ClassVar

from .reading import Reading


@dataclass(frozen=True)
class Descent:
    """`..x`: the segment after the dots, tried at the value itself and at everything below it."""

    segment: Any
    is_last: bool = True
    is_definite: ClassVar[bool] = False

    def step(self, hits: list[Any], reading: Reading) -> list[Any]:
        """Return the results of the segment at every depth, parents before children."""
        found: list[Any] = []
        pending = list(reversed(hits))
        while pending:
            value = pending.pop()
            if isinstance(value, dict | list):
                reading.visit()
                if self._stops_at(value, reading):
                    found.extend(self._found_at(value, reading))
                pending.extend(reversed(value.values() if isinstance(value, dict) else value))
        return found

    def _stops_at(self, value: Any, reading: Reading) -> bool:
        # Jayway does not look for functions at every depth: `..length()` finds nothing.
        is_in = getattr(self.segment, "is_in", None)
        return is_in is not None and is_in(value, reading)

    def _found_at(self, value: Any, reading: Reading) -> list[Any]:
        # In the middle of a path, Jayway continues with every element of a list, whatever the segment selects.
        if isinstance(value, list) and not self.is_last:
            reading.visit(len(value))
            return value
        return self.segment.step([value], reading)
