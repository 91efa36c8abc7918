"""Schedules are written, held and run by hand on their pages."""

import re
from datetime import UTC, datetime

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.processes import sweeps
from conductor_app.runs.models import Run
from conductor_app.schedules.models import Schedule, ScheduleExecution
from tests.page_text import html, page_text
from tests.schedule_helpers import create_schedule, register_order_workflow

SCHEDULES = "/admin/conductor/schedule/"
HOUR = 3600


@pytest.fixture
def hourly(db, clock):
    register_order_workflow()
    return create_schedule()


def moment(milliseconds):
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()


def form_values(**changes):
    fields = {
        "name": "nightly",
        "expression": "0 30 2 * * *",
        "zone": "Europe/Berlin",
        "workflow": "order",
        "overlap": "SKIP",
    }
    return {**fields, "input": '{"order": 1}', **changes}


def test_a_schedule_is_created_with_a_form(operator, hourly):
    answer = operator.post(f"{SCHEDULES}add/", form_values(catches_up="on", window="60", reason="nights are quiet"))

    row = Schedule.objects.get(name="nightly")
    assert answer.url == f"{SCHEDULES}{row.pk}/change/"
    assert row.document["startWorkflowRequest"] == {"name": "order", "input": {"order": 1}}
    assert (row.overlap, row.document["catchupWindowSeconds"], row.document["zoneId"]) == ("SKIP", 60, "Europe/Berlin")
    assert AuditEntry.objects.get(object_id="nightly").reason == "nights are quiet"


def test_the_next_ten_times_are_previewed_before_saving(operator, hourly):
    page = operator.post(f"{SCHEDULES}add/", form_values(step="show"))

    assert len(page.context["times"]) == 10
    assert not Schedule.objects.filter(name="nightly").exists()


def test_several_times_are_a_row_each(operator, hourly):
    operator.post(
        f"{SCHEDULES}add/", form_values(expression=["0 0 8 * * *", "", "0 0 9 * * *"], zone=["", "UTC", "Asia/Tokyo"])
    )

    assert Schedule.objects.get(name="nightly").document["cronSchedules"] == [
        {"cronExpression": "0 0 8 * * *", "zoneId": "UTC"},
        {"cronExpression": "0 0 9 * * *", "zoneId": "Asia/Tokyo"},
    ]


def test_invalid_values_are_reported_at_their_fields(operator, hourly):
    for changes, validation_error in [
        ({"expression": ["0 0 8 * * *", "never"], "zone": ["UTC", "UTC"]}, "Line 2"),
        ({"zone": "Mars/Base"}, "Line 1"),
        ({"expression": ""}, "Line 1"),
        ({"input": "{"}, "Invalid JSON"),
        ({"starts_at": "tomorrow"}, "Not a valid date"),
        ({"name": "hourly"}, "A schedule with this name already exists."),
        ({"workflow": ""}, "This field is required"),
    ]:
        assert validation_error in page_text(operator.post(f"{SCHEDULES}add/", form_values(**changes))), changes
        assert Schedule.objects.count() == 1, changes


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"workflow": "ordr"}, "workflow", "Workflow ordr does not exist. Did you mean order?"),
        ({"workflow": "zebra"}, "workflow", "Workflow zebra does not exist."),
        ({"version": "7"}, "version", "Version 7 of workflow order does not exist."),
    ],
    ids=str,
)
def test_a_workflow_that_does_not_exist_is_refused_at_its_field(operator, hourly, changes, field, message):
    page = operator.post(f"{SCHEDULES}add/", form_values(**changes))

    assert page.context["form"].errors == {field: [message]}
    assert '<option value="order">' in html(page)
    assert Schedule.objects.count() == 1


def test_the_page_says_that_the_workflow_of_a_schedule_from_the_api_does_not_exist(operator, hourly):
    row = create_schedule("early", workflow="ordr")

    text = page_text(operator.get(f"{SCHEDULES}{row.pk}/change/"))

    assert "Workflow ordr does not exist. Did you mean order? This schedule cannot start runs." in text


def test_dates_have_a_picker_with_the_time_zone_stated(operator, hourly):
    operator.post(f"{SCHEDULES}{hourly.pk}/edit/", form_values(name="hourly", starts_at="2027-01-31T08:00"))

    page = html(operator.get(f"{SCHEDULES}{hourly.pk}/edit/"))
    assert '<input type="text" name="starts_at" value="2027-01-31 08:00:00"' in page
    assert "Not before (UTC)" in page and "Not after (UTC)" in page


def test_editing_preserves_fields_that_the_form_does_not_display(operator, hourly):
    Schedule.objects.update(document={**hourly.document, "description": "of ours"})

    operator.post(f"{SCHEDULES}{hourly.pk}/edit/", form_values(name="hourly"))

    assert Schedule.objects.get().document["description"] == "of ours"


def test_the_page_displays_next_times_and_results_of_the_last_slots(operator, hourly, clock):
    clock.advance(seconds=HOUR)
    sweeps.fire_schedules(10)

    page = operator.get(f"{SCHEDULES}{hourly.pk}/change/")

    assert "Every hour" in page_text(page)
    assert len(page.context["times"]) == 10 and page.context["slots"][0].run is not None


def test_it_is_paused_with_a_reason_and_resumed(operator, hourly):
    operator.post(f"{SCHEDULES}{hourly.pk}/do/pause/", {"reason": "inventory"})
    assert "Paused: inventory" in page_text(operator.get(f"{SCHEDULES}{hourly.pk}/change/"))

    operator.post(f"{SCHEDULES}{hourly.pk}/do/resume/")
    assert not Schedule.objects.get().is_paused


def test_editing_a_paused_schedule_leaves_it_paused(operator, hourly):
    operator.post(f"{SCHEDULES}{hourly.pk}/do/pause/", {"reason": "inventory"})

    operator.post(f"{SCHEDULES}{hourly.pk}/edit/", form_values(name="hourly"))

    assert (Schedule.objects.get().is_paused, Schedule.objects.get().paused_reason) == (True, "inventory")


def test_it_is_run_manually(operator, hourly):
    answer = operator.post(f"{SCHEDULES}{hourly.pk}/do/run/", {"reason": "asked for"})

    assert Run.objects.get().pk in answer.url
    assert AuditEntry.objects.get(action="run now").reason == "asked for"


def test_missed_slots_are_previewed_and_then_run(operator, hourly):
    span = {"first": moment(hourly.updated_at - 4 * HOUR * 1000), "last": moment(hourly.updated_at - HOUR * 1000)}
    page = operator.post(f"{SCHEDULES}{hourly.pk}/backfill/", span)
    assert len(page.context["slots"]) in (3, 4) and not ScheduleExecution.objects.exists()

    answer = operator.post(f"{SCHEDULES}{hourly.pk}/backfill/", {**span, "step": "run", "reason": "outage"})

    assert answer.status_code == 302
    assert AuditEntry.objects.get(action="backfill").reason == "outage"
    assert ScheduleExecution.objects.count() == len(page.context["slots"])


def test_an_invalid_period_is_reported(operator, hourly):
    page = page_text(operator.post(f"{SCHEDULES}{hourly.pk}/backfill/", {"first": "x", "last": ""}))

    assert "Not a valid date" in page


def test_it_is_deleted(operator, hourly):
    operator.post(f"{SCHEDULES}{hourly.pk}/do/delete/", {"reason": "gone"})

    assert not Schedule.objects.exists()


def test_a_viewer_cannot_change_anything(viewer, hourly):
    page = page_text(viewer.get(f"{SCHEDULES}{hourly.pk}/change/"))
    assert "Run now" not in page and "Pause" not in page.split("Upcoming slots")[0].split("hourly")[-1]
    for path in (
        "add/",
        f"{hourly.pk}/edit/",
        f"{hourly.pk}/do/pause/",
        f"{hourly.pk}/do/run/",
        f"{hourly.pk}/backfill/",
    ):
        assert viewer.post(f"{SCHEDULES}{path}", form_values()).status_code == 403, path
    assert Schedule.objects.filter(is_paused=False).count() == 1


def test_pages_take_few_queries(operator, hourly, django_assert_max_num_queries):
    for number in range(5):
        create_schedule(f"s{number}")

    for path in ("", f"{hourly.pk}/change/", f"{hourly.pk}/edit/"):
        with django_assert_max_num_queries(15):
            operator.get(f"{SCHEDULES}{path}")


def test_the_last_runs_of_a_schedule_are_drawn_in_the_list_and_on_its_page(operator, hourly, clock):
    clock.advance(seconds=HOUR)
    sweeps.fire_schedules(10)
    run = Run.objects.get()

    for path in (SCHEDULES, f"{SCHEDULES}{Schedule.objects.get().pk}/change/"):
        page = operator.get(path).content.decode()
        assert 'aria-label="Last run, 0 failed"' in page and f'href="/admin/conductor/run/{run.pk}/change/"' in page


def test_a_preset_fills_the_last_time_and_keeps_what_was_entered(operator, hourly):
    form = form_values(name="", expression=["0 0 8 * * *", "x"], zone=["UTC", "Asia/Tokyo"], catches_up="on")

    page = operator.post(f"{SCHEDULES}add/", form | {"preset": "0 0 6 * * MON-FRI"})

    text = page_text(page)
    assert "At 06:00, Monday through Friday" in text and "At 08:00" in text
    assert "This field is required" not in text and len(page.context["times"]) == 10
    assert 'value="0 0 6 * * MON-FRI" maxlength' in html(page) and 'value="Asia/Tokyo"' in html(page)
    assert re.search(r'name="catches_up"[^>]* checked', html(page))
    assert not Schedule.objects.filter(name="nightly").exists()


def test_a_time_is_added_without_javascript(operator, hourly):
    page = operator.post(f"{SCHEDULES}{hourly.pk}/edit/", form_values(name="hourly", step="add"))

    assert html(page).count('name="expression"') == 2
    assert html(page).count('value="Europe/Berlin"') == 2


@pytest.mark.parametrize("preset", ["never", "x" * 9000])
def test_a_hostile_preset_is_a_page_without_times(operator, hourly, preset):
    page = operator.post(f"{SCHEDULES}add/", form_values(preset=preset))

    assert page.status_code == 200 and page.context["times"] is None
