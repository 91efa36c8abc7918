"""The timeline of a run: tree, waiting, idle time, lives; every state is a link, without JavaScript."""

import re
from html import unescape
from urllib.parse import parse_qs

import pytest

from conductor_app.definitions.models import DurationBaseline
from conductor_app.processes import sweeps
from conductor_app.runs.commands import repair as run_commands_repair
from conductor_app.tasks.commands import reports as task_commands
from tests.builders import dynamic_fork, fork, human, loop, simple, step, sub_workflow
from tests.page_text import html, page_text, run_url
from tests.scenario import (
    claim_and_report,
    claim_next,
    define_task,
    define_workflow,
    reload_run,
    start_run,
    start_run_of,
)


@pytest.fixture
def retried_run(clock, db):
    """Return a run that failed after 13 s, and was retried and completed ten minutes later."""
    run = start_run_of(step("pack"), step("ship"))
    clock.advance(seconds=10)
    claim_and_report("pack")
    clock.advance(seconds=3)
    claim_and_report("ship", "FAILED", reason="no truck")
    clock.advance(seconds=600)
    run_commands_repair.retry(run.pk, "olga")
    clock.advance(seconds=4)
    attempt = claim_next("ship")
    clock.advance(seconds=2)
    task_commands.report_task(run.pk, attempt.id, _completed(), "w7")
    return reload_run(run)


def _completed():
    from conductor_app.core.decide import Report

    return Report("COMPLETED")


def rows(page):
    """Return the names of the rows with their depths."""
    cells = re.findall(r'class="depth-(\d)">.*?class="name"[^>]*>([^<]*)<', html(page), re.DOTALL)
    return [(int(depth), name) for depth, name in cells]


def fold_address(page, name):
    """Return the address of the link that folds or unfolds a row."""
    row = next(row for row in re.findall(r"<tr.*?</tr>", html(page), re.DOTALL) if f">{name}<" in row)
    return unescape(re.search(r'class="fold"\s+data-select\s+href="([^"]+)"', row)[1])


def follow(operator, run, query):
    return operator.get(run_url(run).partition("?")[0] + query)


def test_iterations_are_rows_that_fold_by_a_link(operator, clock):
    run = start_run_of(loop("pages", step("scan"), times=2))
    claim_and_report("scan")

    page = operator.get(run_url(run, task="-"))
    assert rows(page) == [(0, "pages"), (1, "Iteration 1"), (2, "scan"), (1, "Iteration 2"), (2, "scan")]
    folded = follow(operator, run, fold_address(page, "Iteration 1"))
    assert rows(folded) == [(0, "pages"), (1, "Iteration 1"), (1, "Iteration 2"), (2, "scan")]
    again = follow(operator, run, fold_address(folded, "Iteration 1"))
    assert rows(again) == rows(page)


def test_many_branches_are_a_summary_and_the_failed_one_is_visible(operator, clock):
    define_task("part", retryCount=0)
    define_workflow("order", *dynamic_fork("fan", "fan_join"))
    parts = [simple(f"part_{number}") | {"name": "part"} for number in range(20)]
    run = start_run("order", input={"tasks": parts, "inputs": {}})
    for _number in range(3):
        claim_and_report("part")
    claim_and_report("part", "FAILED", reason="torn")

    page = operator.get(run_url(run, task="-"))
    assert "20 branches Failed 1 Canceled 16 Completed 3" in page_text(page)
    assert rows(page) == [(0, "fan"), (1, "20 branches"), (2, "part_3"), (0, "fan_join")]
    assert len(rows(follow(operator, run, fold_address(page, "20 branches")))) == 23


def test_a_task_without_a_worker_is_outlined_and_has_no_queue_time(operator, clock):
    run = start_run_of(human("approve"))
    clock.advance(seconds=50)

    page = html(operator.get(run_url(run, task="-")))

    assert page.count('<rect class="hold leased"') == 1
    assert '<rect class="wait' not in page and "In the queue" not in page
    assert "approve: waiting 50.0 s" in page


def test_an_open_task_that_waits_for_a_person_is_not_called_running(operator, clock):
    run = start_run_of(human("approve"))

    for tab in ("timeline", "tasks", "diagram"):
        page = operator.get(run_url(run, tab=tab))
        assert "Waiting attempt 1" in page_text(page), tab
    [box] = page.context["picture"].nodes
    assert (box.tone, box.status_label) == ("waiting", "Waiting")


def test_a_row_has_the_time_of_the_work_the_attempts_and_a_long_time_in_the_queue(operator, clock, retried_run):
    line = operator.get(run_url(retried_run, task="-")).context["lines"][1]
    assert line.notes == ["2 attempts", "queued 7.0 s"]
    run = start_run_of(step("pack"))
    clock.advance(seconds=50)
    attempt = claim_next("pack")
    clock.advance(seconds=30)
    task_commands.report_task(run.pk, attempt.id, _completed(), "w7")

    [line] = operator.get(run_url(run, task="-")).context["lines"]

    assert (line.time, line.notes) == ("30.0 s", ["queued 50.0 s"])


def test_the_delay_before_a_retry_is_not_called_time_in_the_queue(operator, clock):
    define_task("ship", retryCount=1, retryDelaySeconds=60)
    run = start_run_of(simple("ship"))
    claim_and_report("ship", "FAILED", reason="no van")
    clock.advance(seconds=65)
    claim_next("ship")

    page = operator.get(run_url(run, task="ship"))
    assert "attempt 2, delayed 1 min, queued 5.0 s, working" in page_text(page)


def test_a_failure_in_a_small_part_of_a_long_run_is_enlarged_by_a_link(operator, clock):
    define_task("scan", retryCount=0)
    run = start_run_of(loop("pages", simple("scan"), times=60))
    for _number in range(40):
        clock.advance(seconds=10)
        claim_and_report("scan")
    clock.advance(seconds=1)
    claim_and_report("scan", "FAILED", reason="torn")

    page = operator.get(run_url(run))
    zoomed = follow(operator, run, page.context["first_failed"])

    [line] = [line for line in zoomed.context["lines"] if line.is_chosen]
    assert line.title == "scan__41" and float(line.segments[-1].left.rstrip("%")) < 90
    assert "Zoom to the failure" in page_text(page) and zoomed.context["is_zoomed"]


def test_the_panel_leads_to_the_same_task_in_the_diagram_and_back(operator, retried_run):
    page = operator.get(run_url(retried_run, task="ship"))
    assert "In the diagram" in page_text(page)

    assert "In the timeline" in page_text(follow(operator, retried_run, page.context["other_view"]["address"]))


def test_the_panel_of_a_human_task_hides_its_definition(operator, clock):
    run = start_run_of(human("approve", inputs={"amount": 5, "__humanTaskDefinition": {"displayName": "Yes?"}}))

    page = page_text(operator.get(run_url(run, task="approve")))

    assert "amount 5" in page and "__humanTaskDefinition" not in page


def test_the_idle_time_before_a_retry_is_collapsed(operator, retried_run):
    page = page_text(operator.get(run_url(retried_run, task="-")))

    assert "10 min idle between executions" in page and "Time without work, not to scale" in page
    assert "10 min idle" not in page_text(operator.get(run_url(retried_run, task="-", **{"from": "0", "to": "13000"})))


def test_a_time_in_which_a_run_waits_for_a_person_is_not_called_idle(operator, clock):
    run = start_run_of(step("pack"), human("approve"))
    clock.advance(seconds=5)
    claim_and_report("pack")
    clock.advance(seconds=600)

    response = operator.get(run_url(run, task="-"))
    page = page_text(response)
    assert "10 min waiting for a person" in page and "10 min idle" not in page
    assert response.context["ticks"][0].label == "0"


def test_a_folded_loop_that_only_waits_has_a_bar(operator, clock):
    run = start_run_of(loop("pages", human("approve"), times=2))
    clock.advance(seconds=5)

    line = operator.get(run_url(run, shut="pages", task="-")).context["lines"][0]

    assert [segment.kind for segment in line.segments] == ["hold"]


def test_the_duration_of_all_executions_is_compared_with_the_typical_one(operator, retried_run):
    page = page_text(operator.get(run_url(retried_run)))
    assert "Duration 19.0 s" in page and "Executions 2 in 10 min 19 s, the last one 6.0 s" in page
    baseline = {"name": "order", "version": 1, "ref": "", "count": 50, "p50_ms": 12_000, "p95_ms": 19_000}
    row = DurationBaseline.objects.create(measured_at=0, **baseline)
    assert "slower than typical" not in page_text(operator.get(run_url(retried_run)))

    row.p50_ms, row.p95_ms = 8_000, 9_000
    row.save()

    assert "slower than typical" in page_text(operator.get(run_url(retried_run)))


def test_a_sub_workflow_opens_in_place(operator, clock):
    define_workflow("child", simple("weigh"), simple("seal"))
    run = start_run_of(sub_workflow("sub", "child", version=1))
    sweeps.sweep_once()
    claim_and_report("weigh")

    page = operator.get(run_url(run, task="-"))
    assert rows(page) == [(0, "sub")]
    assert rows(follow(operator, run, fold_address(page, "sub"))) == [(0, "sub"), (1, "weigh"), (1, "seal")]


def test_no_timeline_takes_more_than_fifteen_queries(operator, retried_run, django_assert_max_num_queries):
    operator.get(run_url(retried_run))

    for asked in ({"task": "ship"}, {"tab": "diagram"}):
        with django_assert_max_num_queries(15):
            operator.get(run_url(retried_run, **asked))


def test_an_open_sub_workflow_takes_two_queries(operator, clock, django_assert_max_num_queries):
    define_workflow("child", simple("weigh"))
    run = start_run_of(sub_workflow("sub", "child", version=1))
    operator.get(run_url(run, children="1"))

    with django_assert_max_num_queries(15):
        operator.get(run_url(run, children="1", task="sub"))


def test_the_panel_has_the_reason_first_and_the_source_of_the_input_last(operator, clock):
    define_task("charge", retryCount=0)
    steps = simple("reserve"), simple("charge", inputParameters={"sku": "${reserve.output.sku}"})
    run = start_run_of(*steps)
    claim_and_report("reserve", output={"sku": "B-12"})
    claim_and_report("charge", "FAILED", reason="502 from gateway")

    page = page_text(operator.get(run_url(run)))
    panel = page[page.index("charge", page.index("Close the task") - 40) :]
    order = ["Reason 502", "Input 14 B", "Output", "Log", "Attempts", "Attempt's id", "Source of its input"]
    assert [panel.index(each) for each in order] == sorted(panel.index(each) for each in order)


def test_the_times_of_the_panel_are_exact_and_relative_in_the_tooltip(operator, retried_run, clock):
    clock.advance(seconds=30)

    page = html(operator.get(run_url(retried_run, task="ship", attempt="2")))

    assert re.search(r'<time class="number" datetime="[^"]+" title="32 s ago [^"]+">12:10:17\.000</time>', page)


def test_a_step_of_a_loop_that_is_selected_in_the_diagram_is_its_newest_task(operator, clock):
    run = start_run_of(loop("pages", step("scan"), times=3))
    claim_and_report("scan")

    page = operator.get(run_url(run, task="scan", tab="diagram"))
    assert "Close the task" in page_text(page) and ">scan, iteration 2</h2>" in html(page)


def diagram_of(operator, run, **query):
    """Return the diagram in the tab of a run, by the reference of each box."""
    picture = operator.get(run_url(run, tab="diagram", **query)).context["picture"]
    return {node.ref: node for node in picture.nodes}


def test_what_is_collapsed_in_the_timeline_is_collapsed_in_the_diagram(operator, clock):
    branches = fork([step("weigh"), step("seal")], [step("invoice"), step("mail")])
    run = start_run_of(loop("pages", step("scan"), times=1), *branches)
    claim_and_report("scan")
    timeline = operator.get(run_url(run, task="-"))
    shut = parse_qs(fold_address(timeline, "pages").partition("?")[2])["shut"][0]

    boxes = diagram_of(operator, run, shut=f"{shut}~fork_join/1")
    assert "scan" not in boxes and (boxes["pages"].is_folded, boxes["pages"].note) == (True, "1 step")
    assert "weigh" not in boxes and "invoice" in boxes
    [branch] = [node for node in boxes.values() if node.caption == "Branch 1"]
    assert branch.note == "2 steps"

    opened = parse_qs(boxes["pages"].fold_href[1:])
    assert (opened["open"], opened["shut"]) == (["pages"], ["fork_join/1"])
    assert "weigh" in {node.ref for node in follow(operator, run, branch.href).context["picture"].nodes}
    shut_again = parse_qs(diagram_of(operator, run)["fork_join"].fold_href[1:])
    assert shut_again["shut"] == ["fork_join"] and shut_again["tab"] == ["diagram"]
