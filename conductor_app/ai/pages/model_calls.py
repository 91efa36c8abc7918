"""The calls of models in the panel of a task."""

from dataclasses import dataclass

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from ...core.definition import structure_of
from ...runs.models import Attempt
from ...tasks.pages.task_panel import PanelSection
from ...utils.formatting import format_duration
from ...web.badges import format_count, render_pill
from ..models import ModelCall
from ..queries.budgets import format_cost
from ..queries.usage import calls_of_attempt


@dataclass(frozen=True, slots=True)
class ModelCallView:
    """One call of a model. `notes`: sentences about what an operator should know."""

    call: ModelCall
    status: SafeString
    tokens: str
    cost: str
    duration: str
    notes: list[str]


def model_calls_section(attempt: Attempt) -> PanelSection | None:
    """Return the calls of an attempt, oldest first, or None if it has made none."""
    if not structure_of(attempt.task.type).calls_models:
        return None
    calls = [_view_of(call) for call in calls_of_attempt(attempt.pk)]
    return PanelSection("ops/ai/model_calls.html", calls) if calls else None


def _view_of(call: ModelCall) -> ModelCallView:
    tokens = ""
    if call.prompt_tokens or call.completion_tokens:
        tokens = _("%(sent)s sent, %(received)s received") % {
            "sent": format_count(call.prompt_tokens),
            "received": format_count(call.completion_tokens),
        }
    return ModelCallView(
        call,
        _status_pill(call.status),
        tokens,
        format_cost(call.cost) if call.cost else "",
        format_duration(call.ended_at - call.started_at) if call.ended_at and call.status != "LOST" else "",
        _notes(call),
    )


def _status_pill(status: str) -> SafeString:
    tone, label = {
        "STARTED": ("active", _("Open")),
        "REPLIED": ("succeeded", _("Replied")),
        "FAILED": ("failed", _("Failed")),
        "LOST": ("failed", _("Reply lost")),
    }.get(status, ("waiting", status))
    return render_pill(tone, label)


def _notes(call: ModelCall) -> list[str]:
    if call.status == "LOST":
        return [_("The process ended before the reply arrived. This call may have been paid in addition.")]
    if call.reused_at:
        return [_("The stored reply was used after the process had ended. It was paid once.")]
    return [call.error] if call.error else []
