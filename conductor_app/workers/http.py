"""HTTP tasks: one request to another system, and its answer as the task's output."""

from conductor_app.workers.http_exchange import Limits, Transport, Unanswered, configured
from conductor_app.workers.worker import Worker, WorkResult

__all__ = ["Http", "Limits"]


class Http(Worker):
    """Makes the request that the input describes, unless the guard refuses the address."""

    type = "HTTP"

    def __init__(self, limits=configured):
        self._transport = Transport(limits)

    def perform(self, inputs) -> WorkResult:
        """The answer as `response`; every failure is an outcome that a person can read."""
        try:
            return self._transport.reply_to(inputs).outcome
        except Unanswered as failure:
            return failure.outcome
