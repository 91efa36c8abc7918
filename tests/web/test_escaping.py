"""Whatever people and workers write is text on every page, never markup."""

import pytest

from conductor_app.runs.commands import control
from conductor_app.runs.models import Attempt
from conductor_app.tasks.commands import reports as task_commands
from conductor_app.web.badges import mark_names
from conductor_app.web.documents import render_tree
from tests.builders import simple
from tests.page_text import html, run_url
from tests.scenario import claim_next, define_task, define_workflow, start_run

EVIL = "<script>alert(1)</script>"
BREAKOUT = '"><img src=x onerror=alert(1)>'


@pytest.fixture
def hostile(operator, clock):
    """Return a run in which every name, value and payload contains an attack."""
    define_task("charge", retryCount=0)
    document = simple("charge", inputParameters={EVIL: "${workflow.input.x}", BREAKOUT: BREAKOUT})
    define_workflow("order", document, description=EVIL)
    run = start_run("order", correlation_id=BREAKOUT, input={"x": EVIL, EVIL: [BREAKOUT]})
    attempt = claim_next("charge", worker=EVIL)
    task_commands.add_log(attempt.id, EVIL)
    Attempt.objects.filter(pk=attempt.id).update(worker=BREAKOUT)
    control.pause_run(run.pk, EVIL, f"{EVIL} `{EVIL}`")
    control.resume_run(run.pk, BREAKOUT, BREAKOUT)
    from conductor_app.core.decide import Report

    task_commands.report_task(
        run.pk, attempt.id, Report("FAILED", reason=f"{EVIL}\n{BREAKOUT}", output={EVIL: EVIL}), EVIL
    )
    return run


def is_harmless(page: str) -> bool:
    return "<script>alert" not in page and "<img src=x" not in page and "alert(1)" in page


def test_the_page_of_a_run_escapes_everything(operator, hostile):
    assert is_harmless(html(operator.get(run_url(hostile))))
    assert is_harmless(html(operator.get(run_url(hostile, task="charge"))))


def test_the_lists_escape_everything(operator, hostile):
    for path in ("run", "workflowdefinition", "auditentry"):
        assert is_harmless(html(operator.get(f"/admin/conductor/{path}/"))), path


def test_the_overview_escapes_everything(operator, hostile):
    assert is_harmless(html(operator.get("/admin/")))


def test_a_search_term_is_text(operator):
    page = html(operator.get("/admin/conductor/run/", {"q": BREAKOUT}))

    assert "<img src=x" not in page


def test_a_raw_document_is_never_rendered_as_a_page(operator, hostile):
    answer = operator.get(f"/admin/conductor/run/{hostile.pk}/raw/input/")

    assert answer["Content-Type"] == "application/json" and answer["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("value", [EVIL, {EVIL: 1}, [EVIL], {"a": {"b": {"c": {BREAKOUT: EVIL}}}}])
def test_a_tree_escapes_keys_and_values(value):
    assert "<script" not in render_tree(value) and "<img" not in render_tree(value)


def test_a_tree_is_bounded_in_every_direction():
    deep: object = "end"
    for _ in range(2_000):
        deep = [deep]

    assert len(render_tree(list(range(100_000)))) < 20_000
    assert len(render_tree({"text": "x" * 1_000_000})) < 10_000
    assert len(render_tree(deep)) < 10_000
    assert "more" in render_tree([[n] * 50 for n in range(90)])


def test_names_in_a_sentence_are_marked_after_they_are_escaped():
    assert mark_names(f"at `{EVIL}`") == "at <code>&lt;script&gt;alert(1)&lt;/script&gt;</code>"
