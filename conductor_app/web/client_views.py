"""Replies that are sent when a wait ends, by a server that keeps the request meanwhile or by a waiting thread."""

from collections.abc import Callable
from contextvars import copy_context
from typing import Generic, TypeVar

from django.http import HttpRequest, HttpResponse

from ..notifications import PendingWait, WaitingClient, WaitSteps, wait_in_thread
from ..parking import ACCEPTS_WAITING_KEY
from ..transient_errors import discard_broken_connection
from .disconnect_check import disconnect_check

Result = TypeVar("Result")


class WaitingReply(HttpResponse, Generic[Result]):
    """A reply that is rendered when its wait is over (`parking.WaitingRequest`).

    It has no content. The middleware sets headers, which the reply to the client receives as well.
    """

    def __init__(self, steps: WaitSteps[Result], wait: PendingWait, render: Callable[[Result], HttpResponse]) -> None:
        super().__init__()
        del self.headers["Content-Type"]
        self._steps, self._wait, self._render_result = steps, wait, render
        self._render_error: Callable[[Exception], HttpResponse] | None = None
        # The log context and the actor of the request, for the thread that continues it.
        self._context = copy_context()

    @property
    def seconds(self) -> float:
        """Return the maximum time of the current wait."""
        return self._wait.seconds

    def begin_wait(self, wake: Callable[[], None]) -> bool:
        """Call `wake` when a notification arrives. Returns False if there is one already."""
        return self._wait.waiter.begin_wait(wake)

    def resume(self) -> HttpResponse | None:
        """Continue after a wait. Returns the reply, or None if the request waits again."""
        return self._context.run(self._continue, self._wait.waiter.end_wait())

    def abandon(self) -> None:
        """End the wait, because the client has disconnected."""
        self._context.run(self._steps.close)
        self.close()

    def render_errors_with(self, render: Callable[[Exception], HttpResponse]) -> None:
        """Set the function that renders the errors of the request after its wait."""
        self._render_error = render

    def _continue(self, is_woken: bool) -> HttpResponse | None:
        discard_broken_connection()
        try:
            try:
                self._wait = self._steps.send(is_woken)
                return None
            except StopIteration as end:
                reply = self._render_result(end.value)
        except Exception as error:
            if self._render_error is None:
                raise
            reply = self._render_error(error)
        for name, value in self.headers.items():
            reply.headers.setdefault(name, value)
        return reply


def waiting_client(request: HttpRequest) -> WaitingClient:
    """Return the client of a request that may wait."""
    return WaitingClient(disconnect_check(request), holds_thread=ACCEPTS_WAITING_KEY not in request.META)


def reply_after(
    request: HttpRequest, steps: WaitSteps[Result], render: Callable[[Result], HttpResponse]
) -> HttpResponse:
    """Return the reply that `render` makes of the result. If the server keeps waiting requests, it is rendered later.

    Raises:
        Exception: what the steps raise before the first wait.
    """
    if ACCEPTS_WAITING_KEY not in request.META:
        return render(wait_in_thread(steps))
    try:
        wait = next(steps)
    except StopIteration as end:
        return render(end.value)
    return WaitingReply(steps, wait, render)


def render_errors(reply: HttpResponse, render: Callable[[Exception], HttpResponse]) -> None:
    """Render the errors of a reply that waits as those of other requests."""
    if isinstance(reply, WaitingReply):
        reply.render_errors_with(render)
