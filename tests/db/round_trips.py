"""Count the exchanges with PostgreSQL."""

import sys


class RoundTrips:
    """The exchanges of this thread with PostgreSQL in a block."""

    def __enter__(self) -> "RoundTrips":
        self.count = 0
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _count(self, frame, event, _argument) -> None:
        self.count += event == "call" and frame.f_code.co_name == "_send_statements"
