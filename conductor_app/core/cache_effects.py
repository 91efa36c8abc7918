"""Effects that store a result in the cache."""

from dataclasses import dataclass
from typing import Any

from .effects import Effect


@dataclass(frozen=True, slots=True)
class CacheTaskResult(Effect):
    """Use the output of an attempt for all tasks with this name and cache key until a point in time (milliseconds)."""

    name: str
    digest: str
    attempt_id: str
    until: int

    def to_history(self) -> dict[str, Any]:
        return {"effect": "CacheTaskResult", "name": self.name, "until": self.until}


@dataclass(frozen=True, slots=True)
class CacheRunOutput(Effect):
    """Use the output of a run for all runs with this name and cache key until a point in time (milliseconds)."""

    name: str
    digest: str
    run_id: str
    until: int

    def to_history(self) -> dict[str, Any]:
        return {"effect": "CacheRunOutput", "name": self.name, "until": self.until}
