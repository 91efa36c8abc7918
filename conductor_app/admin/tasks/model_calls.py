"""The calls of models in the panel of a task."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from ...insight.ai.amounts import format_cost
from ...insight.ai.attempt_calls import calls_of_attempt
from ...insight.durations import format_duration
from ...models import Attempt, ModelCall


@dataclass(frozen=True, slots=True)
class ModelCallView:
    """One call of a model. `notes`: sentences about what an operator should know."""

    call: ModelCall
    status: str
    tokens: str
    cost: str
    duration: str
    notes: list[str]


def model_calls_of(attempt: Attempt) -> list[ModelCallView]:
    """Return the calls of an attempt, oldest first."""
    return [_view_of(call) for call in calls_of_attempt(attempt.pk)]


def _view_of(call: ModelCall) -> ModelCallView:
    tokens = ""
    if call.prompt_tokens or call.completion_tokens:
        tokens = _("%(sent)s sent, %(received)s received") % {
            "sent": f"{call.prompt_tokens:,}",
            "received": f"{call.completion_tokens:,}",
        }
    return ModelCallView(
        call,
        _status_text(call.status),
        tokens,
        format_cost(call.cost) if call.cost else "",
        format_duration(call.ended_at - call.started_at) if call.ended_at and call.status != "LOST" else "",
        _notes(call),
    )


def _status_text(status: str) -> str:
    return {
        "STARTED": _("Open"),
        "REPLIED": _("Replied"),
        "FAILED": _("Failed"),
        "LOST": _("Reply lost"),
    }.get(status, status)


def _notes(call: ModelCall) -> list[str]:
    if call.status == "LOST":
        return [_("The process ended before the reply arrived. This call may have been paid in addition.")]
    if call.reused_at:
        return [_("The stored reply was used after the process had ended. It was paid once.")]
    return [call.error] if call.error else []
