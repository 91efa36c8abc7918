"""What an operator looks for is found: by the plain search, in short lists, and as actions where they are needed."""

import pytest

from conductor_app.access import audit
from conductor_app.bulk.selections import selected_runs
from conductor_app.definitions.models import WorkflowDefinition
from conductor_app.failures.commands import group_failures
from conductor_app.failures.models import FailureGroup
from conductor_app.runs.models import Attempt
from conductor_app.tasks.models import Poller
from conductor_app.tasks.queries.queues import format_rate
from tests.builders import simple
from tests.page_text import html, page_text, run_url
from tests.scenario import claim_and_report, define_task, start_run_of

RUNS, FOUND = "/admin/conductor/run/", "/admin/search/hits/"
AUDIT = "/admin/conductor/auditentry/"


@pytest.fixture
def keyed(operator, clock):
    """Return a run with a correlation id, one with a text in its input, and one with a number there."""
    return (
        start_run_of(simple("ship"), correlation_id="order-4711"),
        start_run_of(simple("ship"), input={"order": "A-4711"}),
        start_run_of(simple("ship"), input={"orderId": 4711}),
        start_run_of(simple("ship"), input={"orderId": 12}),
    )


def test_the_plain_search_finds_a_part_of_the_key_that_a_list_shows(operator, keyed):
    for term, places in [("4711", (0, 1, 2)), ("order-47", (0,)), ("A-47", (1,)), ("orderId 4711", (2,)), ("none", ())]:
        page = html(operator.get(RUNS, {"q": term}))

        assert [place for place, run in enumerate(keyed) if run.pk in page] == list(places), term


def test_a_search_for_several_words_finds_the_runs_that_show_all_of_them(operator, keyed):
    for term, places in [
        ("order 4711", (0, 1, 2)),
        ("4711 ORDER", (0, 1, 2)),
        ("ORDER A-47", (1,)),
        ("order 13", ()),
        ("a b c d e f", ()),
    ]:
        for address in (RUNS, FOUND):
            page = html(operator.get(address, {"q": term}))
            assert [place for place, run in enumerate(keyed) if run.pk in page] == list(places), (address, term)


def test_the_palette_finds_runs_by_a_part_of_their_keys(operator, keyed):
    page = html(operator.get(FOUND, {"q": "4711"}))

    assert [place for place, run in enumerate(keyed) if run.pk in page] == [0, 1, 2]


def test_a_failed_task_offers_a_rerun_with_changed_input_and_the_plan_opens_its_editor(operator, clock):
    define_task("charge", retryCount=0)
    run = start_run_of(simple("charge"))
    claim_and_report("charge", "FAILED", reason="no funds")
    page = html(operator.get(run_url(run, task="charge")))

    address = f"/admin/runs/{run.pk}/plan/?do=rerun&amp;attempt={Attempt.objects.get().pk}&amp;edit=task_input"
    assert address in page and "Rerun with changed input" in page
    plan = html(operator.get(address.replace("&amp;", "&")))
    assert '<details class="edit" open>' in plan and plan.count('<details class="edit" open>') == 1


def test_a_failure_group_without_builds_says_how_to_make_them_known(operator, clock):
    define_task("charge", retryCount=0)
    for worker in ("w7", "w7@42"):
        start_run_of(simple("charge"))
        claim_and_report("charge", "FAILED", reason="no funds", worker=worker)
    group_failures(100)
    page = page_text(operator.get(f"/admin/failures/{FailureGroup.objects.get().pk}/"))

    assert "Make the build known" in page and "worker_id=" in page and "workerID" in page
    assert "Workerid: optional.NewString" in page


def test_the_runs_of_several_failure_groups_are_retried_as_one_operation(operator, clock):
    define_task("charge", retryCount=0)
    failed = []
    for reason in ("no funds", "no card", "no address"):
        failed.append(start_run_of(simple("charge")))
        claim_and_report("charge", "FAILED", reason=reason)
    group_failures(100)
    groups = [FailureGroup.objects.get(message=reason).pk for reason in ("no funds", "no card")]
    plan = operator.post("/admin/failures/", {"do": "retry", "group": groups}, follow=True)

    assert plan.context["selected"].total == 2
    assert plan.context["words"] == f"runs with failures in the groups {','.join(map(str, sorted(groups)))}"
    selected = selected_runs({"failure_groups": plan.context["given"]["failure_groups"]})
    assert set(selected.values_list("pk", flat=True)) == {run.pk for run in failed[:2]}
    assert "Not numbers of failure groups" in page_text(operator.get("/admin/bulk/plan/?failure_groups=1,x"))


def test_rates_of_a_list_of_queues_have_one_unit():
    assert [format_rate(rate, 2.5 / 60) for rate in (2.5 / 60, 0.2 / 60, 0.01 / 60)] == [
        "2.5/min",
        "0.2/min",
        "< 0.1/min",
    ]


def test_queues_of_built_in_steps_are_shown_on_demand(operator, clock):
    for name in ("HTTP", "ship"):
        Poller.objects.create(task_type=name, worker="w", polled_at=clock.now())

    page = page_text(operator.get("/admin/queues/"))
    assert "ship" in page and "HTTP" not in page and "Show 1 queue of built-in steps" in page
    assert "HTTP" in page_text(operator.get("/admin/queues/", {"built_in": "yes"}))


def test_the_newest_version_offers_to_roll_back_to_each_earlier_one(operator, clock):
    for version in (1, 2, 3):
        document = {"name": "order", "version": version, "tasks": []}
        WorkflowDefinition.objects.create(name="order", version=version, document=document, created_at=version)
    first, second, newest = WorkflowDefinition.objects.order_by("version")
    page = html(operator.get(f"/admin/conductor/workflowdefinition/{newest.pk}/change/"))

    assert "Save v1 as version 4" in page and "Save v2 as version 4" in page and "Save v3" not in page
    for row in (first, second):
        assert f'formaction="/admin/conductor/workflowdefinition/{row.pk}/restore/"' in page
    old = page_text(operator.get(f"/admin/conductor/workflowdefinition/{first.pk}/change/"))
    assert "Roll back to v1" in old and "Save as version 4" in old


def test_the_audit_log_names_objects_and_is_filtered_by_person_and_action(operator, keyed):
    run = keyed[0]
    audit.record("run", run.pk, "pause", "ann")
    audit.record("alert target", "1", "create", "bob", facts={"name": "On call"})
    define_task("charge", retryCount=0)
    start_run_of(simple("charge"))
    claim_and_report("charge", "FAILED", reason="no funds")
    group_failures(100)
    audit.record("failure group", str(FailureGroup.objects.get().pk), "resolve", "cleo")

    page = page_text(operator.get(AUDIT))
    assert "run order-4711" in page and "alert target On call" in page and "failure group no funds" in page
    assert run.pk not in page
    assert "On call" not in page_text(operator.get(AUDIT, {"actor": "ann"}))
    assert "order-4711" not in page_text(operator.get(AUDIT, {"action": "create"}))
