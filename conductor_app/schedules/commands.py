"""Commands that save, tag and delete schedules."""

from collections.abc import Callable
from typing import Any

from django.db import IntegrityError, transaction

from ... import clock, conf
from ...access.access_types import SCHEDULE
from ...access.current_actor import current_user_id
from ...access.masking import encrypt_masked
from ...access.uses import require_inline_definition, require_starts
from ...core.errors import Conflict
from ...core.masking import mask_like_before, masked_names_of_document, redact_masked
from ...core.timetable import parse_timetable
from ...models import Schedule, ScheduleExecution
from ...models.schedules import WAITING
from ..definitions import resolved_definitions
from ..definitions.tags import Tags, mirror_tags
from ..payloads.size_limits import refuse_large
from .schedule_rows import lock_schedule, record_schedule_change, set_next_from_now, stored_document

Document = dict[str, Any]
OWN_FIELDS = frozenset(
    {"createTime", "updatedTime", "createdBy", "updatedBy", "nextRunTime", "paused", "pausedReason", "tags"}
)
"""Fields of a schedule that are columns, and so are not stored in the document."""


def save_schedule(document: Document, by: str, reason: str = "") -> Schedule:
    """Create or replace a schedule. It starts runs with the permissions of the current actor, its owner.

    Raises:
        Invalid: when a cron expression or time zone is invalid.
        Forbidden: when the current actor may not start the workflow.
        Conflict: when a concurrent request creates the same schedule.
        PayloadTooLarge: when the input of its runs is larger than the limit.
    """
    parse_timetable(document)
    request = document["startWorkflowRequest"]
    refuse_large(request.get("input"), conf.workflow_payload_max_bytes)
    if request.get("workflowDef"):
        require_inline_definition(request["workflowDef"])
    else:
        require_starts([request["name"]])
    with transaction.atomic():
        now = clock.now()
        found = Schedule.objects.select_for_update().filter(name=document["name"]).first()
        row = found or Schedule(name=document["name"], revision=0, created_at=now)
        row.created_by = row.created_by or str(document.get("createdBy") or by)[:255]
        row.updated_at, row.updated_by = now, str(document.get("updatedBy") or by)[:255]
        # A change can make the schedule start another workflow, so its author becomes the owner.
        row.owner_id = current_user_id()
        _fill_row(row, document, now, stored_document(found) if found else {})
        _save_row(row)
        row.document = redact_masked(row.document)
        if document.get("tags"):
            mirror_tags(SCHEDULE, row.name, row.tags)
        record_schedule_change(row.name, "overwrite" if found else "create", by, now, reason)
    return row


def _fill_row(row: Schedule, document: Document, now: int, before: Document) -> None:
    own = {name: value for name, value in document.items() if name not in OWN_FIELDS}
    row.document = {**own, "startWorkflowRequest": _masked_request(document["startWorkflowRequest"], before)}
    row.workflow_name = document["startWorkflowRequest"]["name"]
    row.overlap = document.get("overlapPolicy") or "ALLOW"
    row.is_paused = bool(document.get("paused"))
    row.paused_reason = str(document.get("pausedReason") or "") if row.is_paused else ""
    if document.get("tags"):
        row.tags = document["tags"]
    row.revision += 1
    set_next_from_now(row, now)


def _masked_request(request: Document, before: Document) -> Document:
    """Return the start request with the masked values of its input encrypted."""
    found = (
        resolved_definitions.find_row(request["name"], request.get("version"))
        if not request.get("workflowDef")
        else None
    )
    names = masked_names_of_document(request.get("workflowDef") or (found.document if found else {}))
    if not names or not request.get("input"):
        return request
    stored = before.get("startWorkflowRequest") or {}
    # `***` keeps the stored value only for the same workflow: another one could reveal it to the author.
    is_same = all(stored.get(part) == request.get(part) for part in ("name", "workflowDef"))
    old = stored.get("input") if is_same else None
    return {**request, "input": mask_like_before(request["input"], old, names, encrypt_masked)}


def _save_row(row: Schedule) -> None:
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        # A concurrent request created the same row first.
        raise Conflict(f"The schedule {row.name} was created by a concurrent request.") from None


def delete_schedule(name: str, by: str, reason: str = "") -> None:
    """Delete a schedule and its waiting slots, if it exists. Its runs continue."""
    with transaction.atomic():
        if Schedule.objects.filter(name=name).delete()[0]:
            ScheduleExecution.objects.filter(schedule_name=name, state=WAITING).delete()
            record_schedule_change(name, "delete", by, clock.now(), reason)


def change_tags(name: str, change: Callable[[Tags], Tags], by: str) -> None:
    """Replace the tags of a schedule by the result of `change`.

    Raises:
        NotFound: when there is no such schedule.
    """
    with transaction.atomic():
        row = lock_schedule(name)
        row.tags = change(row.tags)
        row.save(update_fields=["tags"])
        mirror_tags(SCHEDULE, name, row.tags)
        record_schedule_change(name, "tag", by, clock.now())
