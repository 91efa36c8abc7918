"""Chains of runs that start one another without waiting: they stop at the limit, unless they are slow."""

from conductor_app.core.child_run import CHAIN_MS, depth_of_started, require_depth_to_start
from conductor_app.core.errors import StepRefused
from conductor_app.models import Run
from tests.builders import definition, start_workflow
from tests.scenario import Scenario, register_definitions


def test_a_workflow_that_starts_itself_at_once_stops_at_the_limit_with_the_reason(clock, settings):
    settings.CONDUCTOR_MAX_WORKFLOW_DEPTH = 5

    scenario = Scenario(clock, start_workflow("again", name="order", version=1))
    scenario.sweep() if hasattr(scenario, "sweep") else None

    last = Run.objects.order_by("-depth").first()
    assert (last.depth, last.status) == (5, "FAILED")
    assert "5 workflows have started one another" in last.reason
    assert Run.objects.count() == 6
