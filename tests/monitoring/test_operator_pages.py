"""Queues, sweeps, audit, access keys and the front page."""

import re
from unittest.mock import ANY

from django.contrib.auth.models import Permission

from conductor_app.access.models import AccessKey
from conductor_app.taskcluster.models import TaskGroup
from conductor_app.tasks.models import SweepPass
from conductor_app.utils import process_state
from tests.page_text import html, page_text
from tests.stored_scenarios import claim_and_report, define_task, start_run_of, step


def test_the_queues_page_lists_pending_tasks_without_pollers(operator, clock):
    start_run_of(step("ship"))
    clock.advance(seconds=90)

    page = page_text(operator.get("/admin/queues/"))

    assert "ship" in page and "1 min 30 s" in page and "No workers" in page


def test_the_empty_queues_page_explains_how_to_poll(operator):
    assert "/api/tasks/poll/" in page_text(operator.get("/admin/queues/"))


def test_the_system_page_displays_the_last_pass_and_late_sweeps(operator, clock):
    SweepPass.objects.create(
        name="wake_runs", began_at=clock.now(), ended_at=clock.now() + 4, handled=3, handled_in_all=70
    )
    SweepPass.objects.create(name="expire_leases", began_at=clock.now() - 120_000, ended_at=clock.now() - 119_000)

    page = page_text(operator.get("/admin/system/"))

    assert "wake_runs" in page and "on time" in page and "70" in page
    assert "not triggered" in page and "2 min ago" in page


def test_a_failed_sweep_displays_its_error(operator, clock):
    now = clock.now()
    SweepPass.objects.create(
        name="wake_runs", began_at=now, ended_at=now, error="OperationalError: gone", failed_at=now
    )

    page = page_text(operator.get("/admin/system/"))

    assert "failing" in page and "OperationalError: gone" in page


def test_the_overview_lists_problems(operator, clock):
    define_task("charge", retryCount=0)
    start_run_of(step("charge"))
    claim_and_report("charge", "FAILED", reason="no funds")
    start_run_of(step("ship"), name="shipping")
    clock.advance(seconds=120)
    SweepPass.objects.create(name="wake_runs", began_at=clock.now() - 600_000)

    page = page_text(operator.get("/admin/"))

    assert "at charge – no funds" in page
    assert "No worker polls ship: 1 pending" in page
    assert "timers are not processed" in page


def test_the_overview_of_a_new_server_displays_three_steps(operator):
    page = page_text(operator.get("/admin/"))

    assert "Get started" in page and "No problems" in page


def test_the_sidebar_is_in_the_order_of_the_work(operator):
    assert sections_of(operator) == {
        "Operate": ["Overview", "Runs", "Failures", "Human tasks"],
        "Design": ["Workflows", "Task definitions", "Schedules", "Events"],
        "AI": ["Integrations", "Prompts", "Usage", "Budgets", "Vector indexes"],
        "Capacity": ["Queues", "Workers"],
        "Admin": ANY,
    }


def sections_of(client):
    process_state.reset()
    sections = client.get("/admin/").context["available_apps"]
    return {str(section["name"]): [str(entry["name"]) for entry in section["models"]] for section in sections}


def test_taskcluster_has_a_section_only_if_there_are_task_groups(operator, clock):
    assert "Taskcluster clients" in sections_of(operator)["Admin"]

    TaskGroup.objects.create(pk="V0iCFQAySoGmPw8vtSHQ4g", expires_at=clock.now())
    sections = sections_of(operator)
    assert sections["Taskcluster"][0] == "Task groups"
    assert "Taskcluster clients" in sections["Taskcluster"] and "Taskcluster clients" not in sections["Admin"]


def test_related_lists_are_tabs_of_one_entry(operator, db):
    page = operator.get("/admin/bulk/")
    operate, *_ = page.context["available_apps"]

    assert [entry["is_current"] for entry in operate["models"]] == [False, True, False, False]
    assert [str(tab["name"]) for tab in page.context["page_tabs"]] == ["Runs", "Bulk operations"]
    assert re.search(r'href="/admin/bulk/" aria-current="page">Bulk operations', html(page))
    assert operator.get("/admin/queues/").context["page_tabs"] == []


def test_an_entry_links_to_the_first_of_its_pages_that_the_user_may_open(client, django_user_model):
    user = django_user_model.objects.create_user("vera", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_bulkoperation"))
    client.force_login(user)

    assert "Bulk operations" in sections_of(client)["Operate"] and "Runs" not in sections_of(client)["Operate"]


def test_the_audit_log_displays_actor_action_and_object(operator, clock):
    start_run_of(step("ship"))

    assert "workflow definition order:1" in page_text(operator.get("/admin/conductor/auditentry/"))


def test_a_key_is_created_and_its_secret_displayed_once(operator, clock):
    page = operator.post("/admin/conductor/accesskey/add/", {"application": "warehouse"})

    key = AccessKey.objects.get(application__name="warehouse")
    secret = page.context["secret"]
    assert key.pk in page_text(page) and secret in page_text(page)
    assert "no-store" in page["Cache-Control"]
    assert secret not in html(operator.get(f"/admin/conductor/accesskey/{key.pk}/change/"))


def test_a_viewer_makes_no_keys(viewer, clock):
    assert viewer.post("/admin/conductor/accesskey/add/", {"application": "x"}).status_code == 403
    assert not AccessKey.objects.exists()
