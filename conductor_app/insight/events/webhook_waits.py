"""Tasks that wait for the events of a webhook."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Exists, OuterRef, Q

from ...core.webhook_matches import parse_matches
from ...models import Attempt, WebhookWait

MAX_SHOWN = 50


def waiting_tasks(receivers: Mapping[str, int]) -> list[tuple[Attempt, dict[str, Any]]]:
    """Return the attempts that wait for an event, oldest first, each with its condition. At most MAX_SHOWN.

    `receivers`: versions of the workflows that receive the events, by workflow name; 0 is any version.
    """
    received = Q(pk__in=[])
    for workflow, version in receivers.items():
        received |= Q(workflow=workflow, version=version) if version else Q(workflow=workflow)
    is_open = Exists(Attempt.objects.filter(pk=OuterRef("attempt_id"), status="LEASED"))
    waits = WebhookWait.objects.filter(received, is_open).order_by("created_at", "attempt_id")
    ids = list(waits.values_list("attempt_id", flat=True)[:MAX_SHOWN])
    rows = Attempt.objects.of_runs().filter(pk__in=ids).select_related("task", "run").defer("output").in_bulk()
    return [(rows[id], _condition(rows[id].input)) for id in ids if id in rows]


def _condition(inputs: Any) -> dict[str, Any]:
    try:
        return parse_matches(inputs) if isinstance(inputs, dict) else {}
    except ValueError:
        return {}
