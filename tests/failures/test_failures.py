"""Failures become groups: written with the failing attempt, counted by the sweep, resolved by people."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.core.errors import Conflict, Invalid, NotAllowedInState, NotFound
from conductor_app.failures import commands as failure_groups
from conductor_app.failures.models import Failure, FailureGroup, HourlyFailureCount
from conductor_app.runs.commands import control
from tests.builders import definition, fork, noop, policy, step, sub_workflow, terminate
from tests.runs.test_statements import Counted
from tests.scenario import ACTOR, Scenario, register_definitions, run_commit_hooks

pytestmark = pytest.mark.django_db


def failing(clock, *reasons: str, worker: str = "w7@41", **more) -> Scenario:
    """Return runs that failed for these reasons, one each."""
    scenario = Scenario(clock, step("pay"), **more)
    for _ in reasons[1:]:
        scenario.starts("order")
    for reason in reasons:
        scenario.worker("pay", worker).fails(reason)
    return scenario


def groups() -> dict[str, tuple[int, str]]:
    failure_groups.group_failures(1000)
    return {group.message: (group.count, group.state) for group in FailureGroup.objects.not_merged()}


def test_failures_of_one_cause_are_one_group(clock):
    failing(clock, "502 from gateway 1", "502 from gateway 2", "no funds for order 4711")

    assert groups() == {"502 from gateway <n>": (2, "OPEN"), "no funds for order <n>": (1, "OPEN")}


def test_a_failure_is_counted_exactly_one_time(clock):
    failing(clock, "no luck")

    assert [failure_groups.group_failures(1000) for _ in range(3)] == [1, 0, 0]
    assert groups() == {"no luck": (1, "OPEN")}


def test_the_sweep_groups_within_its_pass(clock):
    scenario = failing(clock, "no luck")

    scenario.later(1)

    assert FailureGroup.objects.get().count == 1


def test_each_failed_attempt_is_counted_by_version_worker_and_build(clock):
    scenario = Scenario(clock, step("pay", policy=policy(retries=1)))
    scenario.worker("pay", "w7@41").fails("no luck")
    clock.advance(seconds=3600)
    scenario.worker("pay", "w8@42").fails("no luck")

    assert groups() == {"no luck": (2, "OPEN")}
    assert sorted(HourlyFailureCount.objects.values_list("version", "build", "count")) == [(1, "41", 1), (1, "42", 1)]
    assert set(Failure.objects.values_list("worker", "queue", "ref")) == {
        ("w7@41", "pay", "pay"),
        ("w8@42", "pay", "pay"),
    }


def test_a_lost_lease_is_a_failure(clock):
    scenario = Scenario(clock, step("pay", policy=policy(lease_seconds=20)))
    scenario.worker("pay").polls()

    scenario.later(21)

    assert Failure.objects.get().attempt_id == scenario.task("pay").id


def test_consequences_of_a_failure_are_not_counted(clock):
    leaf = definition(step("x"), name="leaf")
    scenario = Scenario(clock, *fork([sub_workflow("s", "leaf")], [step("a")]), others=[leaf])
    scenario.worker("x").fails("deep down")

    assert [(f.definition, f.ref) for f in Failure.objects.all()] == [("leaf", "x")]


def test_a_run_that_ends_badly_by_itself_is_a_failure_without_a_task(clock):
    scenario = Scenario(clock, noop("n"), terminate("t", "FAILED", "not today"))

    assert groups() == {"not today": (1, "OPEN")}
    assert Failure.objects.get().run_id == scenario.id


def test_a_canceled_task_and_a_terminated_run_are_no_failures(clock):
    scenario = Scenario(clock, step("a"))
    scenario.terminate("enough")

    assert not Failure.objects.exists()


def test_a_failure_costs_one_statement_and_a_success_none(clock):
    scenario = Scenario(clock, step("a", policy=policy(retries=1)), step("b"))
    scenario.worker("a").polls()
    with Counted() as failed:
        scenario.worker("a").fails()

    assert sum("conductor_failure" in sql for sql in failed.statements) == 1
    assert failed.count <= 8, failed.statements
    scenario.worker("a").polls()
    with Counted() as completed:
        scenario.worker("a").completes()
    assert not any("conductor_failure" in sql for sql in completed.statements)


def test_an_acknowledged_group_stays_acknowledged_and_a_resolved_one_regresses(clock):
    scenario = failing(clock, "no luck")
    groups()
    group = FailureGroup.objects.get()

    failure_groups.transition_group(group.pk, "acknowledge", ACTOR, "looking")
    scenario.starts("order")
    scenario.worker("pay").fails("no luck")
    assert groups() == {"no luck": (2, "ACKNOWLEDGED")}

    failure_groups.transition_group(group.pk, "resolve", ACTOR, "fixed the gateway")
    scenario.starts("order")
    scenario.worker("pay").fails("no luck")
    assert groups() == {"no luck": (3, "REGRESSED")}
    assert [entry.reason for entry in AuditEntry.objects.filter(object_type="failure group").order_by("id")] == [
        "looking",
        "fixed the gateway",
    ]


def test_a_group_resolved_in_a_build_ignores_failures_of_earlier_builds(clock):
    scenario = failing(clock, "no luck", worker="w7@41")
    groups()
    failure_groups.transition_group(FailureGroup.objects.get().pk, "resolve", ACTOR, build="42")

    scenario.starts("order")
    scenario.worker("pay", "w7@41").fails("no luck")
    assert groups() == {"no luck": (2, "RESOLVED")}

    scenario.starts("order")
    scenario.worker("pay", "w7@42").fails("no luck")
    assert groups() == {"no luck": (3, "REGRESSED")}


def test_a_group_resolved_in_a_version_ignores_failures_of_earlier_versions(clock):
    scenario = failing(clock, "no luck")
    groups()
    failure_groups.transition_group(FailureGroup.objects.get().pk, "resolve", ACTOR, version=2)

    scenario.starts("order")
    scenario.worker("pay").fails("no luck")
    assert groups() == {"no luck": (2, "RESOLVED")}

    register_definitions(definition(step("pay"), version=2))
    scenario.starts("order")
    scenario.worker("pay").fails("no luck")
    assert groups() == {"no luck": (3, "REGRESSED")}


def test_groups_can_be_merged_and_separated(clock):
    scenario = failing(clock, "no luck", "no funds")
    groups()
    luck, funds = FailureGroup.objects.order_by("message").reverse()

    failure_groups.merge_groups(luck.pk, funds.pk, ACTOR, "the same gateway")
    scenario.starts("order")
    scenario.worker("pay").fails("no luck")
    assert groups() == {"no funds": (3, "OPEN")}

    failure_groups.split_group(luck.pk, ACTOR)
    assert groups() == {"no funds": (2, "OPEN"), "no luck": (1, "OPEN")}


def test_invalid_parameters_are_refused(clock):
    failing(clock, "no luck", "no funds")
    groups()
    one, other = FailureGroup.objects.order_by("pk")
    failure_groups.merge_groups(one.pk, other.pk, ACTOR)

    with pytest.raises(NotAllowedInState):
        failure_groups.transition_group(other.pk, "recur", ACTOR)
    with pytest.raises(NotFound):
        failure_groups.transition_group(-1, "resolve", ACTOR)
    with pytest.raises(Conflict):
        failure_groups.merge_groups(one.pk, other.pk, ACTOR)
    with pytest.raises(Invalid):
        failure_groups.merge_groups(other.pk, one.pk, ACTOR)
    with pytest.raises(Conflict):
        failure_groups.split_group(other.pk, ACTOR)


def test_removing_a_run_deletes_its_failures_and_keeps_the_counts(clock):
    scenario = failing(clock, "no luck")
    groups()

    with run_commit_hooks():
        control.remove_run(scenario.id, ACTOR)

    assert not Failure.objects.exists()
    assert FailureGroup.objects.get().count == 1
