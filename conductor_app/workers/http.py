"""HTTP tasks: one request, with its reply as the output of the task."""

from collections.abc import Callable
from typing import Any

from conductor_app.core.step_types.http import HttpStep
from conductor_app.workers.http_exchange import HttpLimits, HttpTransport, RequestFailed, configured_limits
from conductor_app.workers.worker import BuiltInWorker, WorkResult

__all__ = ["Http", "HttpLimits"]


class Http(BuiltInWorker):
    """Sends the request that the input describes, unless the network guard refuses its address."""

    type = HttpStep.type

    def __init__(self, limits: Callable[[], HttpLimits] = configured_limits) -> None:
        self._transport = HttpTransport(limits)

    def perform(self, inputs: dict[str, Any]) -> WorkResult:
        """Return the reply as `response`. A failure is a result with a readable message, not an exception."""
        try:
            return self._transport.reply_to(inputs).outcome
        except RequestFailed as failure:
            return failure.outcome
