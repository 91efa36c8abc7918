"""Bulk actions on runs: the reason is required, and the result of each run is shown."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.runs.commands import control
from conductor_app.runs.pages import selected_runs
from tests.page_text import page_text
from tests.stored_scenarios import define_workflow, reload_run, start_run, step

LIST = "/admin/conductor/run/"


@pytest.fixture
def three(clock, db):
    define_workflow("order", step("ship"))
    return [start_run("order") for _ in range(3)]


def post(client, action, chosen, **more):
    return client.post(LIST, {"action": action, "_selected_action": [run.pk for run in chosen], "index": "0", **more})


def test_an_action_asks_for_a_reason_and_counts_the_runs_that_allow_it(operator, three):
    control.pause_run(three[0].pk, "ann")

    page = page_text(post(operator, "pause", three))

    assert "2 of 3 selected runs allow this action now" in page and "Reason" in page
    assert reload_run(three[1]).status == "RUNNING"


def test_a_confirmed_action_is_applied_and_each_rejection_listed(operator, three):
    control.terminate_run(three[0].pk, "ann")

    page = page_text(post(operator, "pause", three, confirmed="yes", reason="stock count"))

    assert "2 done, 1 refused" in page
    assert "A workflow that is TERMINATED cannot pause." in page
    assert [reload_run(run).status for run in three] == ["TERMINATED", "PAUSED", "PAUSED"]
    assert (
        list(AuditEntry.objects.filter(action="pause").values_list("actor", "reason")) == [("olga", "stock count")] * 2
    )


def test_the_number_of_runs_per_request_is_limited(operator, three, monkeypatch):
    monkeypatch.setattr(selected_runs, "MAX_RUNS", 2)

    assert "At most the newest 2 are processed at a time" in page_text(post(operator, "pause", three))
    assert "2 completed" in page_text(post(operator, "pause", three, confirmed="yes"))


def test_a_viewer_cannot_act_on_a_selection(viewer, three):
    post(viewer, "terminate", three, confirmed="yes")

    assert {reload_run(run).status for run in three} == {"RUNNING"}
