"""The page of planned operations: it previews the effects and applies exactly those."""

import json
import re
from collections import Counter

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.runs.models import Run
from tests.builders import definition, dynamic_fork, fork, loop, policy, step, sub_workflow
from tests.page_text import html, page_text, run_url
from tests.scenario import Scenario, register_definitions

pytestmark = pytest.mark.django_db


def address(run) -> str:
    return f"/admin/runs/{run.id}/plan/"


@pytest.fixture
def failed(clock) -> Scenario:
    charge = step("charge", policy=policy() | {"sideEffects": "external"}, inputs={"n": "${workflow.input.n}"})
    scenario = Scenario(clock, charge, step("ship"), step("mail"), input={"n": 1})
    scenario.worker("charge").completes()
    scenario.worker("ship").fails("no van")
    return scenario


def test_a_failed_run_is_planned_to_be_retried(operator, failed):
    page = page_text(operator.get(address(failed)))

    assert "1 will rerun" in page and "1 result reused" in page
    assert "Apply: 1 will rerun, 1 result reused" in page
    assert "effect" not in page.split("Expected changes")[1].split("Diagram of the run")[0]


def test_effects_outside_that_would_be_repeated_are_warned_of(operator, failed):
    page = page_text(operator.get(address(failed), {"do": "restart"}))

    assert "1 external effect would be repeated." in page
    assert "charge of order" in page


def test_a_plan_is_applied_as_displayed(operator, failed):
    attempt = failed.task("charge").id
    form = {"do": "rerun", "attempt": attempt, "whole": "yes"}
    shown = operator.post(address(failed), form | {"plan": "yes"})
    assert "2 will rerun" in page_text(shown)

    sure = form | {"confirm": "yes", "reason": "the card was wrong", "revision": str(failed.row.revision)}
    answer = operator.post(address(failed), sure)

    assert answer.status_code == 302
    assert " order runs again from charge." in page_text(operator.get(answer.url))
    assert failed.is_waiting_for("charge")
    entry = AuditEntry.objects.get(action="rerun")
    assert (entry.actor, entry.reason) == ("olga", "the card was wrong")


def test_an_edited_input_is_displayed_as_a_difference_and_applied(operator, failed):
    form = {"do": "rerun", "attempt": failed.task("charge").id, "task_input": json.dumps({"n": 7})}

    page = page_text(operator.post(address(failed), form | {"plan": "yes"}))
    assert "Task input" in page and "n 1 7" in page

    assert "The audit log keeps the status and the reason" in page

    operator.post(address(failed), form | {"confirm": "yes", "revision": str(failed.row.revision)})
    assert failed.task("charge").input == {"n": 7}
    entry = AuditEntry.objects.get(action="rerun")
    shown = page_text(operator.get(f"/admin/conductor/auditentry/{entry.pk}/change/"))
    assert "task input.n 1 → 7" in shown and "charge" in shown


def test_sentences_name_a_task_of_a_loop_in_words(operator, clock):
    scenario = Scenario(clock, loop("pages", step("check__left"), times=3))
    scenario.worker("check__left").completes()
    scenario.worker("check__left").polls()
    running, history = run_url(scenario.row), run_url(scenario.row, tab="events")
    assert "Running: check__left, iteration 2 on worker" in page_text(operator.get(running))
    scenario.worker("check__left").fails("no ink")

    assert "Failed at check__left, iteration 2, attempt 1" in page_text(operator.get(running))
    assert "check__left, iteration 2 failed" in page_text(operator.get(history))
    form = {"do": "rerun", "attempt": scenario.task("check__left__2").id}
    assert "Input of check__left, iteration 2" in page_text(operator.get(address(scenario), form))
    done = operator.post(address(scenario), {**form, "confirm": "yes", "revision": scenario.row.revision}, follow=True)
    assert "order runs again from check__left, iteration 2." in page_text(done)


def test_the_run_and_the_audit_log_show_a_changed_input_alike(operator, failed):
    attempt = failed.task("charge").id
    failed.rerun_from(attempt, task_input={"n": 42})

    for address in (run_url(failed.row, tab="audit"), "/admin/conductor/auditentry/"):
        assert "task input.n 1 → 42" in page_text(operator.get(address)), address
    tab = page_text(operator.get(run_url(failed.row, tab="audit")))
    assert "status COMPLETED" in tab and "{" not in tab.partition("Why")[2]


def test_a_concurrently_changed_run_is_rejected_and_planned_again(operator, failed):
    revision = str(failed.row.revision)
    failed.retry()
    failed.worker("ship").fails("again")

    page = page_text(operator.post(address(failed), {"do": "retry", "confirm": "yes", "revision": revision}))

    assert "has changed since it was read" in page
    assert "1 will rerun" in page
    assert failed.status == "FAILED"


def test_a_restart_by_another_version_offers_the_versions(operator, failed):
    register_definitions(definition(step("other"), version=2))

    page = operator.get(address(failed), {"do": "restart", "version": "2"})

    assert "version 2" in page_text(page)
    assert "1 new" in page_text(page)


def test_an_impossible_action_names_the_rule_and_the_alternatives(operator, clock):
    scenario = Scenario(clock, step("a"))

    page = page_text(operator.get(address(scenario), {"do": "retry"}))

    assert "Only a failed, timed-out or terminated workflow can be retried" in page
    assert "Possible now:" in page
    assert "Skip a step" in page.partition("Possible now:")[2]


@pytest.mark.parametrize("do", ["skip", "jump", "upgrade"])
def test_an_impossible_action_says_why_instead_of_asking_for_its_place(operator, failed, do):
    page = operator.get(address(failed), {"do": do})

    assert "failed" in page.context["refused"].lower() and "Possible now:" in page_text(page)
    assert 'name="ref"' not in html(page) and 'name="plan"' not in html(page)


@pytest.mark.parametrize(
    "form",
    [
        {"do": "dance"},
        {"do": "rerun", "attempt": "nobody"},
        {"do": "rerun", "input": "{", "whole": "y"},
        {"do": "rerun", "input": "[1]", "whole": "y"},
        {"do": "restart", "version": "x"},
        {"do": "restart", "version": "99999999999999999"},
        {"do": "skip", "ref": "\0"},
        {"do": "retry", "confirm": "yes", "revision": ""},
        {"do": "retry", "confirm": "yes", "revision": "9" * 40},
    ],
    ids=str,
)
def test_hostile_forms_are_rejected_without_changes(operator, failed, form):
    for answer in (operator.get(address(failed), form, follow=True), operator.post(address(failed), form)):
        assert answer.status_code in (200, 404)
    assert failed.status == "FAILED"


def test_a_viewer_sees_the_plan_and_cannot_apply_it(viewer, failed):
    page = viewer.get(address(failed))
    assert "you need the permission to change runs" in page_text(page)
    assert 'name="confirm"' not in html(page)

    sure = {"do": "retry", "confirm": "yes", "revision": str(failed.row.revision)}
    assert viewer.post(address(failed), sure).status_code == 403
    assert failed.status == "FAILED"


def test_a_deleted_run_has_no_plan(operator, failed):
    Run.objects.all().delete()

    assert operator.get(address(failed)).status_code == 404


def test_a_plan_takes_few_queries(operator, failed, django_assert_max_num_queries):
    operator.get(address(failed))
    with django_assert_max_num_queries(15):
        operator.get(address(failed), {"do": "retry"})


@pytest.fixture
def running(clock) -> Scenario:
    return Scenario(clock, step("pay"), step("pack"), step("ship"))


def test_a_jump_is_planned_and_done(operator, running):
    page = page_text(operator.get(address(running), {"do": "jump", "ref": "ship"}))
    assert "1 will be canceled" in page or "pay" in page

    operator.post(
        address(running),
        {
            "do": "jump",
            "ref": "ship",
            "confirm": "yes",
            "revision": str(running.row.revision),
            "reason": "paid and packed",
        },
    )

    assert running.is_waiting_for("ship")
    assert AuditEntry.objects.get(action="jump").reason == "paid and packed"


def test_a_step_that_is_not_there_is_refused(operator, running):
    assert "is not in workflow" in page_text(operator.get(address(running), {"do": "jump", "ref": "fly"}))


def test_an_upgrade_is_planned_for_one_run(operator, running):
    register_definitions(definition(step("pay"), step("wrap"), step("ship"), version=2))
    page = page_text(operator.get(address(running), {"do": "upgrade"}))
    assert "Apply: " in page and "version 2" in page

    form = {"do": "upgrade", "version": "2", "confirm": "yes", "revision": str(running.row.revision)}
    operator.post(address(running), form)

    assert running.row.version == 2
    assert AuditEntry.objects.get(action="upgrade").actor == "olga"


def test_an_impossible_upgrade_lists_every_reason(operator, running):
    body = loop("again", step("pay"), times=2)
    register_definitions(definition(body, step("ship"), version=2))

    page = page_text(operator.get(address(running), {"do": "upgrade"}))

    assert "The run cannot be upgraded to version 2" in page and "pay is in other loops in the new version." in page
    assert "Do it" not in page


@pytest.mark.parametrize("given", ["[" * 100_000, "[1]", "{"])
def test_an_input_that_cannot_be_read_is_refused(operator, failed, given):
    form = {"do": "rerun", "attempt": failed.task("charge").id, "task_input": given, "plan": "yes"}

    answer = operator.post(address(failed), form)
    page = page_text(answer)

    assert "The task input" in page and "Possible now" not in page
    assert 'id="task_input-error"' in html(answer) and 'aria-describedby="task_input-error"' in html(answer)


def test_the_run_page_offers_jumps_to_unreached_steps(operator, running):
    page = html(operator.get(f"/admin/conductor/run/{running.id}/change/", {"tab": "diagram", "task": "ship"}))

    assert "Control has not reached this step." in page
    assert "?do=skip&amp;ref=ship" in page and "?do=jump&amp;ref=ship" in page


def test_reused_steps_are_drawn_as_executed_with_their_outgoing_path(operator, clock):
    scenario = Scenario(clock, *fork([step("stock")], [step("price")]), step("ship"))
    scenario.worker("stock").completes()
    scenario.worker("price").completes()
    scenario.worker("ship").fails("no van")

    assert "2 of 2 branches done" in page_text(operator.get(address(scenario)))


def test_branches_of_a_dynamic_fork_are_drawn_with_their_expected_results(operator, clock):
    names = ("ape", "bee", "cat")
    tasks = [{"name": name, "taskReferenceName": name, "type": "SIMPLE"} for name in names]
    scenario = Scenario(clock, *dynamic_fork(), input={"tasks": tasks, "inputs": {name: {} for name in names}})
    for name in names[:2]:
        scenario.worker(name).completes()
    scenario.worker("cat").fails("no milk")

    picture = operator.get(address(scenario)).context["picture"]

    branch_steps = next(node for node in picture.nodes if node.shape == "many")
    assert (branch_steps.title, branch_steps.subtitle, branch_steps.tone, branch_steps.is_faint) == (
        "3 branches",
        "1 rerun, 2 reused",
        "active",
        False,
    )


@pytest.fixture
def pages(clock) -> Scenario:
    """A run whose loop over two branches has completed three iterations."""
    branches = fork([step("ocr")], [step("layout")], join="both")
    scenario = Scenario(clock, loop("pages", *branches, step("check"), times=3))
    for _ in range(3):
        for name in ("ocr", "layout", "check"):
            scenario.worker(name).completes()
    return scenario


def test_steps_of_a_loop_show_in_how_many_iterations_they_are_affected(operator, pages):
    attempt = pages.task("ocr__2").id

    page = operator.get(address(pages), {"do": "rerun", "attempt": attempt})
    boxes = {node.ref: node for node in page.context["picture"].nodes}
    table = re.findall(r'id="task-(\w+)".*?</svg>([\w ]+)<', html(page))
    in_table = Counter((re.sub(r"__\d", "", key), impact) for key, impact in table)

    for ref in ("ocr", "layout", "check", "both", "fork_both"):
        again, reused = in_table[ref, "will rerun"], in_table[ref, "result reused"]
        assert again + reused == 3, ref
        expected = {0: "reused", 3: "rerun"}.get(again, f"{again} of 3 rerun")
        assert boxes[ref].status_text == expected, ref
        assert boxes[ref].subtitle.endswith(expected), ref
        assert ("partly" in boxes[ref].tone) == (0 < again < 3), ref
    assert {in_table[ref, "will rerun"] for ref in ("ocr", "layout", "check")} == {2, 1}
    assert boxes["ocr"].href == "#task-ocr__2"
    assert "done" not in {node.subtitle[-4:] for node in boxes.values()}


def test_tasks_of_a_replaced_sub_workflow_are_counted_in_the_summary_and_on_the_button(operator, clock):
    scenario = Scenario(clock, sub_workflow("pay", definition(step("charge"), step("mail"), name="payment")))
    scenario.worker("charge").completes()
    scenario.worker("mail").fails("no mail server")
    scenario.later(1)

    page = page_text(operator.get(address(scenario), {"do": "retry"}))

    assert page.count("and 2 in sub-workflow payment") == 2
    assert "Apply: 1 will rerun, 1 new, and 2 in sub-workflow payment" in page


def test_a_replaced_sub_workflow_without_begun_tasks_has_no_table(operator, clock):
    scenario = Scenario(clock, sub_workflow("pay", definition(step("charge"), name="payment")))
    scenario.terminate()
    scenario.later(1)

    page = operator.get(address(scenario), {"do": "retry"})

    assert "is replaced by a new run; none of its tasks had begun" in page_text(page)
    assert html(page).count('<table class="wide">') == 2
    assert "repeats all of this" not in page_text(page)
