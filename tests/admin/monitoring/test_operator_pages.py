"""Queues, sweeps, audit, access keys and the front page."""

from conductor_app.models import AccessKey, SweepPass
from tests.admin.page_text import html, page_text
from tests.insight.scenarios import claim_and_report, claim_next, define_task, newest_attempt_of, start_run_of, step


def test_the_queues_page_lists_pending_tasks_without_pollers(operator, clock):
    start_run_of(step("ship"))
    clock.advance(seconds=90)

    page = page_text(operator.get("/admin/queues/"))

    assert "ship" in page and "1 min 30 s" in page and "No workers" in page


def test_the_empty_queues_page_explains_how_to_poll(operator):
    assert "/api/tasks/poll/" in page_text(operator.get("/admin/queues/"))


def test_the_sweeps_page_displays_the_last_pass_and_late_sweeps(operator, clock):
    SweepPass.objects.create(
        name="wake_runs", began_at=clock.now(), ended_at=clock.now() + 4, handled=3, handled_in_all=70
    )
    SweepPass.objects.create(name="expire_leases", began_at=clock.now() - 120_000, ended_at=clock.now() - 119_000)

    page = page_text(operator.get("/admin/sweeps/"))

    assert "wake_runs" in page and "on time" in page and "70" in page
    assert "late" in page and "2 min ago" in page


def test_a_failed_sweep_displays_its_error(operator, clock):
    now = clock.now()
    SweepPass.objects.create(
        name="wake_runs", began_at=now, ended_at=now, error="OperationalError: gone", failed_at=now
    )

    page = page_text(operator.get("/admin/sweeps/"))

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
    sections = [section["name"] for section in operator.get("/admin/").context["available_apps"]]

    assert sections == ["Operate", "Design", "History", "System"]


def test_the_audit_log_displays_actor_action_and_object(operator, clock):
    start_run_of(step("ship"))

    assert "workflow definition order:1" in page_text(operator.get("/admin/conductor/auditentry/"))


def test_an_attempt_is_found_by_its_id_and_shows_its_documents(operator, clock):
    run = start_run_of(step("ship", inputParameters={"order": "${workflow.input.order}"}), input={"order": 4711})
    attempt = newest_attempt_of(run, "ship")

    assert attempt.pk in html(operator.get("/admin/conductor/attempt/", {"q": attempt.pk}))
    page = page_text(operator.get(f"/admin/conductor/attempt/{attempt.pk}/change/"))
    assert "order 4711" in page and "Why it is waiting" in page


def test_claimed_attempts_are_a_filter_of_the_list(operator, clock):
    run = start_run_of(step("ship"))
    claim_next("ship", worker="w9")

    page = html(operator.get("/admin/conductor/attempt/", {"state": "leased"}))

    assert newest_attempt_of(run, "ship").pk in page and "w9" in page


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
