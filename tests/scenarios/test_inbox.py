"""Inbox of a run, and the steps that consume its messages (execution §8.23, §10.8)."""

import pytest

from conductor_app.core.errors import NotAllowedInState, NotFound, QueueFull
from conductor_app.runs.commands import messages
from conductor_app.runs.models import InboxMessage
from tests.builders import fork, loop, pull, step, switch, terminate
from tests.scenario import Scenario, run_commit_hooks

DAY = 86_400


def send(scenario: Scenario, *numbers: int) -> None:
    for n in numbers:
        with run_commit_hooks():
            messages.send_inbox_message(scenario.id, {"n": n})


def numbers(scenario: Scenario, ref: str) -> list[int]:
    output = scenario.task(ref).output
    assert output["count"] == len(output["messages"])
    return [message["payload"]["n"] for message in output["messages"]]


def test_a_message_completes_the_step_that_waits_for_it(clock):
    scenario = Scenario(clock, pull("next"))
    assert scenario.statuses == {"next": "IN_PROGRESS"}

    send(scenario, 1)

    assert (scenario.status, numbers(scenario, "next")) == ("COMPLETED", [1])
    [message] = scenario.task("next").output["messages"]
    assert (message["workflowId"], message["receivedAt"][-1]) == (scenario.id, "Z")
    assert InboxMessage.objects.count() == 0


def test_messages_are_queued_in_order_for_the_step_that_consumes_them(clock):
    scenario = Scenario(clock, step("a"), pull("some", batchSize=2), pull("rest", batchSize="500"))
    send(scenario, 1, 2, 3)

    scenario.worker("a").completes()

    assert (numbers(scenario, "some"), numbers(scenario, "rest"), scenario.status) == ([1, 2], [3], "COMPLETED")


@pytest.mark.parametrize("blocking", [False, "false"])
def test_a_non_blocking_step_completes_at_once(clock, blocking):
    scenario = Scenario(clock, pull("next", blocking=blocking))

    assert (scenario.status, scenario.output) == ("COMPLETED", {"messages": [], "count": 0})


def test_steps_that_wait_together_receive_messages_in_turn(clock):
    scenario = Scenario(clock, fork([pull("one")], [pull("two")]), step("after"))

    send(scenario, 1)
    assert (numbers(scenario, "one"), scenario.is_waiting_for("two")) == ([1], True)
    send(scenario, 2)

    assert (numbers(scenario, "two"), scenario.is_waiting_for("after")) == ([2], True)


def test_queued_messages_are_shared_among_steps_scheduled_together(clock):
    scenario = Scenario(clock, step("a"), fork([pull("one")], [pull("two")], [pull("three", blocking=False)]))
    send(scenario, 1, 2)

    scenario.worker("a").completes()

    assert (numbers(scenario, "one"), numbers(scenario, "two"), numbers(scenario, "three")) == ([1], [2], [])
    assert scenario.status == "COMPLETED"


def test_a_loop_consumes_message_after_message(clock):
    scenario = Scenario(clock, loop("l", pull("next"), times=3))

    send(scenario, 1, 2, 3)

    assert (scenario.status, [numbers(scenario, f"next__{turn}") for turn in (1, 2, 3)]) == (
        "COMPLETED",
        [[1], [2], [3]],
    )


def test_a_paused_run_consumes_no_messages(clock):
    scenario = Scenario(clock, pull("next"))
    scenario.pause()

    with pytest.raises(NotAllowedInState):
        send(scenario, 1)
    scenario.resume()
    send(scenario, 2)

    assert numbers(scenario, "next") == [2]


def test_a_message_expires_after_a_day(clock):
    scenario = Scenario(clock, step("a"), pull("next"))
    send(scenario, 1)
    scenario.later(DAY - 10)
    send(scenario, 2)
    scenario.later(10)

    scenario.worker("a").completes()

    assert numbers(scenario, "next") == [2]
    assert InboxMessage.objects.count() == 0


def test_expired_messages_do_not_end_a_wait(clock):
    scenario = Scenario(clock, step("a"), pull("next"))
    send(scenario, 1)
    scenario.later(DAY)

    scenario.worker("a").completes()

    assert scenario.is_waiting_for("next")
    assert (scenario.row.inbox, InboxMessage.objects.count()) == (0, 0)


def test_unconsumed_messages_are_deleted_when_the_run_ends(clock):
    scenario = Scenario(clock, step("a"))
    send(scenario, 1)

    scenario.worker("a").completes()

    assert (scenario.status, InboxMessage.objects.count()) == ("COMPLETED", 0)
    with pytest.raises(NotAllowedInState):
        messages.send_inbox_message(scenario.id, {})


def test_the_limit_of_queued_messages_ignores_expired_ones(clock, monkeypatch):
    monkeypatch.setattr(messages, "MAX_MESSAGES", 2)
    scenario = Scenario(clock, step("a"))
    send(scenario, 1, 2)

    with pytest.raises(QueueFull):
        messages.send_inbox_message(scenario.id, {})
    scenario.later(DAY)
    send(scenario, 3)

    assert (scenario.row.inbox, InboxMessage.objects.count()) == (1, 1)


def test_a_message_to_an_unknown_run_is_rejected(db):
    with pytest.raises(NotFound):
        messages.send_inbox_message("nobody", {})


def test_the_sweep_delivers_a_message_whose_wake_up_was_lost(clock):
    scenario = Scenario(clock, pull("next"))
    messages.send_inbox_message(scenario.id, {"n": 1})
    assert scenario.is_waiting_for("next")

    scenario.later(1)

    assert numbers(scenario, "next") == [1]


def test_a_retry_waits_for_another_message_where_the_first_one_ended_the_run(clock):
    ends = switch(
        "way", {"no": [terminate("end", "FAILED", "refused")]}, inputs={"way": "${next.output.messages[0].payload.n}"}
    )
    scenario = Scenario(clock, pull("next"), ends, step("after"))
    with run_commit_hooks():
        messages.send_inbox_message(scenario.id, {"n": "no"})
    assert (scenario.status, scenario.reason) == ("FAILED", "refused")

    scenario.retry()
    assert (scenario.statuses, scenario.attempts("next")) == ({"next": "IN_PROGRESS"}, ["COMPLETED", "IN_PROGRESS"])
    with run_commit_hooks():
        messages.send_inbox_message(scenario.id, {"n": "yes"})

    assert scenario.is_waiting_for("after")


def test_a_rerun_from_the_step_waits_for_another_message(clock):
    scenario = Scenario(clock, pull("next"), step("after"))
    send(scenario, 1)
    scenario.worker("after").completes()

    scenario.rerun("next")
    send(scenario, 2)

    assert (numbers(scenario, "next"), scenario.is_waiting_for("after")) == ([2], True)
