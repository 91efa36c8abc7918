"""The effects by which a result is kept, to be used again."""

from dataclasses import dataclass
from typing import Any

from .effects import Effect


@dataclass(frozen=True, slots=True)
class CacheTaskResult(Effect):
    """What an attempt has come to is the result of all tasks of this name and key, until then."""

    name: str
    digest: str
    attempt_id: str
    until: int

    def to_history(self) -> dict[str, Any]:
        return {"effect": "CacheTaskResult", "name": self.name, "until": self.until}


@dataclass(frozen=True, slots=True)
class CacheRunOutput(Effect):
    """What a run has come to is the output of all runs of this name and key, until then."""

    name: str
    digest: str
    run_id: str
    until: int

    def to_history(self) -> dict[str, Any]:
        return {"effect": "CacheRunOutput", "name": self.name, "until": self.until}
