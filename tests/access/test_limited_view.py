"""A person with grants on some names reads that other rows may exist, and follows no link to what it may not open."""

import json

import pytest
from django.contrib.auth.models import User

from conductor_app.access.commands.users import Subject, grant
from conductor_app.definitions.models import TaskDefinition, WorkflowDefinition
from tests.access.users import logged_in_client
from tests.builders import simple, step_of
from tests.page_text import html, page_text
from tests.scenario import Scenario, define_task, define_workflow, start_run_of

pytestmark = pytest.mark.django_db
LIMITED = "Only what your grants let you see is listed"
WORKFLOWS = "/admin/conductor/workflowdefinition/"
EMPTY = ("/admin/overview-attention/", "/admin/queues/", "/admin/workers/", "/admin/conductor/taskdefinition/")


@pytest.fixture
def run(clock):
    return start_run_of(simple("book_ledger"), name="billing_close")


@pytest.fixture
def bill(run):
    """Return the client of a person who may see workflows and tasks of one prefix only."""
    user = User.objects.create_user("bill", is_staff=True)
    for kind in ("WORKFLOW_DEF", "TASK_DEF"):
        grant(Subject(user_id=user.pk), kind, "billing_*", ["READ", "EXECUTE"], "bill", "olga")
    return logged_in_client(user)


@pytest.mark.parametrize("address", EMPTY)
def test_an_empty_list_says_that_grants_leave_out_rows(bill, operator, address):
    assert f"{LIMITED}: billing_*. Administrators give more" in page_text(bill.get(address, follow=True))
    assert LIMITED not in page_text(operator.get(address, follow=True))


def test_a_failure_group_that_a_person_may_not_open_mentions_the_grants(bill, operator):
    address = "/admin/failures/4/"
    assert "or your grants do not include its workflow" in bill.get(address).content.decode()
    assert "No such failure group: 4." in operator.get(address).content.decode()


def test_the_audit_log_names_the_grants_that_limit_it(bill):
    assert f"{LIMITED}: billing_*. Administrators give more" in page_text(bill.get("/admin/conductor/auditentry/"))


def test_a_queue_that_a_person_may_not_open_is_no_link(bill, operator, run):
    page = f"/admin/why-waiting/{run.attempts.get().pk}/"

    assert "Queue book_ledger" in page_text(bill.get(page)) and "/admin/queue/" not in html(bill.get(page))
    assert operator.get(page).status_code == 200 and "/admin/queue/?name=book_ledger" in html(operator.get(page))


def test_a_worker_that_serves_other_teams_as_well_shows_no_numbers(bill, operator, clock):
    for worker, task_type in (("own@1", "billing_send"), ("shared@1", "billing_send"), ("shared@1", "book_ledger")):
        Scenario(clock, simple(task_type)).worker(task_type, worker).completes()
        # A later poll stores the counts.
        clock.advance(seconds=6)
        Scenario(clock, simple(task_type)).worker(task_type, worker).polls()

    rows = {row["worker"].name: row for row in bill.get("/admin/workers/").context["workers"]}
    assert [rows["own@1"][key] for key in ("in_hand", "done", "failed")] == ["1", "1", "0"]
    assert [rows["shared@1"][key] for key in ("in_hand", "done", "failed")] == ["–", "–", "–"]
    page = bill.get("/admin/worker/?name=shared@1")
    assert "polls further task types, which you may not see" in page_text(page) and "chart" not in page.context
    assert "Actions" not in page_text(page)
    assert "Actions" in page_text(operator.get("/admin/worker/?name=shared@1"))
    assert operator.get("/admin/worker/?name=shared@1").context["chart"]


def test_the_overview_counts_tasks_in_queues_only_for_people_who_see_all_runs(bill, operator):
    start_run_of(simple("billing_send"), name="inventory")

    assert "in queues" not in page_text(bill.get("/admin/")) and "in progress" not in page_text(bill.get("/admin/"))
    assert "2 tasks in queues" in page_text(operator.get("/admin/"))


@pytest.fixture
def closing(run):
    """Register the definitions that the workflow of the run names, and return the newest version of the workflow."""
    define_task("book_ledger")
    define_workflow("archive", simple("store"))
    child = step_of("SUB_WORKFLOW", "archive", subWorkflowParam={"name": "archive"})
    return close_with(simple("book_ledger"), child, version=2)


def close_with(*steps, version) -> WorkflowDefinition:
    define_workflow("billing_close", *steps, version=version)
    return WorkflowDefinition.objects.get(name="billing_close", version=version)


def test_no_finding_claims_that_what_a_person_may_not_see_does_not_exist(bill, operator, closing):
    for address in ("", f"{closing.pk}/change/"):
        text = page_text(bill.get(f"{WORKFLOWS}{address}"))
        assert "There is no" not in text and "broken reference" not in text, text

    TaskDefinition.objects.all().delete()
    WorkflowDefinition.objects.filter(name="archive").delete()
    text = page_text(operator.get(f"{WORKFLOWS}{closing.pk}/change/"))
    assert "There is no task definition book_ledger." in text and "There is no workflow archive." in text


def test_a_similar_name_that_a_person_sees_is_suggested_as_a_hint(bill, closing):
    define_task("billing_ledger")
    row = close_with(simple("biling_ledger"), version=3)

    text = page_text(bill.get(f"{WORKFLOWS}{row.pk}/change/"))

    assert "No task definition biling_ledger is visible to you. Did you mean billing_ledger?" in text
    assert "1 warning" not in text


def test_an_export_names_the_tasks_whose_definitions_it_leaves_out(bill, operator, closing):
    address = f"{WORKFLOWS}export/"
    exported, everything = (json.loads(client.get(address).content) for client in (bill, operator))

    assert [each["name"] for each in exported["workflows"]] == ["billing_close"]
    assert exported["tasks"] == [] and exported["notIncluded"] == {"tasks": ["book_ledger"]}
    assert [each["name"] for each in everything["tasks"]] == ["book_ledger"] and "notIncluded" not in everything
    assert "Export what you may read" in page_text(bill.get(WORKFLOWS))
    assert "Export all" in page_text(operator.get(WORKFLOWS))
