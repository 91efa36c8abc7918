"""Sub-workflows that begin in the transaction of their parent, and those that begin by a message after it."""

from dataclasses import replace

import pytest

from conductor_app.core import commands
from conductor_app.core.expressions import patterns
from conductor_app.runs.commands import change
from conductor_app.runs.commands.change import RunCommand, change_run
from conductor_app.runs.commands.start import StartRequest, start_run
from conductor_app.runs.models import HistoryEntry, Message, Run
from conductor_app.runs.store import loading, outbox
from tests.builders import definition, dynamic_fork, inline, noop, step, sub_workflow
from tests.scenario import ACTOR, Scenario, register_definitions

CHILD = definition(step("x"), name="child")
MIDDLE = definition(sub_workflow("inner"), name="middle")


@pytest.fixture(autouse=True)
def few_samples(settings):
    """No run counts the runs of its tree, so that the ids of runs do not matter."""
    settings.CONDUCTOR_MAX_OPEN_DESCENDANTS = 0


def start_without_delivery(name: str) -> None:
    """Start a run, and deliver no message, as if the process ended right after the commit."""
    start_run(StartRequest(name), ACTOR)


def children() -> list[tuple[int, bool]]:
    """Return the revision of each child, and whether it has begun."""
    return [(run.revision, run.next_seq > 1) for run in Run.objects.exclude(parent_id="")]


def test_a_child_and_its_child_begin_in_the_transaction_of_their_parent(clock, db):
    register_definitions(CHILD, MIDDLE, definition(sub_workflow("s", "middle"), name="top"))
    start_without_delivery("top")

    assert children() == [(1, True), (1, True)]
    assert HistoryEntry.objects.count() == 3
    assert not Message.objects.exists()


@pytest.mark.parametrize(
    "child",
    [
        definition(step("x"), name="child", rateLimitConfig={"rateLimitKey": "k", "concurrentExecLimit": 1}),
        definition(inline("x", "Math.max(1, 2)"), name="child"),
    ],
    ids=["rate limit", "script"],
)
def test_a_child_that_needs_more_than_its_definition_begins_by_a_message(clock, db, child):
    register_definitions(child, definition(sub_workflow("s"), name="top"))
    start_without_delivery("top")

    assert children() == [(0, False)]
    assert list(Message.objects.values_list("subject", flat=True)) == ["begin"]


def test_a_child_that_looks_at_its_tree_begins_by_a_message(clock, db, monkeypatch):
    monkeypatch.setattr(loading, "CHECKED_DEPTH", 1)
    register_definitions(CHILD, definition(sub_workflow("s"), name="top"))
    start_without_delivery("top")

    assert children() == [(0, False)]


def test_more_children_than_fit_into_a_transaction_begin_by_messages(clock, db, monkeypatch):
    monkeypatch.setattr(change, "MAX_CHILDREN", 2)
    inputs = {"forkTaskInputs": [{}, {}, {}], "forkTaskWorkflow": "child"}
    register_definitions(CHILD, definition(*dynamic_fork(inputs=inputs), name="top"))
    start_without_delivery("top")

    assert sorted(children()) == [(0, False), (1, True), (1, True)]
    assert Message.objects.count() == 1


def test_runs_with_many_tasks_begin_in_transactions_of_their_own(clock, db, monkeypatch):
    monkeypatch.setattr(change, "MAX_EFFECTS", 2)
    inputs = {"forkTaskInputs": [{}, {}, {}, {}], "forkTaskWorkflow": "child"}
    register_definitions(CHILD, definition(*dynamic_fork(inputs=inputs), name="top"))
    start_without_delivery("top")

    assert sorted(children()) == [(0, False), (0, False), (1, True), (1, True)]


def test_the_runs_that_begin_with_a_decision_share_its_time_for_patterns(clock, db, monkeypatch):
    budgets = set()
    matches = patterns.BacktrackingPattern.matches

    def record(pattern, text, budget):
        budgets.add(id(patterns._shared.get()))
        return matches(pattern, text, budget)

    monkeypatch.setattr(patterns.BacktrackingPattern, "matches", record)
    path = "${workflow.input.l[?(@.s =~ /(?=a)a+/)]}"
    child = definition(step("x", inputs={"p": path}), name="child")
    inputs = {"forkTaskInputs": [{"l": [{"s": "aa"}]}] * 3, "forkTaskWorkflow": "child"}
    register_definitions(child, definition(*dynamic_fork(inputs=inputs), name="top"))
    start_without_delivery("top")

    assert sorted(children()) == [(1, True)] * 3
    assert budgets
    assert len(budgets) == 1


def test_a_child_that_cannot_be_decided_fails_alone_and_then_its_parent(clock, db, monkeypatch):
    decide = change.apply_command

    def fail_child(run, *rest):
        if run.definition.name == "child" and run.is_open and not run.has_begun and rest[0] is change.no_command:
            raise ZeroDivisionError
        return decide(run, *rest)

    monkeypatch.setattr(change, "apply_command", fail_child)
    scenario = Scenario(clock, sub_workflow("s"), others=[CHILD])

    assert (scenario.child("s").status, scenario.status) == ("FAILED", "FAILED")


def test_a_child_that_ends_in_its_first_decision_completes_its_parent(clock):
    scenario = Scenario(clock, sub_workflow("s"), others=[definition(noop("n"), name="child")])

    assert (scenario.child("s").status, scenario.status) == ("COMPLETED", "COMPLETED")


def test_a_message_that_another_process_has_handled_changes_nothing(clock):
    scenario = Scenario(clock, step("a"))
    [sent] = outbox.send_all([Message(to=scenario.id, subject="begin", sent_at=0, due_at=0)])
    command = RunCommand(scenario.id, commands.pause_run, ACTOR, consumes=sent.pk)

    outbox.consume(sent.pk)
    assert (change_run(command), scenario.status) == ((), "RUNNING")

    [again] = outbox.send_all([Message(to=scenario.id, subject="begin", sent_at=0, due_at=0)])
    assert change_run(replace(command, consumes=again.pk))
    assert (scenario.status, Message.objects.count()) == ("PAUSED", 0)
