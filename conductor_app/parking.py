"""The contract between a web server that keeps waiting requests without threads, and the application."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

ACCEPTS_WAITING_KEY = "conductor_app.accepts_waiting_requests"
"""The key in the environment of a request whose server accepts a `WaitingRequest` as the response."""


class FinishedResponse(Protocol):
    """The parts of Django's response that a server sends."""

    status_code: int
    reason_phrase: str

    def items(self) -> Iterable[tuple[str, str]]:
        """Return the headers."""

    def __iter__(self) -> Iterator[bytes]: ...


class WaitingRequest(Protocol):
    """A request whose response is not known yet. The server calls its methods from any thread, one at a time."""

    @property
    def seconds(self) -> float:
        """Return the maximum time of the current wait."""

    def begin_wait(self, wake: Callable[[], None]) -> bool:
        """Call `wake` when the wait is over before its time. Returns False if it is over now."""

    def resume(self) -> FinishedResponse | None:
        """Continue after a wait. Returns the response, or None if the request waits again."""

    def abandon(self) -> None:
        """End the wait without a response, because the client has disconnected."""

    def close(self) -> None:
        """Release what the request holds, after the response has been sent."""
