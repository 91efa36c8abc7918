"""WAIT_FOR_WEBHOOK: waits for an event that a webhook receives."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import AwaitWebhook, Effect
from ..errors import StepRefused
from ..expressions import quote_value
from ..webhook_matches import match_digest, match_paths, parse_matches, path_error
from .base import StepType, engine_held_task, resolve_inputs


class WaitForWebhook(StepType):
    """Stays open until a webhook with this workflow as a receiver gets a payload with all values in `matches`.

    The output is the payload. A task update or a signal completes the task as well.
    """

    type = "WAIT_FOR_WEBHOOK"
    icon = "message"
    is_forked_by_type = True
    result_comes_from_outside = True
    is_completed_externally = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        try:
            matches = parse_matches(inputs)
        except ValueError as error:
            raise StepRefused(str(error)) from None
        for path in matches:
            if problem := path_error(path):
                raise StepRefused(f"Invalid path {quote_value(path)} in 'matches': {problem}.")
        task = engine_held_task(step, key, ctx.run, now, input=inputs, output={})
        yield task
        yield AwaitWebhook(task.task.attempt.id, match_paths(matches), match_digest(matches))
