"""HTTP tasks: one request to another system, and its answer as the task's output."""

from conductor_app.core.step_types.http import HttpStep
from conductor_app.workers.http_exchange import HttpLimits, HttpTransport, RequestFailed, configured_limits
from conductor_app.workers.worker import BuiltInWorker, WorkResult

__all__ = ["Http", "HttpLimits"]


class Http(BuiltInWorker):
    """Makes the request that the input describes, unless the guard refuses the address."""

    type = HttpStep.type

    def __init__(self, limits=configured_limits):
        self._transport = HttpTransport(limits)

    def perform(self, inputs) -> WorkResult:
        """Return the reply as `response`. Every failure is a result with a readable message."""
        try:
            return self._transport.reply_to(inputs).outcome
        except RequestFailed as failure:
            return failure.outcome
