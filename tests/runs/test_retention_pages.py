"""The page on which administrators set the retention of runs."""

import pytest

from conductor_app.db.size import GIB
from conductor_app.processes import sweeps
from conductor_app.runs.models import DailyStorage
from conductor_app.runs.queries.retention import retention_policies
from conductor_app.utils.formatting import DAY
from tests.builders import step
from tests.page_text import page_text
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db


def test_the_page_displays_the_preview_and_changes_policies(operator, viewer, clock):
    page = "/admin/retention/"
    scenario = Scenario(clock, step("pay"))
    scenario.starts("order")
    for _ in range(2):
        scenario.worker("pay").completes()
    clock.advance(seconds=31 * 86_400)

    answer = operator.post(page, {"do": "save", "definition": "order", "days": "30", "failed_days": "90"}, follow=True)
    assert "2 runs, the first ended" in answer.content.decode().replace("</b>", "").replace("<b>", "")
    assert operator.post(page, {"do": "save", "days": "many"}, follow=True).status_code == 200
    operator.post(page, {"do": "remove", "definition": "order"})
    assert [policy.definition for policy in retention_policies()] == [""]

    assert "you need the permission to change" in viewer.get(page).content.decode()
    assert viewer.post(page, {"do": "save", "days": "1"}).status_code == 403


def test_the_page_displays_growth_and_the_time_until_full(operator, clock, settings):
    settings.CONDUCTOR_DATABASE_LIMIT_GB = 3
    day = clock.now() - clock.now() % DAY
    for age, bytes, removed in ((10, GIB, 7), (5, 1.5 * GIB, 0), (0, 2 * GIB, 3)):
        DailyStorage.objects.create(day_at=day - age * DAY, bytes=int(bytes), removed=removed)

    page = page_text(operator.get("/admin/retention/"))

    assert "Full in 10 days" in page and "Growth per day 107" in page
    assert "Runs removed" in page


def test_each_sweep_of_retention_notes_the_day(clock):
    sweeps.prune_finished(10)
    sweeps.prune_finished(10)
    clock.advance(seconds=86_400)
    sweeps.prune_finished(10)

    assert [each.removed for each in DailyStorage.objects.all()] == [0, 0]
    assert all(each.bytes > 0 for each in DailyStorage.objects.all())


def test_a_database_without_growth_has_no_time_until_full(operator, clock):
    day = clock.now() - clock.now() % DAY
    DailyStorage.objects.create(day_at=day - DAY, bytes=2 * GIB)
    DailyStorage.objects.create(day_at=day, bytes=GIB)

    page = page_text(operator.get("/admin/retention/"))

    assert "no growth" in page and "Full in" not in page
