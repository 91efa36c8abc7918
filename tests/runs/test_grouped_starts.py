"""Starts that arrive at the same time share a transaction, and none affects another."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest
from django.db import connection

from conductor_app.core.decide import Report
from conductor_app.core.errors import Conflict, InputInvalid, Invalid, NotFound
from conductor_app.definitions.commands import delete_workflow
from conductor_app.definitions.store import save_definition
from conductor_app.runs.commands import change as change_module
from conductor_app.runs.commands import group_commit
from conductor_app.runs.commands.change import GROUPS, commit_group
from conductor_app.runs.commands.group_commit import GroupCommit, GroupedCommand
from conductor_app.runs.commands.start import StartRequest, start_run
from conductor_app.runs.models import HistoryEntry, Run
from conductor_app.tasks.commands.claims import claim_tasks
from conductor_app.tasks.commands.reports import report_task
from tests.builders import definition, step, sub_workflow
from tests.db.round_trips import RoundTrips
from tests.runs.held_groups import HeldGroups
from tests.scenario import ACTOR, RunView, register_definitions

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="On SQLite, one transaction writes at a time."),
]


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    monkeypatch.setattr(group_commit, "MAX_ACTIVE_GROUPS", 1)
    monkeypatch.setattr(group_commit, "MAX_WAIT_SECONDS", 60)


@pytest.fixture
def order(clock):
    """Register a workflow that was started once, so that its definition is known."""
    register_definitions(definition(step("a"), name="order"))
    start_run(StartRequest("order"), ACTOR)
    Run.objects.all().delete()


def start_all(requests: Sequence[StartRequest], monkeypatch) -> tuple[HeldGroups, list]:
    """Start the first run; the others share the next transaction. Returns the groups and the futures of the ids."""
    held = HeldGroups(count=len(requests) - 1)
    monkeypatch.setattr(GROUPS, "value", held.groups)
    return held, held.call_all([partial(start_run, request, ACTOR) for request in requests])


def test_starts_that_wait_share_a_transaction(order, monkeypatch):
    held, results = start_all([StartRequest("order", input={"number": number}) for number in range(4)], monkeypatch)

    assert held.sizes == [1, 3]
    assert [Run.objects.get(pk=result.result()).input["number"] for result in results] == [0, 1, 2, 3]
    assert [RunView(result.result()).statuses for result in results] == [{"a": "SCHEDULED"}] * 4
    assert HistoryEntry.objects.count() == 4
    assert len(claim_tasks("a", worker="w", count=9)) == 4


def test_two_starts_with_one_key_are_in_different_groups_and_start_one_run(order, monkeypatch):
    keyed = StartRequest("order", idempotency_key="k", idempotency_strategy="RETURN_EXISTING")

    held, results = start_all([StartRequest("order"), keyed, keyed, replace(keyed, idempotency_key="l")], monkeypatch)

    first, second, same, other = (result.result() for result in results)
    assert second == same and len({first, second, other}) == 3
    assert held.sizes[:2] == [1, 2]
    assert Run.objects.count() == 3


def test_a_key_that_another_process_uses_meanwhile_is_refused_without_harm_to_the_others(order, monkeypatch):
    keyed = StartRequest("order", idempotency_key="k")

    def commit(members: Sequence[GroupedCommand]) -> None:
        if len(members) > 1:
            Run.objects.filter(pk=first.pk).update(idempotency_key="k")
        commit_group(members)

    first = Run.objects.get(pk=start_run(StartRequest("order"), ACTOR))
    held = HeldGroups(count=3)
    held.commit = commit
    monkeypatch.setattr(GROUPS, "value", held.groups)
    _, refused, *others = held.call_all(
        [partial(start_run, request, ACTOR) for request in (StartRequest("order"), keyed, *[StartRequest("order")] * 2)]
    )

    with pytest.raises(Conflict, match=first.pk):
        refused.result()
    assert [RunView(result.result()).statuses for result in others] == [{"a": "SCHEDULED"}] * 2
    assert Run.objects.count() == 4


def test_runs_over_a_limit_are_held_although_their_starts_arrive_together(order, clock, monkeypatch):
    limit = {"rateLimitKey": "k", "concurrentExecLimit": 1}
    register_definitions(definition(step("a"), name="limited", rateLimitConfig=limit))
    start_run(StartRequest("limited"), ACTOR)
    shared: list[str] = []
    monkeypatch.setattr(GROUPS.value, "change", lambda change: shared.append(change.run_id))

    ids = [start_run(StartRequest("limited"), ACTOR) for _ in range(2)]

    assert set(Run.objects.filter(pk__in=ids).values_list("is_held", flat=True)) == {True}
    assert shared == [], "the count would not include the starts of its own transaction"


def test_a_sub_workflow_begins_in_the_transaction_of_the_group(order, monkeypatch):
    register_definitions(definition(sub_workflow("child", "order"), name="parent"))
    start_run(StartRequest("parent"), ACTOR)
    Run.objects.all().delete()

    held, results = start_all([StartRequest("order"), StartRequest("parent"), StartRequest("parent")], monkeypatch)

    assert held.sizes == [1, 2]
    parents = [result.result() for result in results[1:]]
    assert sorted(Run.objects.exclude(parent_id="").values_list("parent_id", flat=True)) == sorted(parents)
    assert len(claim_tasks("a", worker="w", count=9)) == 3


def test_a_start_that_cannot_be_decided_does_not_affect_the_others(order, monkeypatch):
    register_definitions(definition(step("b"), name="broken"))
    decide = change_module.apply_command

    def decide_or_fail(run, *arguments):
        if run.definition.name == "broken":
            raise KeyError("b")
        return decide(run, *arguments)

    monkeypatch.setattr(change_module, "apply_command", decide_or_fail)

    held, results = start_all([StartRequest("order"), StartRequest("broken"), StartRequest("order")], monkeypatch)

    assert held.sizes == [1, 2]
    with pytest.raises(Invalid, match="cannot decide the first steps"):
        results[1].result()
    assert RunView(results[2].result()).statuses == {"a": "SCHEDULED"}


def test_starts_and_reports_share_a_transaction(order, clock, monkeypatch):
    reported = start_run(StartRequest("order"), ACTOR)
    [task] = claim_tasks("a", worker="w")
    held = HeldGroups(count=2)
    monkeypatch.setattr(GROUPS, "value", held.groups)

    _, started, accepted = held.call_all(
        [
            partial(start_run, StartRequest("order"), ACTOR),
            partial(start_run, StartRequest("order"), ACTOR),
            partial(report_task, reported, task.id, Report("COMPLETED"), "w"),
        ]
    )

    assert held.sizes == [1, 2]
    assert accepted.result() and RunView(reported).status == "COMPLETED"
    assert RunView(started.result()).statuses == {"a": "SCHEDULED"}


def test_the_labels_and_the_audit_entry_of_a_start_need_a_transaction_of_their_own(order, monkeypatch):
    shared: list[str] = []
    monkeypatch.setattr(GROUPS.value, "change", lambda change: shared.append(change.run_id))

    start_run(StartRequest("order", labels=("spring",)), ACTOR)
    start_run(StartRequest("order"), ACTOR, within_transaction=lambda run_id: None)
    assert shared == []

    alone = start_run(StartRequest("order"), ACTOR)
    assert shared == [alone]


def test_a_start_whose_group_was_committed_without_a_reply_is_found(order, monkeypatch):
    def lose(members: Sequence[GroupedCommand]) -> None:
        commit_group(members)
        raise ConnectionError

    monkeypatch.setattr(GROUPS, "value", GroupCommit(lose))

    run_id = start_run(StartRequest("order"), ACTOR)

    assert list(Run.objects.values_list("pk", flat=True)) == [run_id]


def test_a_start_takes_one_round_trip(order):
    with RoundTrips() as trips:
        start_run(StartRequest("order"), ACTOR)

    assert trips.count == 1


def test_a_start_uses_the_definition_that_another_process_has_just_saved(order):
    register_definitions(definition(step("b"), name="order"))

    run_id = start_run(StartRequest("order"), ACTOR)

    assert RunView(run_id).statuses == {"b": "SCHEDULED"}
    assert Run.objects.count() == 1


def test_a_start_with_a_definition_of_its_own_uses_no_other_of_the_same_name(order, clock):
    given = save_definition(definition(step("b"), name="order"), clock.now())

    run_id = start_run(StartRequest("order", definition=given), ACTOR)

    assert RunView(run_id).statuses == {"b": "SCHEDULED"}


def test_a_start_of_a_definition_that_another_process_has_just_deleted_is_refused(order):
    delete_workflow("order", 1, ACTOR)

    with pytest.raises(NotFound, match="order"):
        start_run(StartRequest("order"), ACTOR)
    assert not Run.objects.exists()


def test_an_input_is_checked_by_the_schema_that_another_process_has_just_saved(clock):
    def require(field: str) -> None:
        schema = {"name": "s", "version": 1, "type": "JSON", "data": {"type": "object", "required": [field]}}
        register_definitions(definition(step("a"), name="order", inputSchema=schema, enforceSchema=True))

    require("old")
    start_run(StartRequest("order", input={"old": 1}), ACTOR)
    require("new")

    with pytest.raises(InputInvalid):
        start_run(StartRequest("order", input={"old": 1}), ACTOR)
    start_run(StartRequest("order", input={"new": 1}), ACTOR)
    assert Run.objects.count() == 2


def test_a_changed_definition_does_not_affect_the_reports_of_the_group(order, monkeypatch):
    reported = start_run(StartRequest("order"), ACTOR)
    [task] = claim_tasks("a", worker="w")
    register_definitions(definition(step("b"), name="order"))
    held = HeldGroups(count=2)
    monkeypatch.setattr(GROUPS, "value", held.groups)

    _, started, accepted = held.call_all(
        [
            partial(start_run, StartRequest("order"), ACTOR),
            partial(start_run, StartRequest("order"), ACTOR),
            partial(report_task, reported, task.id, Report("COMPLETED"), "w"),
        ]
    )

    assert accepted.result() and RunView(reported).status == "COMPLETED"
    assert RunView(started.result()).statuses == {"b": "SCHEDULED"}
    assert Run.objects.count() == 3
