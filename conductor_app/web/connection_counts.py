"""How many connections each web process has, in memory that the processes share."""

import mmap
import struct

PROCESSES = 64
CURRENT_SECONDS = 5
"""A process writes its count at least once per second. The count of one that has ended is ignored after this time."""

SLOT = struct.Struct("=qd")


class ConnectionCounts:
    """The number of connections of each process. A process is a whole number, its age.

    Create the object before the processes are forked. Each writes only its own slot, so that no lock is needed.
    """

    def __init__(self) -> None:
        self._slots = mmap.mmap(-1, PROCESSES * SLOT.size)

    def set(self, process: int, count: int, now: float) -> None:
        """Store the count of a process. `now`: monotonic seconds, which are the same in all processes of a machine."""
        SLOT.pack_into(self._slots, process % PROCESSES * SLOT.size, count, now)

    def is_more(self, process: int, count: int, now: float) -> bool:
        """Return True if another process has fewer connections than this one."""
        own = process % PROCESSES
        return any(
            other < count and index != own
            for index, (other, written_at) in enumerate(SLOT.iter_unpack(self._slots[:]))
            if now - written_at < CURRENT_SECONDS and written_at
        )
