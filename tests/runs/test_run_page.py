"""The run page: identity, status, history and available actions."""

import gzip
import json
import re
from html import unescape

import pytest
from django.core.files.base import ContentFile

from conductor_app.core.decide import Report
from conductor_app.core.errors import MAX_REASON_LENGTH
from conductor_app.core.primitives import derived_id
from conductor_app.payloads import files as file_contents
from conductor_app.payloads import files as file_handles
from conductor_app.processes import sweeps
from conductor_app.runs.commands import control, retention
from conductor_app.runs.commands import repair as retry_rerun_restart
from conductor_app.runs.models import Attempt, Run, Task
from conductor_app.tasks.commands import reports as task_commands
from tests.access.users import client_with
from tests.builders import fork, human, loop, simple, step_of, sub_workflow, wait
from tests.page_text import button_names, html, page_text, run_action_url, run_url
from tests.scenario import (
    claim_and_report,
    claim_next,
    define_task,
    define_workflow,
    newest_attempt_of,
    reload_run,
    start_run,
    start_run_of,
)


@pytest.fixture
def failed(clock, db):
    define_task("charge", retryCount=1, retryDelaySeconds=0)
    run = start_run_of(simple("reserve"), simple("charge"), input={"order": 4711})
    claim_and_report("reserve", output={"shelf": "B-12"})
    attempt = claim_next("charge")
    task_commands.add_log(attempt.id, "calling the gateway")
    task_commands.report_task(run.pk, attempt.id, _failure("timeout"), "w7")
    claim_and_report("charge", "FAILED", reason="502 from gateway\n  at charge.py, line 42")
    return reload_run(run)


def _failure(reason):
    from conductor_app.core.decide import Report

    return Report("FAILED", reason=reason)


def test_an_attempt_is_selected_by_the_address_and_displays_its_log(operator, failed):
    page = page_text(operator.get(run_url(failed, task="charge", attempt="1")))

    assert "calling the gateway" in page


def test_the_input_and_the_history_are_displayed_with_actors(operator, failed):
    assert "order 4711" in page_text(operator.get(run_url(failed, tab="data")))
    response = operator.get(run_url(failed, task="reserve", tab="events"))
    assert "attempt of charge failed, worker w7 — 502 from gateway" in page_text(response)
    assert "charge (SIMPLE) created, pending" in page_text(response), "the status of a new task is a word"
    page = html(response)
    assert 'href="?tab=diagram&amp;task=reserve"' in page and 'id="task-open"' in page, "a tab preserves the task"


def test_a_failed_run_has_its_cause_its_open_task_and_a_timeline(operator, failed):
    response = operator.get(run_url(failed))
    text, page = page_text(response), html(response)

    assert "Failed at charge, attempt 2 of 2: 502 from gateway" in text, "the cause states the task and the reason"
    for part in ("Attempt 1", "Attempt 2", "timeout", "at charge.py, line 42"):
        assert part in text, "the failed task is open with its attempts and the complete reason"
    assert page.count('<td class="bar">') == 2, "a bar for each task, and a segment for each attempt"
    legend = 1
    assert "Work, completed" in page and "Typical end" not in page
    assert page.count('<rect class="work failed"') == 2 + legend
    assert page.count('<rect class="work completed"') == 1 + legend


def test_a_waiting_task_lists_the_gate_that_it_waits_at_before_the_folded_ones_that_it_passed(operator, clock):
    page = operator.get(run_url(start_run_of(simple("ship")), task="ship"))

    gates = html(page).split("Why it is waiting")[1].split("</details>")[0]
    closed, passed = gates.split('<details class="passed"')
    assert "No worker has ever polled queue ship." in page_text(page)
    assert "No worker has ever polled" in closed and "The task is due." in passed
    assert "gates are open" in passed and "open" not in passed.split(">")[0]
    assert "rerun" not in button_names(page), "an open run offers no rerun"


@pytest.mark.parametrize(
    ("task", "says"),
    [
        (wait("later", duration="2 hours"), "Later is waiting until"),
        (human("approve"), "for anyone"),
    ],
    ids=["a time", "a person"],
)
def test_a_run_opens_with_the_task_that_it_waits_at_and_the_panel_says_for_what(
    operator, clock, django_assert_max_num_queries, task, says
):
    run = start_run_of(task)
    operator.get(run_url(run))  # the plan is parsed once in a process

    with django_assert_max_num_queries(15):
        panel = html(operator.get(run_url(run))).split('id="task-open"')[1]

    assert says.lower() in panel.split('class="wait"')[1].split("</p>")[0].lower().replace("<code>", "").replace(
        "</code>", ""
    )
    assert 'id="task-open"' not in html(operator.get(run_url(run, task="-")))


@pytest.mark.parametrize(
    ("bring_to", "offered"),
    [
        (lambda run: None, ["pause", "terminate", "front", "priority", "conclude"]),
        (lambda run: control.pause_run(run.pk, "ann"), ["resume", "terminate"]),
        (lambda run: control.terminate_run(run.pk, "ann"), ["retry", "restart"]),
        (lambda run: claim_and_report("ship", "FAILED_FOR_GOOD"), ["retry", "restart", "rerun"]),
        (lambda run: claim_and_report("ship"), ["restart"]),
    ],
    ids=["running", "paused", "terminated", "failed", "completed"],
)
def test_buttons_are_displayed_if_their_action_is_possible(operator, clock, bring_to, offered):
    run = start_run_of(simple("ship"))
    bring_to(run)

    assert button_names(operator.get(run_url(run))) == offered


def test_a_button_calls_the_engine_with_the_user_and_the_reason(operator, clock):
    run = start_run_of(simple("ship"))

    page = operator.post(run_action_url(run, "pause"), {"reason": "stock count"}, follow=True)

    assert "Paused." in page_text(page)
    assert "Paused by olga 0 s ago: stock count" in page_text(page)
    assert reload_run(run).status == "PAUSED"


def test_a_retry_repeats_the_failed_task(operator, failed):
    operator.post(run_action_url(failed, "retry"))

    assert reload_run(failed).status == "RUNNING"
    assert newest_attempt_of(failed, "charge").number == 2


def test_a_run_is_restarted_by_its_newest_definition_where_that_is_ticked(operator, clock):
    run = start_run_of(simple("ship"))
    claim_and_report("ship")
    define_workflow("order", simple("pack"), version=2)

    operator.post(run_action_url(run, "restart"), {"latest_definitions": "on", "reason": "packing was forgotten"})

    assert (reload_run(run).status, reload_run(run).version) == ("RUNNING", 2)


def test_a_run_is_rerun_from_the_task_that_is_open(operator, failed):
    attempt = newest_attempt_of(failed, "reserve")
    page = operator.get(run_url(failed, task="reserve"))
    assert 'shelf "B-12"' in page_text(page), "a task can be opened to see its output"
    assert "rerun" in button_names(page)
    assert f'name="attempt_id" value="{attempt.pk}"' in html(page)

    page = operator.post(
        run_action_url(failed, "rerun"), {"attempt_id": attempt.pk, "reason": "wrong shelf"}, follow=True
    )

    assert "Rerun started." in page_text(page)
    assert "wrong shelf" in page_text(operator.get(run_url(failed, tab="events")))
    assert [str(task) for task in Task.objects.filter(run=failed)] == ["reserve"]


def test_a_rerun_that_names_no_task_is_refused(operator, failed):
    page = operator.post(run_action_url(failed, "rerun"), follow=True)

    assert "No task selected." in page_text(page)
    assert reload_run(failed).status == "FAILED"


def test_a_rejected_action_displays_the_message_of_the_engine(operator, clock):
    run = start_run_of(simple("ship"))
    claim_and_report("ship")

    page = operator.post(run_action_url(run, "pause"), follow=True)

    assert "A workflow that is COMPLETED cannot pause." in page_text(page)
    assert "Restart" in page_text(page) and "Start a similar run" in page_text(page)
    assert f"?like={run.pk}" in html(page)


def test_an_action_requires_a_post(operator, clock):
    assert operator.get(run_action_url(start_run_of(simple("ship")), "pause")).status_code == 405


def test_an_unknown_action_is_not_found(operator, clock):
    assert operator.post(run_action_url(start_run_of(simple("ship")), "explode")).status_code == 404


def test_a_viewer_sees_no_button_and_is_rejected(viewer, clock):
    run = start_run_of(simple("ship"))

    assert button_names(viewer.get(run_url(run))) == []
    assert viewer.post(run_action_url(run, "terminate")).status_code == 403
    assert reload_run(run).status == "RUNNING"


def test_a_post_without_its_token_is_refused(operator, clock):
    run = start_run_of(simple("ship"))
    operator.handler.enforce_csrf_checks = True

    assert operator.post(run_action_url(run, "terminate")).status_code == 403


def test_the_page_polls_by_revision_and_gets_nothing_without_a_change(operator, clock):
    run = start_run_of(simple("ship"))
    news = f"/admin/conductor/run/{run.pk}/parts/"

    revision = operator.get(news)["X-Revision"]
    assert operator.get(news, {"rev": revision}).status_code == 204
    claim_and_report("ship")
    fresh = html(operator.get(news, {"rev": revision}))
    assert "data-final" in fresh and "<html" not in fresh


def test_parent_and_child_are_linked_both_ways(operator, clock):
    define_workflow("child", simple("pack"))
    sub = sub_workflow("sub", "child", version=1)
    parent = start_run_of(sub, name="parent")
    child = Run.objects.get(parent_id=parent.pk)

    assert child.pk in html(operator.get(run_url(parent)))
    assert parent.pk in html(operator.get(run_url(child)))


def test_a_document_is_downloadable(operator, failed):
    answer = operator.get(f"/admin/conductor/run/{failed.pk}/raw/input/")

    assert json.loads(answer.content) == {"order": 4711}
    assert "attachment" in answer["Content-Disposition"]
    assert operator.get(f"/admin/conductor/run/{failed.pk}/raw/status/").status_code == 404


def test_the_files_of_a_run_are_listed_and_downloadable(operator, failed):
    assert "Files" not in page_text(operator.get(run_url(failed, tab="data")))
    sent, _ = (file_handles.create_handle(failed.pk, "", name, "text/html") for name in ("<b>.html", "late.pdf"))
    file_contents.store_content(failed.pk, sent.pk, ContentFile(b"<script>"), "d" * 64)
    file_handles.finish_upload(failed.pk, sent.pk)

    page = operator.get(run_url(failed, tab="data"))

    assert "<b>.html text/html 8 B" in page_text(page) and "late.pdf upload in progress" in page_text(page)
    [address] = re.findall(r'href="(/api/files/[^"]+)"', html(page))
    fetched = operator.get(unescape(address))
    assert b"".join(fetched.streaming_content) == b"<script>"
    assert "attachment" in fetched["Content-Disposition"] and "sandbox" in fetched["Content-Security-Policy"]


def test_a_large_document_is_offered_as_a_download(operator, clock):
    run = start_run_of(simple("ship"), input={"text": "x" * 100_000})

    page = page_text(operator.get(run_url(run, tab="data")))

    assert "Too large to display here" in page and "xxxx" not in page


def test_the_page_takes_few_queries(operator, viewer, failed, django_assert_max_num_queries):
    for client in (operator, viewer):
        client.get(run_url(failed))  # permissions are loaded once in a process
        with django_assert_max_num_queries(15):
            client.get(run_url(failed, task="charge"))


def test_a_waiting_run_takes_few_queries_too(operator, clock, django_assert_max_num_queries):
    define_task("ship", concurrentExecLimit=1, rateLimitPerFrequency=5, rateLimitFrequencyInSeconds=60)
    run = start_run_of(simple("ship"))
    operator.get(run_url(run))  # the plan is parsed once in a process

    with django_assert_max_num_queries(15):
        operator.get(run_url(run, task="ship"))


def test_a_reopened_run_that_waits_at_both_limits_takes_few_queries(
    operator, viewer, clock, django_assert_max_num_queries
):
    define_task("ship", retryCount=0, concurrentExecLimit=1, rateLimitPerFrequency=2, rateLimitFrequencyInSeconds=60)
    run = start_run_of(simple("ship"))
    claim_and_report("ship", "FAILED", reason="no van")
    start_run("order")
    claim_next("ship")
    retry_rerun_restart.retry(run.pk, "olga", "The van is back.")

    for client in (operator, viewer):
        client.get(run_url(run))  # the plan and the permissions are loaded once in a process
        with django_assert_max_num_queries(15):
            page = page_text(client.get(run_url(run, task="ship")))
    assert "1 of 1 tasks of this name run" in page and "2 of 2 starts in 60 s" in page
    assert "Executions 2 in " in page


def test_a_second_task_that_waits_at_its_own_limits_takes_few_queries(operator, clock, django_assert_max_num_queries):
    for name in ("pack", "ship"):
        define_task(name, concurrentExecLimit=1, rateLimitPerFrequency=2, rateLimitFrequencyInSeconds=60)
    start_run_of(*fork([simple("pack")], [simple("ship")], ref="both"))
    claim_next("pack")
    claim_next("ship")
    run = start_run("order")

    operator.get(run_url(run))  # the plan is parsed once in a process
    with django_assert_max_num_queries(15):
        page = page_text(operator.get(run_url(run, task="ship")))
    assert "Waiting: pack" in page and page.count("1 of 1 tasks of this name run") == 2


def test_a_failure_three_levels_below_takes_few_queries(viewer, clock, django_assert_max_num_queries):
    define_task("ship", retryCount=0)
    define_workflow("c", simple("ship"))
    define_workflow("b", sub_workflow("call_c", "c"))
    define_workflow("a", sub_workflow("call_b", "b"))
    run = start_run("a")
    sweeps.sweep_once()  # the third level may begin by a message
    claim_and_report("ship", "FAILED", reason="no van")
    for _ in range(3):
        sweeps.sweep_once()
    viewer.get(run_url(run))  # the plan is parsed once in a process

    with django_assert_max_num_queries(15):
        page = page_text(viewer.get(run_url(run)))
    assert "Failed at call_b" in page and "failed at call_c" in page and "failed at ship" in page and "no van" in page


def test_two_thousand_tasks_alike_are_one_row_and_a_window_of_them_opens(
    operator, clock, django_assert_max_num_queries
):
    run = _with_tasks(2_000)

    with django_assert_max_num_queries(15):
        response = operator.get(run_url(run))
    assert "many: 2,000 tasks Completed 2,000" in page_text(response)
    assert html(response).count('<td class="bar">') == 2

    with django_assert_max_num_queries(15):
        response = operator.get(run_url(run, open="/*many"))
    assert html(response).count('<td class="bar">') == 300
    assert "Rows 1 to 300 of 2,002" in page_text(response)
    assert len(gzip.compress(response.content)) < 100_000


@pytest.mark.slow
def test_every_tab_of_a_run_with_ten_thousand_tasks_stays_small(operator, clock, django_assert_max_num_queries):
    run = _with_tasks(10_000)

    for tab in ("timeline", "diagram", "tasks", "data", "events", "audit"):
        with django_assert_max_num_queries(15):
            response = operator.get(run_url(run, tab=tab))

        assert html(response).count("<tr") < 500, tab
        assert len(response.content) < 100_000, tab


def test_a_task_far_down_is_opened_in_its_own_window(operator, clock):
    run = _with_tasks(700)

    page = page_text(operator.get(run_url(run, task="many__650", open="/*many")))
    assert "Rows 601 to 702 of 702" in page and "This task has no stored attempt" in page


def test_an_unknown_tab_a_wild_window_and_an_odd_attempt_do_no_harm(operator, failed):
    for asked in ({"tab": "none"}, {"from": "x", "to": "9" * 40}, {"attempt": "-1"}, {"page": "0"}, {"before": "é"}):
        assert operator.get(run_url(failed, task="charge", **asked)).status_code == 200


def test_a_part_of_the_timeline_is_chosen_by_the_address(operator, clock):
    run = start_run_of(simple("pack"), simple("ship"))
    clock.advance(seconds=100)
    claim_and_report("pack")
    clock.advance(seconds=100)

    page = html(operator.get(run_url(run, **{"from": "150000", "to": "200000"})))

    assert page.count('<rect class="wait') == 2  # one of them is the legend's
    assert "Fit" in page


def test_the_source_of_an_input_is_displayed_with_suggestions_for_typos(operator, clock):
    given = {"sku": "${pick.output.shelf}", "name": "${workflow.input.custmer.name}", "lost": "${workflow.input.total}"}
    run = start_run_of(
        simple("pick"), simple("ship", inputParameters=given), input={"customer": {"name": "Ann"}, "total": None}
    )
    claim_and_report("pick", output={"shelf": "B-12"})

    page = page_text(operator.get(run_url(run, task="ship")))

    assert 'sku ${pick.output.shelf} pick output "B-12"' in page
    assert "no member custmer; did you mean customer?" in page
    assert "the value is null" in page


@pytest.mark.django_db(transaction=True)
def test_a_run_that_failed_because_of_its_child_names_the_origin_and_links_to_it(operator, clock):
    define_task("charge", retryCount=0)
    define_workflow("payment", simple("charge"))
    run = start_run_of(sub_workflow("pay", "payment", version=1))
    claim_and_report("charge", "FAILED", reason="no funds " * 1_000)
    child = Run.objects.get(name="payment")

    page = operator.get(run_url(run))

    assert "sub-workflow failed at charge, attempt 1 of 1: no funds" in page_text(page)
    assert f'<a href="{run_url(child)}">Open the sub-workflow\'s run</a>' in unescape(html(page))
    reason = operator.get(f"/api/workflow/{run.pk}").json()["reasonForIncompletion"]
    assert child.pk in reason and len(reason) <= MAX_REASON_LENGTH


@pytest.fixture
def compensated(clock, db):
    define_workflow("refund", simple("give_back"))
    define_task("charge", retryCount=0)
    define_workflow("order", simple("charge"), failureWorkflow="refund")
    run = start_run("order")
    claim_and_report("charge", "FAILED", reason="no funds")
    return reload_run(run)


def test_a_failed_run_and_its_failure_workflow_link_to_each_other_also_after_another_failure(
    operator, compensated, clock
):
    refund = Run.objects.get(name="refund")
    failed, handler = operator.get(run_url(compensated)), operator.get(run_url(refund))

    assert "Failure workflow refund v1 Running" in page_text(failed) and run_url(refund) in html(failed)
    assert "Started because this run failed order v1" in page_text(handler) and run_url(compensated) in html(handler)

    clock.advance(seconds=5)
    retry_rerun_restart.retry(compensated.pk, "olga")
    assert run_url(refund) in html(operator.get(run_url(compensated))), "the links stay after a retry"
    assert run_url(compensated) in html(operator.get(run_url(refund)))

    claim_and_report("charge", "FAILED", reason="still no funds")
    page = page_text(operator.get(run_url(compensated)))
    assert page.count("Failure workflow") == 1 and page.count("refund v1") == 2, "one field for both"


@pytest.mark.parametrize(
    ("retries", "outcome", "why"),
    [
        (2, "FAILED_FOR_GOOD", "Not retried: the worker reported an error that no retry can solve."),
        (0, "FAILED", "Not retried: its definition allows no retries."),
        (1, "FAILED", "Not retried: all 2 attempts have failed."),
    ],
)
def test_the_panel_of_a_failed_task_says_why_it_is_not_retried(operator, clock, retries, outcome, why):
    define_task("charge", retryCount=retries, retryDelaySeconds=0)
    run = start_run_of(simple("charge"))
    while reload_run(run).status == "RUNNING":
        claim_and_report("charge", outcome, reason="no funds")

    assert why in page_text(operator.get(run_url(run)))


def test_an_attempt_that_a_retry_by_hand_began_is_marked_and_said_not_to_be_repeated(operator, clock):
    define_task("charge", retryCount=0)
    run = start_run_of(simple("charge"))
    claim_and_report("charge", "FAILED", reason="no funds")
    clock.advance(seconds=5)
    retry_rerun_restart.retry(run.pk, "olga")
    clock.advance(seconds=5)
    claim_and_report("charge", "FAILED", reason="no funds")

    page = page_text(operator.get(run_url(run)))
    assert page.count("started by hand") == 1
    assert "Not retried: this attempt was a retry by hand, which is not repeated." in page


def test_a_failed_step_without_a_task_definition_says_that_such_steps_are_not_retried(operator, clock):
    run = start_run_of(step_of("JSON_JQ_TRANSFORM", "calculate", inputParameters={"queryExpression": "error(1)"}))

    page = page_text(operator.get(run_url(run)))

    assert "Not retried: it has no task definition; steps without one are not retried." in page


@pytest.mark.parametrize(
    ("facts", "key"),
    [({"correlation_id": "CLM-1017"}, "CLM-1017"), ({"input": {"orderId": 4711}}, "orderId 4711"), ({}, None)],
)
def test_the_heading_and_the_title_of_a_run_say_which_one_it_is(operator, clock, facts, key):
    run = start_run_of(simple("charge"), **facts)
    page = operator.get(run_url(run))

    key = key or f"…{run.pk[-4:]}"
    assert f"order v1 · {key} Running" in page_text(page)
    assert f"order · {key}" in html(page).split("</title>")[0]


def test_the_cause_says_that_a_terminal_error_is_not_retried(operator, clock):
    define_task("charge", retryCount=2)
    run = start_run_of(simple("charge"))
    claim_and_report("charge", "FAILED_FOR_GOOD", reason="no funds")

    cause = "Failed at charge, attempt 1, not retried because the error is terminal: no funds"
    assert cause in page_text(operator.get(run_url(run)))


def test_the_error_of_an_attempt_is_not_shown_as_that_of_the_next_one(operator, failed):
    retry_rerun_restart.retry(failed.pk, "olga")
    claim_and_report("charge")

    page = page_text(operator.get(run_url(failed, task="charge")))

    assert "Reason 502 from gateway" not in page and page.count("502 from gateway") == 1
    assert "Reason 502 from gateway" in page_text(operator.get(run_url(failed, task="charge", attempt=2)))


def test_sub_workflows_are_listed_among_the_tasks_on_request(operator, clock):
    define_workflow("child", simple("pack"))
    run = start_run_of(sub_workflow("sub", "child", version=1))
    sweeps.sweep_once()

    assert "pack Worker task" not in page_text(operator.get(run_url(run, task="-")))
    assert "pack Worker task" in page_text(operator.get(run_url(run, task="-", children="1")))


def test_the_tasks_of_one_status_are_a_filter_away(operator, failed):
    page = html(operator.get(run_url(failed, status="COMPLETED", task="-")))

    assert page.count('<td class="bar">') == 1


def _with_tasks(count):
    run = start_run_of(simple("ship"))
    facts = {
        "run": run,
        "ref": "many",
        "name": "many",
        "type": "SIMPLE",
        "status": "COMPLETED",
        "created_at": run.created_at,
    }
    Task.objects.bulk_create(
        Task(id=f"t{n}", iteration_path=str(n), seq=n + 10, attempt_id=f"a{n}", **facts) for n in range(1, count + 1)
    )
    return run


def test_a_deleted_definition_does_not_break_the_page(operator, clock):
    run = start_then_forget()

    assert "ship" in page_text(operator.get(run_url(run)))


def start_then_forget():
    from conductor_app.definitions import commands as definition_commands

    define_workflow("order", simple("ship"))
    run = start_run("order")
    definition_commands.delete_workflow("order", 1, "ann")
    return run


def test_a_deleted_run_explains_its_absence(operator, viewer, clock):
    run = start_run_of(simple("ship"))
    control.terminate_run(run.pk, "ann")
    control.remove_run(run.pk, "ann", "asked for by the customer", archive=False)

    gone = operator.get(run_url(run))
    assert gone.status_code == 410
    assert "Removed by ann: asked for by the customer." in gone.content.decode()

    retention.save_policy("", 30, 90, 0, "olga")
    old = derived_id(clock.now() - 40 * 86_400_000, "order")
    gone = operator.get(f"/admin/conductor/run/{old}/change/")
    assert gone.status_code == 410
    assert "By its id, the run started 40 d ago. Finished runs are removed after 30 d." in gone.content.decode()
    for never in (derived_id(clock.now() - 86_400_000, "order"), "not-an-id"):
        assert operator.get(f"/admin/conductor/run/{never}/change/").status_code == 404


def test_a_user_without_permission_learns_which_one_is_missing(db):
    client = client_with()

    for address, missing in (
        ("run/", "view runs"),
        ("run/4711/change/", "view runs"),
        ("secret/add/", "create secrets"),
    ):
        refused = client.get(f"/admin/conductor/{address}")
        assert refused.status_code == 403
        assert f"You need the permission to {missing}." in " ".join(refused.content.decode().split())


def test_the_diagram_displays_types_durations_and_attempts_and_links_to_iterations(operator, clock):
    define_task("scan", retryCount=1, retryDelaySeconds=0)
    run = start_run_of(loop("pages", simple("scan"), times=2))
    claim_and_report("scan", "FAILED", reason="blurred")
    claim_next("scan")
    clock.advance(seconds=4)
    [attempt] = Attempt.objects.leased("scan")
    task_commands.report_task(run.pk, attempt.pk, Report("COMPLETED"), "w7")

    newest = html(operator.get(run_url(run, tab="diagram", task="-")))
    assert "icons.svg#step-loop" in newest and "icons.svg#step-task" in newest
    assert "Worker task · Pending" in newest and "iteration=pages%3A2" in newest and "task=scan__2" in newest

    first = html(operator.get(run_url(run, tab="diagram", task="-", iteration="pages:1")))
    assert "4.0 s · 2 attempts" in first and "1 / 2" in first
    assert 'href="?tab=diagram&amp;task=scan__1&amp;iteration=pages%3A1"' in first
    assert 'href="?tab=diagram&amp;task=-"' in first


@pytest.mark.parametrize("name", ["", "clean_up"])
def test_the_failure_workflow_is_offered_only_if_the_definition_names_one(operator, clock, name):
    define_workflow("order", simple("pay"), **({"failureWorkflow": name} if name else {}))

    page = html(operator.get(run_url(start_run("order"))))

    assert ("Start the failure workflow" in page) == bool(name)
