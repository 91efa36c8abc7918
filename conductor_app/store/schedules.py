"""Queries for the runs and slots of schedules."""

from .statements import fetch


def open_runs_of(schedule: str) -> list[str]:
    """Return the open runs of a schedule, earliest first."""
    rows = fetch(
        "SELECT id FROM conductor_run WHERE schedule = %s AND NOT (schedule = '') AND status IN ('PAUSED', 'RUNNING') "
        "ORDER BY created_at, id",
        [schedule],
    )
    return [id for (id,) in rows]


def count_waiting_slots(schedule: str) -> int:
    """Return the number of waiting slots of a schedule."""
    sql = "SELECT COUNT(*) FROM conductor_scheduleexecution WHERE state = 'POLLED' AND schedule_name = %s"
    return fetch(sql, [schedule])[0][0]
