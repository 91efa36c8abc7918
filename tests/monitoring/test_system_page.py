"""The system page: background jobs, database, configuration, and recommended actions."""

import os
import sys
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conductor_app.apps import check_script_isolation
from conductor_app.monitoring.commands import _probe, isolation_warnings, script_isolation
from conductor_app.monitoring.models import ServerClock
from conductor_app.processes.sweeps import run_and_record_sweep
from conductor_app.tasks.models import SweepPass
from conductor_app.utils import process_state
from conductor_app.utils.background import registered_work
from tests.page_text import html, page_text

pytestmark = pytest.mark.django_db
SYSTEM = "/admin/system/"


def record_pass(name: str, clock, ago: int = 0, **more) -> None:
    began = clock.now() - ago
    SweepPass.objects.create(name=name, began_at=began, ended_at=began + 2, **more)


def test_a_new_server_explains_how_to_start_its_sweeps(operator):
    assert "No background job has run yet" in page_text(operator.get(SYSTEM))


def test_a_healthy_server_reports_no_problems(operator, clock):
    record_pass("wake_runs", clock)
    record_pass("prune_finished", clock, ago=1_800_000)

    answer = operator.get(SYSTEM)
    page, advice = page_text(answer), [sentence for _, sentence in answer.context["advice"]]

    assert advice == []
    assert (
        "Every background job runs on time" in page
        and "None" not in page.partition("Recommendations")[2].partition("Last pass")[0]
    )
    assert "all applied" in page


def test_no_sweep_of_the_hourly_job_is_late_between_two_passes(operator, clock):
    names = {name for work in registered_work() for name in work.prune_sweeps}
    for name in names:
        record_pass(name, clock, ago=1_800_000)

    assert "expire_tasks" in names and operator.get(SYSTEM).context["advice"] == []


def test_a_late_or_failing_sweep_has_advice(operator, clock):
    record_pass("wake_runs", clock, ago=120_000)
    record_pass("handle_due_timers", clock, lag_ms=9_000)
    record_pass("deliver_messages", clock, error="OperationalError: gone", failed_at=clock.now())

    page = page_text(operator.get(SYSTEM))

    assert "wake_runs last ran 2 min ago. Check that Celery beat and a worker are running." in page
    assert "handle_due_timers is 9.0 s behind" in page
    assert "deliver_messages is failing: OperationalError: gone" in page


def test_a_job_that_has_not_run_since_a_restart_is_late_after_its_interval_only(operator, clock, monkeypatch):
    record_pass("measure_usual", clock, ago=86_400_000)
    record_pass("wake_runs", clock)
    monkeypatch.setattr(process_state.server_started, "value", clock.now() - 30_000)
    assert operator.get(SYSTEM).context["advice"] == [] and "on time" in page_text(operator.get("/admin/status-bar/"))

    clock.advance(seconds=200)
    SweepPass.objects.filter(name="wake_runs").update(began_at=clock.now())

    assert "measure_usual last ran 1 d ago" in page_text(operator.get(SYSTEM))
    overview = page_text(operator.get("/admin/"))
    assert "measure_usual has not run since" in overview and "Timers are not handled" not in overview


def test_a_job_that_runs_for_the_first_time_has_begun(operator, clock):
    def measure(_limit: int) -> int:
        assert SweepPass.objects.filter(name="measure_usual").count() == 0
        return 0

    with CaptureQueriesContext(connection) as statements:
        run_and_record_sweep("measure_usual", measure)

    [inserted] = [each["sql"] for each in statements if each["sql"].startswith("INSERT")]
    assert str(clock.now()) in inserted


def test_the_system_page_lists_the_hosts_and_advises_about_wrong_clocks(operator):
    ServerClock.objects.create(host="web-1", ahead_ms=12, measured_at=1)
    ServerClock.objects.create(host="beat-1", ahead_ms=-4_000, measured_at=1)

    text = page_text(operator.get(SYSTEM))

    assert "The clock of beat-1 is 4.0 s behind the database's." in text
    assert "web-1 12 ms" in text and "beat-1 -4,000 ms" in text and "The clock of web-1" not in text


def test_secrets_of_the_configuration_are_hidden(operator, settings):
    settings.CONDUCTOR_SECRETS_KEYS = ("very-secret-key-of-the-server-0001",)
    settings.CONDUCTOR_REDIS_URL = "redis://:hunter2@cache/0"

    page = page_text(operator.get(SYSTEM))

    assert "very-secret" not in page and "hunter2" not in page
    assert "SECRETS_KEYS set" in page


def test_a_risky_value_is_marked(operator, settings):
    settings.CONDUCTOR_API_ACCESS = "open"

    answer = operator.get(SYSTEM)

    assert "API is open: no authentication." in page_text(answer)
    count = sum(bool(setting.risk) for setting in answer.context["settings"])
    assert f"{count} setting" in page_text(answer) and 'href="#configuration"' in html(answer)


def test_the_page_requires_permission_and_takes_few_queries(operator, client, django_assert_max_num_queries):
    operator.get(SYSTEM)
    with django_assert_max_num_queries(15):
        operator.get(SYSTEM)
    assert client.get(SYSTEM).status_code == 302


@pytest.mark.parametrize("name", ["JavaScript and jq", "Python"])
def test_the_page_shows_how_scripts_are_isolated(operator, name):
    isolation = script_isolation()[name]
    user = f"Same user as the server: {isolation.user}." if isolation.user else "Own user."
    filter = f"System calls are not filtered: {isolation.filter}." if isolation.filter else "System calls are filtered."

    assert f"Scripts in {name} {user} {filter}" in unescape(page_text(operator.get(SYSTEM)))


def test_a_host_that_does_not_isolate_scripts_is_reported(operator, settings, monkeypatch):
    settings.CONDUCTOR_REDIS_URL = "redis://cache/0"
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    _probe.cache_clear()

    page = unescape(page_text(operator.get(SYSTEM)))

    reason = "A helper process could not be started: No such file or directory"
    assert f"Same user as the server: {reason}. System calls are not filtered: {reason}." in page
    assert f"Scripts in Python run without a filter of system calls: {reason}." in page


def test_the_check_expects_another_user_only_of_a_server_that_runs_as_root(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    _probe.cache_clear()

    assert [each for each in isolation_warnings(is_root=True) if "run as root" in each] != []
    assert [each for each in isolation_warnings(is_root=False) if "run as root" in each] == []


def test_an_isolating_host_has_no_warning(settings):
    settings.CONDUCTOR_REDIS_URL = "redis://cache/0"
    is_isolating = not any(each.filter or each.user for each in script_isolation().values())

    assert check_script_isolation() == [] or not is_isolating


def test_only_the_cluster_profile_checks_the_isolation(settings, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    _probe.cache_clear()

    assert check_script_isolation() == []
    settings.CONDUCTOR_REDIS_URL = "redis://cache/0"
    assert [each.id for each in check_script_isolation()] == ["conductor.W001"] * (4 if os.geteuid() == 0 else 2)


def test_the_color_of_the_environment_is_shown_by_its_name(operator, settings):
    assert "ENVIRONMENT_COLOR gray default" in page_text(operator.get(SYSTEM))

    settings.CONDUCTOR_ENVIRONMENT_NAME, settings.CONDUCTOR_ENVIRONMENT_COLOR = "Production", "red"
    page = operator.get(SYSTEM)

    assert "ENVIRONMENT_COLOR red settings" in page_text(page)
    assert '<p class="environment failed">Production</p>' in html(page)
