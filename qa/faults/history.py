"""The history of a test: an append-only list of events, also written to a file as one JSON document per line."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

Event = dict[str, Any]


class History:
    """Records events from any thread. `at` is the time of the wall clock in seconds, `tick` of the monotonic clock."""

    def __init__(self, path: Path | None = None) -> None:
        self.events: list[Event] = []
        self._file = path.open("a") if path else None
        self._lock = Lock()

    def record(self, kind: str, **facts: Any) -> Event:
        """Append an event."""
        event = {"kind": kind, "at": time.time(), "tick": time.monotonic(), **facts}
        with self._lock:
            self.events.append(event)
            if self._file:
                self._file.write(json.dumps(event) + "\n")
                self._file.flush()
        return event

    def of(self, kind: str) -> list[Event]:
        """Return the events of one kind."""
        with self._lock:
            return [event for event in self.events if event["kind"] == kind]

    def count(self, kind: str, matches: Callable[[Event], bool] = lambda event: True) -> int:
        """Return the number of events of one kind."""
        return sum(map(matches, self.of(kind)))
