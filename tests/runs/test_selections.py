"""Selections of runs: documents that become one query and a description in words."""

import pytest

from conductor_app.bulk import selections
from conductor_app.core.errors import Invalid
from conductor_app.runs.models import Run
from tests.builders import simple
from tests.scenario import claim_and_report, define_task, define_workflow, start_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def runs(clock):
    define_task("back", retryCount=0)
    define_workflow("order", simple("pay"))
    define_workflow("refund", simple("back"))
    first = start_run("order", correlation_id="4711")
    clock.advance(seconds=10)
    second = start_run("refund")
    claim_and_report("back", "FAILED")
    return {"first": first.pk, "second": second.pk, "between": clock.now() - 5_000}


def select_names(runs, selection) -> set[str]:
    found = set(selections.selected_runs(selection).values_list("pk", flat=True))
    return {name for name, id in runs.items() if id in found}


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ({}, {"first", "second"}),
        ({"definition": "order"}, {"first"}),
        ({"definition": "refund", "version": 2}, set()),
        ({"status": ["RUNNING", "PAUSED"]}, {"first"}),
        ({"correlation_id": "4711"}, {"first"}),
        ({"search": "refund"}, {"second"}),
        ({"search": "workflowType = 'order'"}, {"first"}),
        ({"started_by": "ann"}, {"first", "second"}),
        ({"status": [], "definition": ""}, {"first", "second"}),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_each_field_selects(runs, selection, expected):
    assert select_names(runs, selection) == expected


def test_times_and_ids_are_selectable(runs):
    assert select_names(runs, {"started_since": runs["between"]}) == {"second"}
    assert select_names(runs, {"started_before": runs["between"]}) == {"first"}
    assert select_names(runs, {"ended_since": runs["between"]}) == {"second"}
    assert select_names(runs, {"ids": [runs["first"]]}) == {"first"}


@pytest.mark.parametrize("most", [0, 20_000], ids=["more ended runs than are searched", "few ended runs"])
def test_a_filter_by_end_and_duration_is_exact_for_any_number_of_runs(runs, monkeypatch, most):
    monkeypatch.setattr(selections, "SEARCHED_ROWS", most)
    ended = Run.objects.get(pk=runs["second"]).ended_at

    assert select_names(runs, {"ended_since": ended, "least_ms": 0}) == {"second"}
    assert select_names(runs, {"ended_since": 0, "ended_before": ended + 1, "most_ms": 60_000}) == {"second"}
    assert select_names(runs, {"ended_before": ended, "least_ms": 0}) == set()
    assert select_names(runs, {"ended_since": ended + 1, "task": "back"}) == set()
    assert select_names(runs, {"ended_before": ended + 1, "task": "pay"}) == set()


def test_every_field_has_a_label(runs):
    assert selections.FILTERS.keys() == selections.DESCRIPTIONS.keys()
    assert (
        selections.describe_selection({"definition": "order", "status": ["FAILED"]})
        == "runs of order, with status FAILED"
    )
    assert selections.describe_selection({}) == "all runs"


@pytest.mark.parametrize(
    "selection",
    [
        {"x": 1},
        {"status": "FAILED"},
        {"version": True},
        {"started_since": "now"},
        {"most_ms": 2**63},
        {"version": -(2**64)},
    ],
)
def test_invalid_values_are_rejected(clock, selection):
    with pytest.raises(Invalid):
        selections.selected_runs(selection)
    assert not Run.objects.exists()
