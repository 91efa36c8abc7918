"""Group commit: reports that wait at the same time share a transaction, and none affects another."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from threading import Event

import pytest
from django.db import connection, transaction

from conductor_app.core.decide import Report, apply_report
from conductor_app.core.errors import AlreadyResolved
from conductor_app.notifications import LOCAL_CALLER
from conductor_app.runs.commands import group_commit
from conductor_app.runs.commands.change import GROUPS, commit_group
from conductor_app.runs.commands.group_commit import GroupCommit, GroupedChange, GroupedCommand
from conductor_app.runs.models import HistoryEntry
from conductor_app.runs.store import loading as store
from conductor_app.tasks.commands.claims import NextClaim
from tests.builders import step
from tests.runs.held_groups import HeldGroups
from tests.scenario import ACTOR, Scenario

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="On SQLite, one transaction writes at a time."),
]


@pytest.fixture
def scenarios(clock) -> list[Scenario]:
    """Return runs whose first task is claimed."""
    found = [Scenario(clock, step("a"), step("b"), name=f"order{number}") for number in range(4)]
    for _ in found:
        found[0].worker("a").polls()
    return found


def completion(scenario: Scenario) -> GroupedChange:
    attempt = scenario.task("a").id
    return GroupedChange(scenario.id, attempt, apply_report(attempt, Report("COMPLETED")), ACTOR, "")


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    monkeypatch.setattr(group_commit, "MAX_ACTIVE_GROUPS", 1)
    monkeypatch.setattr(group_commit, "MAX_WAIT_SECONDS", 60)


def test_changes_that_wait_share_a_transaction(scenarios):
    held = HeldGroups(count=3)

    results = held.change_all([completion(scenario) for scenario in scenarios])

    assert held.sizes == [1, 3]
    assert all(result.result() for result in results)
    for scenario in scenarios:
        assert scenario.statuses == {"a": "COMPLETED", "b": "SCHEDULED"}
        assert HistoryEntry.objects.filter(run_id=scenario.id, reason="").count() == 2


def test_a_refused_report_does_not_affect_the_others_of_its_group(scenarios):
    late = completion(scenarios[1])
    scenarios[1].terminate()

    first, refused, *others = HeldGroups(count=3).change_all(
        [completion(scenarios[0]), late, completion(scenarios[2]), completion(scenarios[3])]
    )

    with pytest.raises(AlreadyResolved):
        refused.result()
    assert all(result.result() for result in (first, *others))
    assert [scenario.task("a").status for scenario in scenarios] == ["COMPLETED", "CANCELED", "COMPLETED", "COMPLETED"]


def test_two_reports_on_one_run_are_in_different_groups(scenarios):
    held = HeldGroups(count=2)
    change = completion(scenarios[1])

    _, *results = held.change_all([completion(scenarios[0]), change, change])

    assert held.sizes == [1, 1, 1]
    assert sorted(type(result.exception()) is AlreadyResolved for result in results) == [False, True]


def test_each_member_claims_a_task_of_its_own(scenarios, clock):
    extra = [Scenario(clock, step("a"), name=f"more{number}") for number in range(3)]
    changes, claims = zip(*map(completion_with_claim, scenarios), strict=True)

    HeldGroups(count=3).change_all(changes)

    claimed = [attempt for claim in claims for attempt in claim._take_claimed()]
    assert sorted(attempt.run_id for attempt in claimed) == sorted(scenario.id for scenario in extra)
    assert {scenario.task("a").worker for scenario in extra} == {attempt.worker for attempt in claimed}
    assert len({attempt.worker for attempt in claimed}) == 3


def completion_with_claim(scenario: Scenario) -> tuple[GroupedChange, NextClaim]:
    change = completion(scenario)
    claim = NextClaim(change.attempt_id, f"worker of {scenario.id}", lambda queue, domain: True, LOCAL_CALLER)
    return replace(change, final_query=claim.final_query), claim


def test_a_group_that_fails_claims_nothing(scenarios, clock, monkeypatch):
    waiting = Scenario(clock, step("a"), name="more")
    change, claim = completion_with_claim(scenarios[0])
    before = store.lock_available
    monkeypatch.setattr(
        store,
        "lock_available",
        lambda attempts: {id: store.fast_replace(run, revision=99) for id, run in before(attempts).items()},
    )

    assert GroupCommit(commit_group).change(change) is None

    assert claim._take_claimed() == []
    assert (scenarios[0].task("a").status, waiting.task("a").status) == ("LEASED", "PENDING")


def test_a_run_that_another_transaction_has_locked_is_left_to_its_own_transaction(scenarios):
    members = [GroupedCommand(completion(scenario)) for scenario in scenarios[:2]]

    with locked(scenarios[0]):
        commit_group(members)

    assert members[0].saved is None
    assert members[1].saved is not None
    assert scenarios[0].task("a").status == "LEASED"
    assert scenarios[1].task("a").status == "COMPLETED"


@contextmanager
def locked(scenario: Scenario):
    """Hold the lock of a run in another session."""
    is_locked, release = Event(), Event()

    def hold() -> None:
        with transaction.atomic():
            store.load_for_update(scenario.id)
            is_locked.set()
            release.wait(60)
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(hold)
        is_locked.wait(60)
        try:
            yield
        finally:
            release.set()
        future.result()


def test_the_members_of_a_failed_group_are_left_to_their_own_transactions(scenarios):
    def lose(members: Sequence[GroupedCommand]) -> None:
        commit_group(members)
        raise ConnectionError

    held = HeldGroups(count=0)
    held.commit = lose

    [result] = held.change_all([completion(scenarios[0])])

    assert result.result() is None


def test_a_conflict_in_a_group_changes_none_of_its_runs(scenarios, monkeypatch):
    members = [GroupedCommand(completion(scenario)) for scenario in scenarios[:2]]
    before = store.lock_available

    def outdated(attempts):
        found = before(attempts)
        scenario = scenarios[1].id
        return found | {scenario: store.fast_replace(found[scenario], revision=99)}

    monkeypatch.setattr(store, "lock_available", outdated)

    held = HeldGroups(count=0)
    held.groups._commit = lambda _: commit_group(members)
    assert held.groups.change(completion(scenarios[2])) is None

    assert [scenario.task("a").status for scenario in scenarios[:2]] == ["LEASED", "LEASED"]


def test_a_change_does_not_wait_longer_for_a_slow_group(scenarios, monkeypatch):
    monkeypatch.setattr(group_commit, "MAX_WAIT_SECONDS", 0.001)
    has_begun, release = Event(), Event()

    def commit(members: Sequence[GroupedCommand]) -> None:
        has_begun.set()
        release.wait(60)

    groups = GroupCommit(commit)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(groups.change, completion(scenarios[0]))
        has_begun.wait(60)
        assert groups.change(completion(scenarios[1])) is None
        release.set()
    assert slow.result() is None


def test_reports_of_workers_use_groups_and_commands_with_an_audit_entry_do_not(scenarios, monkeypatch):
    changes = []
    monkeypatch.setattr(GROUPS.value, "change", lambda change: changes.append(change.run_id))

    scenarios[0].worker("a", "w").polls()
    scenarios[3].reports("a")
    scenarios[2].pause()

    assert changes == [scenarios[3].id]
