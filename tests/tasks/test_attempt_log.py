"""The log of an attempt on its panel: newest first to be seen, searched, linked line by line, and as a file."""

import pytest
from django.urls import reverse

from conductor_app.core.decide import Report
from conductor_app.runs.models import TaskLog
from conductor_app.tasks.commands import reports as task_commands
from tests.builders import human, simple, step_of, sub_workflow, wait
from tests.page_text import html, page_text, run_url
from tests.scenario import claim_next, define_workflow, newest_attempt_of, start_run_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def attempt(clock):
    """Return a claimed attempt."""
    run = start_run_of(simple("charge"))
    claim_next("charge")
    return newest_attempt_of(run, "charge")


def write_lines(attempt, count, text="line {}"):
    TaskLog.objects.bulk_create(
        TaskLog(attempt_id=attempt.pk, at=1_000 * (n // 2), line=text.format(n)) for n in range(count)
    )


def panel(client, attempt, **asked):
    return client.get(run_url(attempt.run, task="charge", **asked))


def lines(page):
    """Return the texts of the displayed log lines."""
    return [part.split("</span>")[0] for part in html(page).split('<span class="text">')[1:]]


def link_target(page, word):
    """Return the target of the link with this label."""
    before = html(page).partition(f">{word}</a>")[0]
    return before.rpartition('href="')[2].rpartition('"')[0].replace("&amp;", "&")


def test_the_newest_lines_are_displayed_and_followed_while_the_worker_is_running(operator, attempt):
    write_lines(attempt, 450)

    page = panel(operator, attempt)

    assert lines(page) == [f"line {n}" for n in range(250, 450)]
    assert "data-log-tail" in html(page) and "data-log-follow" in html(page)
    task_commands.report_task(attempt.run_id, attempt.pk, Report("COMPLETED"), "w")
    assert "data-log-follow" not in html(panel(operator, attempt))


def test_earlier_lines_are_linked_without_duplicates(operator, attempt):
    write_lines(attempt, 450)
    at = f"/admin/conductor/run/{attempt.run_id}/change/"
    newest = panel(operator, attempt)

    middle = operator.get(at + link_target(newest, "Earlier lines"))
    oldest = operator.get(at + link_target(middle, "Earlier lines"))

    assert lines(oldest) + lines(middle) + lines(newest) == [f"line {n}" for n in range(450)]
    assert "Earlier lines" not in page_text(oldest)
    assert lines(operator.get(at + link_target(oldest, "Later lines"))) == lines(middle)


def test_the_address_selects_a_line_and_its_context(operator, attempt):
    write_lines(attempt, 450)
    line = TaskLog.objects.get(line="line 120")

    page = panel(operator, attempt, line=f"{line.at}.{line.pk}")

    assert lines(page) == [f"line {n}" for n in range(21, 221)]
    assert html(page).count('class=" chosen"') == 1 and f'id="log-{line.pk}"' in html(page)
    assert "data-log-tail" not in html(page)


def test_a_log_is_searched_and_matches_are_marked(operator, attempt):
    write_lines(attempt, 30)

    page = panel(operator, attempt, find="LINE 2")

    assert len(lines(page)) == 11
    assert "<mark>line 2</mark>9" in html(page)
    assert "No searched line contains “100%”." in page_text(panel(operator, attempt, find="100%"))


def test_a_search_through_a_long_log_stops_and_can_continue(operator, attempt, monkeypatch):
    monkeypatch.setattr("conductor_app.tasks.queries.tasks.MAX_SEARCHED_LINES", 20)
    write_lines(attempt, 50)
    at = f"/admin/conductor/run/{attempt.run_id}/change/"

    page = panel(operator, attempt, find="line 1")
    for _ in range(2):
        assert lines(page) == [] and "Search further back" in page_text(page)
        page = operator.get(at + link_target(page, "Search further back"))
        if lines(page):
            break

    assert lines(page)[-1] == "<mark>line 1</mark>9"


def test_a_log_is_colored_by_level_and_escaped(operator, attempt):
    TaskLog.objects.create(attempt_id=attempt.pk, at=1, line="\x1b[31mERROR\x1b[0m <b>it</b> broke")

    page = html(panel(operator, attempt))

    assert 'class="error"' in page and "ERROR &lt;b&gt;it" in page


def test_the_complete_log_is_downloadable(operator, viewer, attempt, monkeypatch):
    monkeypatch.setattr("conductor_app.tasks.queries.tasks.CHUNK", 7)
    write_lines(attempt, 20, "<line {}>")

    answer = viewer.get(reverse("admin:attempt_log", args=[attempt.pk]))

    text = b"".join(answer.streaming_content).decode()
    assert [line.split(" ", 1)[1] for line in text.splitlines()] == [f"<line {n}>" for n in range(20)]
    assert "attachment" in answer["Content-Disposition"] and answer["Content-Type"].startswith("text/plain")


def test_an_empty_log_explains_how_to_send_one(operator, attempt):
    page = page_text(panel(operator, attempt))

    assert "The worker sent no lines." in page
    assert f"curl -X POST http://testserver/api/tasks/{attempt.pk}/log" in page


def test_an_address_that_makes_no_sense_does_no_harm(operator, attempt):
    write_lines(attempt, 3)
    for asked in [
        {"line": "x"}, {"line": "1.2.3"}, {"log": "before.é"}, {"log": "sideways.1.1"}, {"find": "\0%_"},
        {"line": f"{'9' * 30}.1"}, {"log": "after.999999999999999999.1"},
    ]:  # fmt: skip
        assert panel(operator, attempt, **asked).status_code == 200, asked


def test_a_log_takes_few_queries_at_any_position(operator, attempt, django_assert_max_num_queries):
    write_lines(attempt, 450)
    line = TaskLog.objects.get(line="line 120")
    panel(operator, attempt)
    for asked in ({}, {"find": "line"}, {"line": f"{line.at}.{line.pk}"}, {"log": "before.100.1"}):
        with django_assert_max_num_queries(15):
            panel(operator, attempt, **asked)


@pytest.mark.parametrize(
    "document",
    [
        wait("nap", duration="1 hour"),
        human("nap"),
        sub_workflow("nap", "child", version=1),
        step_of("HTTP", "nap", inputParameters={"http_request": {"uri": "http://127.0.0.1:9/", "method": "GET"}}),
        simple("nap"),
    ],
    ids=["WAIT", "HUMAN", "SUB_WORKFLOW", "HTTP", "pending"],
)
def test_a_task_without_a_worker_of_yours_has_no_log(operator, clock, document):
    define_workflow("child", simple("charge"))
    run = start_run_of(document)
    if document["type"] == "HTTP":
        claim_next("HTTP")

    page = page_text(operator.get(run_url(run, task="nap")))

    assert "Source of its input" in page or "Attempt 1" in page
    assert "Log" not in page.partition("Attempt 1")[2] and "curl" not in page


def test_lines_of_a_built_in_worker_are_displayed(operator, clock):
    run = start_run_of(step_of("HTTP", "call", inputParameters={"http_request": {"uri": "http://127.0.0.1:9/"}}))
    claim_next("HTTP")
    write_lines(newest_attempt_of(run, "call"), 1)

    assert "line 0" in page_text(operator.get(run_url(run, task="call")))
