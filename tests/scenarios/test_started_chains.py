"""Chains of runs that start one another without waiting: they stop at the limit, unless they are slow."""

from conductor_app.events.commands import handlers as event_handlers
from conductor_app.events.models import EventAction
from conductor_app.runs.models import Run
from tests.builders import event, start_workflow, wait
from tests.scenario import Scenario


def test_a_workflow_that_starts_itself_at_once_stops_at_the_limit_with_the_reason(clock, settings):
    settings.CONDUCTOR_MAX_WORKFLOW_DEPTH = 5

    Scenario(clock, start_workflow("again", name="order", version=1))

    last = Run.objects.order_by("-depth").first()
    assert (last.depth, last.status) == (5, "FAILED")
    assert "5 workflows have started one another" in last.reason
    assert Run.objects.count() == 6


def test_a_workflow_that_starts_itself_slowly_has_no_limit(clock, settings):
    settings.CONDUCTOR_MAX_WORKFLOW_DEPTH = 2
    scenario = Scenario(clock, wait("pause", duration="1 second"), start_workflow("again", name="order", version=1))

    for _ in range(5):
        scenario.later(1)

    assert set(Run.objects.values_list("depth", flat=True)) == {0}
    assert Run.objects.count() == 6


def start_again_at(name: str) -> None:
    action = {"action": "start_workflow", "start_workflow": {"name": "order"}}
    event_handlers.create_handlers([{"name": "h", "event": name, "active": True, "actions": [action]}], "ann")


def test_an_event_that_starts_its_own_publisher_at_once_stops_at_the_limit_with_the_reason(clock, settings):
    settings.CONDUCTOR_MAX_WORKFLOW_DEPTH = 5
    start_again_at("conductor:order:done")

    Scenario(clock, event("done", "conductor"))

    assert sorted(Run.objects.values_list("depth", flat=True)) == [0, 1, 2, 3, 4, 5]
    last = EventAction.objects.get(status="FAILED")
    assert last.error.startswith("5 workflows have started one another")


def test_an_event_that_starts_its_own_publisher_slowly_has_no_limit(clock, settings):
    settings.CONDUCTOR_MAX_WORKFLOW_DEPTH = 2
    start_again_at("conductor:order:done")
    scenario = Scenario(clock, wait("pause", duration="10 seconds"), event("done", "conductor"))

    for _ in range(5):
        scenario.later(10)

    assert set(Run.objects.values_list("depth", flat=True)) == {0}
    assert Run.objects.count() == 6
