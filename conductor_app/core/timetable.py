"""Slots of a schedule: the times at which it starts runs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from hashlib import sha256
from typing import Any

from .cron import Cron, parse_cron, parse_zone
from .errors import Invalid

MAX_ENTRIES = 100
MAX_JITTER_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class TimetableEntry:
    """One cron expression of a schedule with its time zone, parsed and as written."""

    cron: Cron
    zone: tzinfo
    expression: str
    zone_id: str


@dataclass(frozen=True, slots=True, order=True)
class ScheduleSlot:
    """One point in time of one entry. Entries with the same time follow one another in order."""

    at: int
    entry: int


@dataclass(frozen=True, slots=True)
class Timetable:
    """All slots of a schedule.

    `window_ms`: maximum age of a missed slot that is caught up; None for no limit. `jitter_ms`: the period over which
    the runs of one slot are spread.
    """

    entries: tuple[TimetableEntry, ...]
    starts_at: int | None = None
    ends_at: int | None = None
    catches_up: bool = False
    window_ms: int | None = None
    jitter_ms: int = 0

    def after(self, moment: int) -> ScheduleSlot | None:
        """Return the first slot after a time (milliseconds), or None."""
        if self.starts_at is not None:
            # A slot exactly at the start time counts.
            moment = max(moment, self.starts_at - 1)
        found = ((entry.cron.after(moment, entry.zone), number) for number, entry in enumerate(self.entries))
        first = min((ScheduleSlot(at, number) for at, number in found if at is not None), default=None)
        return None if first is None or (self.ends_at is not None and first.at > self.ends_at) else first

    def following(self, slot: ScheduleSlot, now: int) -> ScheduleSlot | None:
        """Return the slot after one that was handled at `now`. Missed slots are caught up or skipped."""
        for number in range(slot.entry + 1, len(self.entries)):
            entry = self.entries[number]
            if entry.cron.after(slot.at - 1, entry.zone) == slot.at:
                return ScheduleSlot(slot.at, number)
        return self.after(self._from(slot.at, now))

    def _from(self, handled: int, now: int) -> int:
        if not self.catches_up:
            # A slot is not missed before its jitter period has passed.
            return max(handled, now - self.jitter_ms)
        return handled if self.window_ms is None else max(handled, now - self.window_ms - self.jitter_ms - 1)

    def is_too_old(self, slot: ScheduleSlot, now: int) -> bool:
        """Return True if a slot was missed too long ago to be caught up."""
        return self.catches_up and self.window_ms is not None and slot.at < now - self.window_ms - self.jitter_ms

    def runs_at(self, slot: ScheduleSlot, schedule: str) -> int:
        """Return when the run of a slot starts: the slot plus a jitter derived from it."""
        if not self.jitter_ms:
            return slot.at
        digest = sha256(f"{schedule} {slot.at} {slot.entry}".encode()).digest()
        return slot.at + int.from_bytes(digest[:6], "big") % (self.jitter_ms + 1)

    def between(self, first: int, last: int) -> Iterator[ScheduleSlot]:
        """Yield every slot from `first` to `last`, both included."""
        slot = self.after(first - 1)
        while slot is not None and slot.at <= last:
            yield slot
            # No slot is missed if `now` is the slot itself.
            slot = self.following(slot, slot.at)


def parse_timetable(document: Mapping[str, Any]) -> Timetable:
    """Return the timetable of a schedule's document.

    Raises:
        Invalid: when a cron expression or a time zone is invalid, or there are too many expressions.
    """
    single = {"cronExpression": document.get("cronExpression"), "zoneId": document.get("zoneId")}
    written = document.get("cronSchedules") or [single]
    if len(written) > MAX_ENTRIES:
        raise Invalid(f"A schedule must have at most {MAX_ENTRIES} cron expressions.")
    window = document.get("catchupWindowSeconds")
    return Timetable(
        tuple(_parse_entry(each) for each in written),
        document.get("scheduleStartTime") or None,
        document.get("scheduleEndTime") or None,
        bool(document.get("runCatchupScheduleInstances")),
        None if window is None else window * 1000,
        min(document.get("jitterSeconds") or 0, MAX_JITTER_SECONDS) * 1000,
    )


def _parse_entry(written: Mapping[str, Any]) -> TimetableEntry:
    expression, zone_id = str(written.get("cronExpression") or ""), str(written.get("zoneId") or "UTC")
    return TimetableEntry(parse_cron(expression), parse_zone(zone_id), expression, zone_id)
