"""The header of every page: the health of the server, and beside it what is wrong with the work."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from conductor_app.runs.models import Run
from conductor_app.site import sidebar
from conductor_app.site.sidebar import KEPT_SECONDS, MAX_COUNTED, OpenProblems
from conductor_app.tasks.commands.queues import pause_queue
from tests.access.two_teams import ALPHA, create_teams
from tests.access.users import logged_in_client
from tests.builders import simple, step
from tests.page_text import html, page_text
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db
STATUS_BAR, PAGE = "/admin/status-bar/", "/admin/preferences/"
FAILED_RUNS = "/admin/conductor/run/?status=FAILED&status=TIMED_OUT&failed=24h"


@pytest.fixture
def scenario_with_problems(clock) -> Scenario:
    """Return one failed run, and one whose task no worker polls."""
    scenario = Scenario(clock, simple("pay"), others=[])
    scenario.worker("pay").fail_terminally("no luck")
    Scenario(clock, step("ship"))
    return scenario


def header(client: Client, address: str = PAGE) -> str:
    return re.search(r'<div id="strip".*?</div>', html(client.get(address)), re.DOTALL)[0]


def statements(client: Client, address: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as found:
        client.get(address)
    return len(found)


def test_the_header_says_beside_the_health_of_the_server_what_is_wrong_with_the_work(operator, scenario_with_problems):
    text = page_text(operator.get(STATUS_BAR))

    assert "1 failed, 24 h · 1 queue without workers" in text
    assert '<a href="/admin/#attention"' in html(operator.get(STATUS_BAR))
    assert f'<a href="{FAILED_RUNS.replace("&", "&amp;")}"' in html(operator.get(STATUS_BAR))
    assert 'title="Background jobs: ' in html(operator.get(STATUS_BAR))


def test_a_narrow_header_counts_the_failed_runs_and_the_queues(operator, scenario_with_problems):
    [failed] = Run.objects.filter(status="FAILED").values()
    Run.objects.create(**failed | {"id": failed["id"][:-1] + "x"})

    assert "3 problems" in page_text(operator.get(STATUS_BAR))
    assert (OpenProblems(1, 0).total, OpenProblems(MAX_COUNTED + 1, 2).total) == ("1", "1,002+")


def test_a_paused_queue_does_not_count_as_one_without_workers(operator, scenario_with_problems):
    pause_queue("ship", "olga", "the van is in repair")

    assert "without workers" not in page_text(operator.get(STATUS_BAR))


def test_the_number_of_failed_runs_is_that_of_the_list_behind_it(operator, scenario_with_problems, clock):
    [failed] = Run.objects.filter(status="FAILED")
    before = Run.objects.filter(pk=failed.pk).values().get()
    for end, status, hours in (("x", "TIMED_OUT", 23), ("y", "FAILED", 25), ("z", "TERMINATED", 1)):
        ended_at = clock.now() - hours * 3_600_000
        facts = {"id": before["id"][:-1] + end, "status": status, "created_at": ended_at, "ended_at": ended_at}
        Run.objects.create(**before | facts)

    assert "2 failed" in page_text(operator.get(STATUS_BAR))
    assert operator.get(FAILED_RUNS).context["cl"].result_count == 2


def test_a_run_that_started_days_ago_and_failed_now_counts(operator, scenario_with_problems, clock):
    Run.objects.filter(status="FAILED").update(created_at=clock.now() - 3 * 86_400_000)

    assert "1 failed" in page_text(operator.get(STATUS_BAR))
    assert operator.get(FAILED_RUNS).context["cl"].result_count == 1


def test_a_header_without_problems_shows_the_server_only(operator, clock):
    assert "failed" not in page_text(operator.get(STATUS_BAR))


def test_a_page_runs_no_statement_for_the_header_and_shows_what_is_known(operator, scenario_with_problems):
    operator.get(PAGE)
    before = statements(operator, PAGE)
    assert "data-load-now" in header(operator) and "1 failed" not in header(operator)

    operator.get(STATUS_BAR)

    assert statements(operator, PAGE) == before
    assert "data-load-now" not in header(operator) and "1 failed" in header(operator)


def test_a_header_is_at_most_ten_seconds_old(operator, scenario_with_problems):
    operator.get(STATUS_BAR)
    assert "data-load-now" not in header(operator)
    [every] = re.findall(r'data-every="(\d+)"', header(operator))
    assert int(every) + KEPT_SECONDS <= 10

    problems = {user: (at - KEPT_SECONDS, found) for user, (at, found) in sidebar._counted.value.items()}
    sidebar._counted.value.update(problems)

    assert "data-load-now" in header(operator) and "1 failed" in header(operator)


def test_the_problems_are_counted_once_in_a_few_seconds(operator, scenario_with_problems):
    first, second = statements(operator, STATUS_BAR), statements(operator, STATUS_BAR)

    assert second <= first - 2


def test_the_header_counts_anew_on_the_overview_and_after_an_action(operator, scenario_with_problems):
    operator.get(STATUS_BAR)
    run = Run.objects.get(status="FAILED")
    plan = {"do": "terminate", "revision": str(run.revision), "confirm": "yes"}
    page = html(operator.post(f"/admin/runs/{Run.objects.get(status='RUNNING').pk}/plan/", plan, follow=True))
    Run.objects.filter(pk=run.pk).update(status="COMPLETED")

    for text in (page, html(operator.get("/admin/"))):
        [address] = re.findall(r'data-live="(/admin/status-bar/[^"]*)"\s+data-every="7"\s+data-load-now', text)
        assert "failed" not in page_text(operator.get(address))


def test_the_header_counts_only_what_the_user_may_see(operator, clock):
    teams = create_teams()
    Run.objects.filter(status="FAILED").exclude(name__startswith=ALPHA).update(status="COMPLETED")
    Run.objects.filter(name__startswith=ALPHA, status="FAILED").update(ended_at=clock.now())
    failed = Run.objects.filter(status="FAILED", ended_at__gte=clock.now() - 86_400_000).count()
    others = [team for name, team in teams.items() if name != ALPHA]

    assert failed and f"{failed} failed" in page_text(logged_in_client(teams[ALPHA].viewer).get(STATUS_BAR))
    for team in others:
        assert "failed" not in page_text(logged_in_client(team.viewer).get(STATUS_BAR))
