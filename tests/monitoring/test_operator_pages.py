"""Queues, sweeps, audit, access keys and the front page."""

import re

import pytest

from conductor_app.access.models import AccessKey
from conductor_app.ai.commands.integrations import save_integration
from conductor_app.core.snapshot import NEVER
from conductor_app.runs.models import Message
from conductor_app.taskcluster.models import TaskGroup
from conductor_app.tasks.models import SweepPass
from conductor_app.utils import process_state
from tests.access.users import client_with
from tests.builders import simple
from tests.page_text import html, page_text
from tests.scenario import claim_and_report, define_task, start_run_of


def test_the_queues_page_lists_pending_tasks_without_pollers(operator, clock):
    start_run_of(simple("ship"))
    clock.advance(seconds=90)

    page = page_text(operator.get("/admin/queues/"))

    assert "ship" in page and "1 min 30 s" in page and "No workers" in page


def test_the_empty_queues_page_explains_how_to_poll(operator):
    assert "/api/tasks/poll/" in page_text(operator.get("/admin/queues/"))


def test_the_system_page_displays_the_last_pass_and_late_sweeps(operator, clock):
    SweepPass.objects.create(
        name="wake_runs", began_at=clock.now(), ended_at=clock.now() + 4, handled=3, handled_in_all=70
    )
    SweepPass.objects.create(name="handle_due_timers", began_at=clock.now() - 120_000, ended_at=clock.now() - 119_000)

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
    start_run_of(simple("charge"))
    claim_and_report("charge", "FAILED", reason="no funds")
    start_run_of(simple("ship"), name="shipping")
    clock.advance(seconds=120)
    SweepPass.objects.create(name="wake_runs", began_at=clock.now() - 600_000)

    page = page_text(operator.get("/admin/"))

    assert "at charge – no funds" in page
    assert "No worker has ever polled ship: 1 pending" in page
    assert "timers are not processed" in page


def test_the_overview_of_a_new_server_displays_three_steps(operator):
    page = page_text(operator.get("/admin/"))

    assert "Get started" in page and "No problems" in page


def test_the_sidebar_is_in_the_order_of_the_work(operator):
    assert sections_of(operator) == {
        "Operate": ["Overview", "Runs", "Failures", "Human tasks", "Queues", "Workers", "Alerts"],
        "Design": ["Workflows", "Task definitions", "Schedules", "Events"],
        "More": ["Admin"],
    }


def test_the_menu_has_at_most_14_entries_when_everything_is_used(operator, clock):
    use_taskcluster(clock)
    save_integration("main", {"type": "openai", "configuration": {"api_key": "sk-none"}}, "olga")

    assert sections_of(operator)["More"] == ["AI", "Taskcluster", "Admin"]
    assert sum(len(entries) for entries in sections_of(operator).values()) <= 14


def sections_of(client):
    process_state.reset()
    sections = client.get("/admin/").context["available_apps"]
    return {str(section["name"]): [str(entry["name"]) for entry in section["models"]] for section in sections}


def use_taskcluster(clock):
    TaskGroup.objects.create(pk="V0iCFQAySoGmPw8vtSHQ4g", expires_at=clock.now())


def cards_of(client):
    process_state.reset()
    cards = client.get("/admin/administration/").context["cards"]
    return {
        str(card["title"]): [str(page["name"]) for entry in card["entries"] for page in entry["pages"]]
        for card in cards
    }


def test_the_page_admin_has_cards_and_those_of_features_that_are_not_used_yet(operator, clock):
    cards = ["Access", "Values of definitions", "Server", "Advanced access", "AI", "Taskcluster"]
    assert list(cards_of(operator)) == cards
    assert cards_of(operator)["Taskcluster"] == ["Task groups", "Taskcluster clients", "Taskcluster roles"]

    use_taskcluster(clock)
    assert "Taskcluster" not in cards_of(operator)
    page = operator.get("/admin/conductor/client/")
    tabs = [str(tab["name"]) for tab in page.context["page_tabs"]]
    assert tabs == ["Task groups", "Taskcluster clients", "Taskcluster roles"]


def test_the_page_admin_has_only_what_the_user_may_open(db):
    client = client_with()
    assert sections_of(client) == {} and cards_of(client) == {}
    one, two = client_with("view_secret", name="vera"), client_with("view_secret", "view_variable", name="vito")
    assert cards_of(two) == {"Values of definitions": ["Secrets", "Variables"]}
    assert sections_of(two) == {"Operate": ["Overview"], "More": ["Admin"]}
    assert sections_of(one) == {"Operate": ["Overview", "Secrets"]}, "a single page is an entry of the menu"


@pytest.mark.parametrize("role", ["USER_READ_ONLY", "WORKFLOW_MANAGER", "METADATA_MANAGER"])
def test_the_page_admin_of_a_role_has_only_what_is_used(role, db):
    client = client_with(role=role)
    assert cards_of(client) == {"Access": ["Audit log"], "Server": ["System", "Retention"]}

    save_integration("main", {"type": "openai", "configuration": {"api_key": "sk-none"}}, "olga")
    assert sections_of(client)["More"] == ["AI", "Admin"]


def test_undelivered_messages_are_an_entry_while_there_are_some(operator, clock):
    SweepPass.objects.create(name="timers", began_at=clock.now())
    assert "Undelivered messages" not in cards_of(operator)["Server"]
    Message.objects.create(to="r", subject="signal", facts={}, sent_at=0, due_at=NEVER, tries=500, error="no")
    assert "Undelivered messages" in cards_of(operator)["Server"]


def test_a_page_has_the_same_name_in_the_menu_in_its_title_and_as_its_heading(operator):
    sections = operator.get("/admin/").context["available_apps"]
    pages = [page for section in sections for entry in section["models"] for page in entry["pages"]]

    assert len(pages) > 30
    for page in pages:
        text = html(operator.get(page["admin_url"]))
        assert re.findall(r"<title> ?(.*?) ·", text) == [str(page["name"])], page["admin_url"]
        headings = [re.sub(r" ?<.*", "", each) for each in re.findall(r"<h1>(.*?)</h1>", text)]
        assert set(headings) <= {str(page["name"])}, page["admin_url"]


def test_related_lists_are_tabs_of_one_entry(operator, db):
    page = operator.get("/admin/bulk/")
    operate, *_ = page.context["available_apps"]

    assert [entry["is_current"] for entry in operate["models"]] == [False, True, False, False, False, False, False]
    assert [str(tab["name"]) for tab in page.context["page_tabs"]] == ["Runs", "Bulk operations"]
    assert re.search(r'href="/admin/bulk/" aria-current="page">Bulk operations', html(page))
    assert operator.get("/admin/queues/").context["page_tabs"] == []


def test_an_entry_links_to_the_first_of_its_pages_that_the_user_may_open(db):
    client = client_with("view_bulkoperation")

    assert "Bulk operations" in sections_of(client)["Operate"] and "Runs" not in sections_of(client)["Operate"]


def test_the_audit_log_displays_actor_action_and_object(operator, clock):
    start_run_of(simple("ship"))

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
