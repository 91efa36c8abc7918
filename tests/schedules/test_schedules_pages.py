"""Schedule pages and the outcomes of schedules."""

import pytest

from conductor_app.processes import sweeps
from conductor_app.schedules import firing as schedules
from conductor_app.schedules.models import Schedule
from tests.page_text import html, page_text
from tests.schedule_helpers import create_schedule, register_order_workflow


@pytest.fixture
def fired(db, clock):
    """Return a paused schedule with two entries that has started one run."""
    register_order_workflow()
    entry = {"cronExpression": "0 0 15 * * *", "zoneId": "Europe/Berlin"}
    create_schedule(cronSchedules=[{"cronExpression": "0 0 * * * *"}, entry], start={"input": {"<script>": 1}})
    clock.advance(seconds=3600)
    sweeps.fire_schedules(10)


def test_schedules_are_listed_with_their_clocks(operator, fired):
    page = page_text(operator.get("/admin/conductor/schedule/"))

    assert "hourly" in page and "order" in page
    assert "Every hour UTC At 15:00 Europe/Berlin" in page
    assert "in 1 h" in page


def test_a_schedule_displays_its_workflow_and_the_reason_of_a_pause(operator, fired):
    schedules.pause_schedule("hourly", "olga", "inventory")

    page = operator.get(f"/admin/conductor/schedule/{Schedule.objects.get().pk}/change/")

    assert "Paused" in page_text(operator.get("/admin/conductor/schedule/"))
    assert "inventory" in page_text(page)
    assert "&lt;script&gt;" in html(page) and "<script>" not in html(page)


def test_executions_of_schedules_link_to_their_runs(operator, fired):
    page = html(operator.get("/admin/conductor/scheduleexecution/"))

    assert "/admin/conductor/run/" in page
    assert "Completed" in page


def test_the_audit_log_displays_who_changed_a_schedule(operator, fired):
    schedules.pause_schedule("hourly", "olga", "inventory")

    page = page_text(operator.get("/admin/conductor/auditentry/?object_type=schedule"))

    assert "olga pause schedule hourly inventory" in page


def test_schedules_are_not_deleted_past_the_engine(operator, fired):
    assert operator.post("/admin/conductor/schedule/1/delete/").status_code == 403


def test_a_slot_left_out_by_its_overlap_policy_is_skipped_and_not_failed(operator, db, clock):
    register_order_workflow()
    schedule = create_schedule(overlapPolicy="SKIP")
    for _ in range(2):
        clock.advance(seconds=3600)
        sweeps.fire_schedules(10)

    page = page_text(operator.get(f"/admin/conductor/schedule/{schedule.pk}/change/"))
    listed, slots = (operator.get(f"/admin/conductor/{name}/") for name in ("schedule", "scheduleexecution"))

    assert "Skipped" in page and "Skipped: an earlier run is still open." in page
    assert "Skipped" in page_text(listed) and 'title="Skipped: an earlier run is still open."' in html(listed)
    assert "Skipped" in page_text(slots)
    assert all("Failed" not in text for text in (page, page_text(listed).partition("Last run")[2], page_text(slots)))
