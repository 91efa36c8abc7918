"""Messages to a run, and the steps that take them (execution §8.23, §10.8)."""

import pytest

from conductor_app.core.errors import NotAllowedInState, NotFound, QueueFull
from conductor_app.engine.runs import inbox
from conductor_app.models import InboxMessage
from tests.builders import fork, loop, pull, step, switch, terminate
from tests.story import Story, run_commit_hooks

DAY = 86_400


def send(story: Story, *numbers: int) -> None:
    for n in numbers:
        with run_commit_hooks():
            inbox.send_inbox_message(story.id, {"n": n})


def taken(story: Story, ref: str) -> list[int]:
    output = story.task(ref).output
    assert output["count"] == len(output["messages"])
    return [message["payload"]["n"] for message in output["messages"]]


def test_a_message_completes_the_step_that_waits_for_it(clock):
    story = Story(clock, pull("next"))
    assert story.statuses == {"next": "IN_PROGRESS"}

    send(story, 1)

    assert (story.status, taken(story, "next")) == ("COMPLETED", [1])
    [message] = story.task("next").output["messages"]
    assert (message["workflowId"], message["receivedAt"][-1]) == (story.id, "Z")
    assert InboxMessage.objects.count() == 0


def test_messages_are_queued_in_order_for_the_step_that_consumes_them(clock):
    story = Story(clock, step("a"), pull("some", batchSize=2), pull("rest", batchSize="500"))
    send(story, 1, 2, 3)

    story.worker("a").completes()

    assert (taken(story, "some"), taken(story, "rest"), story.status) == ([1, 2], [3], "COMPLETED")


@pytest.mark.parametrize("blocking", [False, "false"])
def test_a_non_blocking_step_completes_at_once(clock, blocking):
    story = Story(clock, pull("next", blocking=blocking))

    assert (story.status, story.output) == ("COMPLETED", {"messages": [], "count": 0})


def test_steps_that_wait_together_receive_messages_in_turn(clock):
    story = Story(clock, fork([pull("one")], [pull("two")]), step("after"))

    send(story, 1)
    assert (taken(story, "one"), story.is_waiting_for("two")) == ([1], True)
    send(story, 2)

    assert (taken(story, "two"), story.is_waiting_for("after")) == ([2], True)


def test_queued_messages_are_shared_among_steps_scheduled_together(clock):
    story = Story(clock, step("a"), fork([pull("one")], [pull("two")], [pull("three", blocking=False)]))
    send(story, 1, 2)

    story.worker("a").completes()

    assert (taken(story, "one"), taken(story, "two"), taken(story, "three")) == ([1], [2], [])
    assert story.status == "COMPLETED"


def test_a_loop_consumes_message_after_message(clock):
    story = Story(clock, loop("l", pull("next"), times=3))

    send(story, 1, 2, 3)

    assert (story.status, [taken(story, f"next__{turn}") for turn in (1, 2, 3)]) == ("COMPLETED", [[1], [2], [3]])


def test_a_paused_run_consumes_no_messages(clock):
    story = Story(clock, pull("next"))
    story.pause()

    with pytest.raises(NotAllowedInState):
        send(story, 1)
    story.resume()
    send(story, 2)

    assert taken(story, "next") == [2]


def test_a_message_expires_after_a_day(clock):
    story = Story(clock, step("a"), pull("next"))
    send(story, 1)
    story.later(DAY - 10)
    send(story, 2)
    story.later(10)

    story.worker("a").completes()

    assert taken(story, "next") == [2]
    assert InboxMessage.objects.count() == 0


def test_expired_messages_do_not_end_a_wait(clock):
    story = Story(clock, step("a"), pull("next"))
    send(story, 1)
    story.later(DAY)

    story.worker("a").completes()

    assert story.is_waiting_for("next")
    assert (story.row.inbox, InboxMessage.objects.count()) == (0, 0)


def test_unconsumed_messages_are_deleted_when_the_run_ends(clock):
    story = Story(clock, step("a"))
    send(story, 1)

    story.worker("a").completes()

    assert (story.status, InboxMessage.objects.count()) == ("COMPLETED", 0)
    with pytest.raises(NotAllowedInState):
        inbox.send_inbox_message(story.id, {})


def test_the_limit_of_queued_messages_ignores_expired_ones(clock, monkeypatch):
    monkeypatch.setattr(inbox, "MAX_MESSAGES", 2)
    story = Story(clock, step("a"))
    send(story, 1, 2)

    with pytest.raises(QueueFull):
        inbox.send_inbox_message(story.id, {})
    story.later(DAY)
    send(story, 3)

    assert (story.row.inbox, InboxMessage.objects.count()) == (1, 1)


def test_a_message_to_an_unknown_run_is_rejected(db):
    with pytest.raises(NotFound):
        inbox.send_inbox_message("nobody", {})


def test_the_sweep_delivers_a_message_whose_wake_up_was_lost(clock):
    story = Story(clock, pull("next"))
    inbox.send_inbox_message(story.id, {"n": 1})
    assert story.is_waiting_for("next")

    story.later(1)

    assert taken(story, "next") == [1]


def test_a_retry_waits_for_another_message_where_the_first_one_ended_the_run(clock):
    ends = switch(
        "way", {"no": [terminate("end", "FAILED", "refused")]}, inputs={"way": "${next.output.messages[0].payload.n}"}
    )
    story = Story(clock, pull("next"), ends, step("after"))
    with run_commit_hooks():
        inbox.send_inbox_message(story.id, {"n": "no"})
    assert (story.status, story.reason) == ("FAILED", "refused")

    story.retry()
    assert (story.statuses, story.attempts("next")) == ({"next": "IN_PROGRESS"}, ["COMPLETED", "IN_PROGRESS"])
    with run_commit_hooks():
        inbox.send_inbox_message(story.id, {"n": "yes"})

    assert story.is_waiting_for("after")


def test_a_rerun_from_the_step_waits_for_another_message(clock):
    story = Story(clock, pull("next"), step("after"))
    send(story, 1)
    story.worker("after").completes()

    story.rerun("next")
    send(story, 2)

    assert (taken(story, "next"), story.is_waiting_for("after")) == ([2], True)
