"""Previews of the results of events, without executing any action."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from ...engine.events.event_replays import HandlerPreview, HandlerTrial
from ...models import EventDelivery
from ...models.events import FAILED, MATCHED, NOT_MATCHED
from ...models.fields import dumps
from ..badges import render_pill
from . import event_formatting

MAX_PARAMS_LENGTH = 400


@dataclass(frozen=True, slots=True)
class HandlerPreviewView:
    """View of the preview of one handler."""

    handler: str
    verdict: SafeString
    matches: bool
    condition: str
    seen: dict[str, Any]
    value: Any
    error: str
    acts: Sequence[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class TriedEvent:
    """One past event: the handler's result now, and its past result if that differs."""

    event: EventDelivery
    preview: HandlerPreviewView
    before: SafeString | None


def preview_view(preview: HandlerPreview) -> HandlerPreviewView:
    """Return the view of a preview."""
    verdict = preview.verdict
    group, word = event_formatting.VERDICT_LABELS[verdict.outcome]
    return HandlerPreviewView(
        verdict.handler.name,
        render_pill(group, str(word)),
        verdict.outcome == MATCHED,
        str(verdict.handler.document.get("condition") or ""),
        verdict.seen,
        verdict.answer.value,
        verdict.answer.error,
        [(act.name, _short_params(act.params), act.trouble) for act in preview.acts],
    )


def _short_params(params: Any) -> str:
    text = dumps(params) or ""
    return text if len(text) <= MAX_PARAMS_LENGTH else f"{text[:MAX_PARAMS_LENGTH]}…"


def trial_view(trial: HandlerTrial) -> dict[str, Any]:
    """Return the tested events, and the number of events per result."""
    rows = [TriedEvent(event, preview_view(each), _past_verdict(event, each)) for event, each in trial.tried]
    kinds = [each.verdict.outcome for _event, each in trial.tried]
    return {
        "rows": rows,
        "large": trial.large,
        "left": trial.left,
        "counts": [
            (*event_formatting.VERDICT_LABELS[kind], kinds.count(kind)) for kind in (MATCHED, NOT_MATCHED, FAILED)
        ],
        "changed": sum(row.before is not None for row in rows),
    }


def _past_verdict(event: EventDelivery, each: HandlerPreview) -> SafeString | None:
    name, outcome = each.verdict.handler.name, each.verdict.outcome
    then = next((row for row in event.verdicts.all() if row.handler == name), None)
    if then is None:
        return render_pill("stopped", _("was not enabled"))
    return None if then.outcome == outcome else event_formatting.verdict_label(then)
