"""Retention of finished runs: the sweep removes exactly the runs that the preview lists."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.core.errors import Invalid, NotFound
from conductor_app.processes import sweeps
from conductor_app.runs.commands import retention
from conductor_app.runs.models import Run
from conductor_app.runs.queries.retention import growth_by_definition, preview_removal, retention_policies
from tests.builders import definition, step
from tests.scenario import ACTOR, Scenario, register_definitions, run_commit_hooks

pytestmark = pytest.mark.django_db
DAY = 86_400


@pytest.fixture
def scenario(clock) -> Scenario:
    """Create two completed orders, one failed order and a refund, and another order a month later."""
    scenario = Scenario(clock, step("pay"))
    register_definitions(definition(step("pay"), name="refund"))
    for name in ("order", "order", "refund"):
        scenario.starts(name)
        clock.advance(seconds=1)
    for _ in range(2):
        scenario.worker("pay").completes()
    scenario.worker("pay").fails()
    scenario.worker("pay").completes()
    clock.advance(seconds=31 * DAY)
    scenario.starts("order")
    return scenario


def count_runs() -> dict[str, int]:
    return {name: Run.objects.filter(name=name).count() for name in ("order", "refund")}


def prune_runs() -> int:
    with run_commit_hooks():
        return sweeps.prune_finished(500)


def preview_counts(clock) -> dict[str, int]:
    known = retention_policies()
    return {policy.definition: preview_removal(policy, known, clock.now()).count for policy in known}


def test_without_a_policy_the_setting_decides(scenario, clock, settings):
    assert preview_counts(clock) == {"": 0}
    assert prune_runs() == 0

    settings.CONDUCTOR_RETENTION_DAYS = 30
    assert preview_counts(clock) == {"": 4}
    assert prune_runs() == 4


def test_the_policy_of_a_definition_overrides_the_default_policy(scenario, clock):
    retention.save_policy("", 30, 30, 0, ACTOR)
    retention.save_policy("order", 30, 90, 0, ACTOR)

    assert preview_counts(clock) == {"order": 2, "": 1}
    assert prune_runs() == 3
    assert count_runs() == {"order": 2, "refund": 0}
    assert AuditEntry.objects.filter(object_id="order", object_type="retention policy").exists()
    assert preview_counts(clock) == {"order": 0, "": 0}


def test_the_newest_runs_can_be_kept_at_any_age(scenario, clock):
    retention.save_policy("order", 1, 1, 3, ACTOR)

    assert preview_counts(clock)["order"] == 1
    assert prune_runs() == 1
    assert count_runs() == {"order": 3, "refund": 1}


def test_open_runs_are_never_removed_and_zero_days_are_for_ever(scenario, clock):
    retention.save_policy("", 0, 1, 0, ACTOR)

    assert prune_runs() == 1
    assert Run.objects.filter(status="FAILED").count() == 0
    assert Run.objects.filter(status="RUNNING").count() == 1


def test_a_sweep_removes_at_most_its_limit(scenario, clock):
    retention.save_policy("", 1, 1, 0, ACTOR)

    assert len(list(retention.runs_to_remove(3))) == 3


def test_invalid_parameters_are_refused(db):
    for numbers in ((-1, 0, 0), (0, 10**6, 0), (0, 0, 10**6)):
        with pytest.raises(Invalid):
            retention.save_policy("order", *numbers, ACTOR)
    with pytest.raises(NotFound):
        retention.delete_policy("order", ACTOR)


def test_growth_is_measured_on_the_newest_runs(scenario, clock):
    found = {each.definition: each.count for each in growth_by_definition(clock.now())}

    assert found == {"order": 4, "refund": 1}
