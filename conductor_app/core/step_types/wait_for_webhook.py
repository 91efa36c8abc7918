"""WAIT_FOR_WEBHOOK: wait for an event that a webhook receives."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import AwaitWebhook, Effect
from ..errors import StepRefused
from ..webhook_matches import digest_of, fault_of, matches_of, paths_of
from .base import StepType, held_by_engine, inputs_of


class WaitForWebhook(StepType):
    """Stay open until a webhook that names this workflow as a receiver gets a payload with all values in `matches`.

    The output is the payload. A task update or a signal completes the task too.
    """

    type = "WAIT_FOR_WEBHOOK"
    is_completed_externally = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = inputs_of(step, ctx, key, ctx.run, now)
        try:
            matches = matches_of(inputs)
        except ValueError as error:
            raise StepRefused(str(error)) from None
        for path in matches:
            if fault := fault_of(path):
                raise StepRefused(f"The path {path!r} in 'matches' cannot be read: {fault}.")
        task = held_by_engine(step, key, ctx.run, now, input=inputs, output={})
        yield task
        yield AwaitWebhook(task.task.attempt.id, paths_of(matches), digest_of(matches))
