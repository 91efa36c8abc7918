"""What a process keeps in memory between requests: caches, buffers and waiting polls.

A module declares its part at import, and reads it as `value`:

    _cache = process_state.slot(SecretCache)

No other module-level value changes, so that `reset` makes a process like a new one: a child process after a fork, and
the process of the tests before each test. What `apps.ready` connects at the start is `wiring`, which `reset` keeps.
"""

import os
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Wiring(Generic[T]):
    """A value that is connected at the start of the process, and stays."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value: T = value


class Slot(Wiring[T]):
    """A value that changes while the process runs. A thread that must read it twice binds it to a local name."""

    __slots__ = ("_create",)

    def __init__(self, create: Callable[[], T]) -> None:
        super().__init__(create())
        self._create = create

    def reset(self) -> None:
        """Replace the value by a new one. Threads that hold the former value continue with it."""
        self.value = self._create()


class ProcessState:
    """All slots of the process."""

    def __init__(self) -> None:
        self._slots: list[Slot[Any]] = []

    def slot(self, create: Callable[[], T]) -> Slot[T]:
        """Declare a value of this process. `create`: returns a new one."""
        slot = Slot(create)
        self._slots.append(slot)
        return slot

    def reset(self) -> None:
        """Replace every value by a new one, in the order of their declaration."""
        for slot in self._slots:
            slot.reset()


_state = ProcessState()
slot, reset = _state.slot, _state.reset
wiring = Wiring
server_started: Wiring[int] = wiring(0)
"""When the web server started, in epoch milliseconds. 0: this process is no web server."""
os.register_at_fork(after_in_child=reset)
