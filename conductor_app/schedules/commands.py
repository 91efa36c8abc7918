"""Commands of people on schedules: save, tag, delete, run now, backfill, and compute the next times."""

from collections.abc import Callable
from itertools import islice
from typing import Any

from django.db import IntegrityError

from ..access.authentication import acting_as_owner, current_user_id
from ..access.encryption import encrypt_masked
from ..access.grants import Tags, mirror_tags, require_inline_definition, require_starts
from ..access.permissions import SCHEDULE
from ..core.cron import ScheduleSlot, parse_timetable
from ..core.errors import Conflict, Invalid, NotFound
from ..core.masking import mask_like_before, masked_names_of_document, redact_masked
from ..core.primitives import derived_id
from ..db.database import transaction
from ..definitions import resolved_definitions
from ..payloads.commands import refuse_large
from ..runs.commands.start import start_run
from ..settings import conf
from ..utils import clock, randomness
from . import firing
from .models import EXECUTED, FAILED, WAITING, Schedule, ScheduleExecution

Document = dict[str, Any]
OWN_FIELDS = frozenset(
    {"createTime", "updatedTime", "createdBy", "updatedBy", "nextRunTime", "paused", "pausedReason", "tags"}
)
"""Fields of a schedule that are columns, and so are not stored in the document."""


def save_schedule(document: Document, by: str, reason: str = "") -> Schedule:
    """Create or replace a schedule. It starts runs with the permissions of the current actor, its owner.

    Raises:
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
        _fill_row(row, document, now, firing.stored_document(found) if found else {})
        _save_row(row)
        row.document = redact_masked(row.document)
        if document.get("tags"):
            mirror_tags(SCHEDULE, row.name, row.tags)
        firing.record_schedule_change(row.name, "overwrite" if found else "create", by, now, reason)
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
    firing.set_next_from_now(row, now)


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
            firing.record_schedule_change(name, "delete", by, clock.now(), reason)


def change_tags(name: str, change: Callable[[Tags], Tags], by: str) -> None:
    """Replace the tags of a schedule by the result of `change`."""
    with transaction.atomic():
        row = firing.lock_schedule(name)
        row.tags = change(row.tags)
        row.save(update_fields=["tags"])
        mirror_tags(SCHEDULE, name, row.tags)
        firing.record_schedule_change(name, "tag", by, clock.now())


MAX_BACKFILLED = 5_000


def run_now(name: str, by: str, reason: str = "") -> str:
    """Start a run of the schedule now, even if it is paused or has open runs. Returns the id of the run.

    Raises:
        NotFound: when there is no such schedule or definition.
        Invalid, Conflict, Busy: as `runs.start`.
    """
    schedule = Schedule.objects.filter(name=name).first()
    if schedule is None:
        raise NotFound(f"No such schedule found by name: {name}")
    now, entry = clock.now(), firing.timetable_of(schedule).entries[0]
    id = derived_id(now, randomness.random_hex())
    execution = firing.execution_record(schedule, id, now, now, entry.expression, entry.zone_id)

    def record_start(run_id: str) -> None:
        execution.state, execution.run_id = EXECUTED, run_id
        execution.save(force_insert=True)
        firing.record_schedule_change(name, "run now", by, now, reason, run=run_id)

    with acting_as_owner(schedule.owner_id):
        return start_run(firing.start_request(schedule, execution), by, record_start)


def backfill(name: str, first: int, last: int, by: str, reason: str = "") -> int:
    """Run the slots of a past period that have not run. `first`, `last`: milliseconds. Returns the number of slots.

    Raises:
        Invalid: when the period is not in the past, or has too many slots.
        Conflict: when the schedule is paused.
    """
    with transaction.atomic():
        schedule, now = firing.lock_schedule(name), clock.now()
        if schedule.is_paused:
            raise Conflict(f"The schedule {name} is paused. Resume it first.")
        slots = _slots_between(schedule, first, _check_span(schedule, first, last, now))
        missed = _missed_executions(schedule, slots, now)
        changed = [field.name for field in ScheduleExecution._meta.concrete_fields if field.name != "id"]
        ScheduleExecution.objects.bulk_create(
            missed, batch_size=50, update_conflicts=True, unique_fields=["id"], update_fields=changed
        )
        firing.record_schedule_change(name, "backfill", by, now, reason, first=first, last=last, slots=len(missed))
    return len(missed)


def _check_span(schedule: Schedule, first: int, last: int, now: int) -> int:
    if not 0 <= first <= last <= now:
        raise Invalid(f"A backfill needs a startTime and a later endTime, both in the past (got {first} and {last}).")
    # The schedule fires the slots from its next one on by itself.
    ahead = firing.next_slot(schedule)
    return last if ahead is None else min(last, ahead.at - 1)


def _slots_between(schedule: Schedule, first: int, last: int) -> list[ScheduleSlot]:
    slots = list(islice(firing.timetable_of(schedule).between(first, last), MAX_BACKFILLED + 1))
    if len(slots) > MAX_BACKFILLED:
        raise Invalid(f"The period has more than {MAX_BACKFILLED} slots. Choose a shorter one.")
    return slots


def _missed_executions(schedule: Schedule, slots: list[ScheduleSlot], now: int) -> list[ScheduleExecution]:
    """Return the records of the slots that have not run and do not wait."""
    table = firing.timetable_of(schedule)
    records = {
        execution.id: execution for execution in (firing.new_execution(schedule, table, slot, now) for slot in slots)
    }
    done = ScheduleExecution.objects.filter(schedule_name=schedule.name).exclude(state=FAILED)
    if slots:
        span = done.filter(slot_at__gte=slots[0].at, slot_at__lte=slots[-1].at).values_list("id", flat=True)
        for id in span.iterator(chunk_size=2000):
            records.pop(id, None)
    for execution in records.values():
        execution.state, execution.waits_for_others = WAITING, schedule.overlap != "ALLOW"
        execution.reason = "Waiting to be started."
    return list(records.values())


def next_times(expression: str, zone_id: str, *, starts_at: int | None, ends_at: int | None, limit: int) -> list[int]:
    """Return the next times of a cron expression in milliseconds, at most `limit`."""
    written = {"cronExpression": expression, "zoneId": zone_id}
    table = parse_timetable({**written, "scheduleStartTime": starts_at, "scheduleEndTime": ends_at})
    found: list[int] = []
    slot = table.after(clock.now())
    while slot is not None and len(found) < limit:
        found.append(slot.at)
        slot = table.after(slot.at)
    return found
