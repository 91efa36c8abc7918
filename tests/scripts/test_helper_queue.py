"""The order in which callers get helper processes."""

import pytest

from conductor_app.scripts.pool import MAX_KEYS, HelperQueue


def enter_all(queue, *keys):
    return [queue.enter(key) for key in keys]


def granted(tickets):
    return [ticket.granted.is_set() for ticket in tickets]


def serve_until_empty(queue, tickets):
    """Return the keys in the order in which they were served, when each script ends before the next one."""
    served, waiting = [], list(tickets)
    while current := next((ticket for ticket in waiting if ticket.granted.is_set()), None):
        served.append(current.key)
        waiting.remove(current)
        queue.leave(current, has_timed_out=False)
    assert waiting == []
    return served


def let_time_out(queue, key, times=2):
    for _ in range(times):
        queue.leave(queue.enter(key), has_timed_out=True)


def test_free_helpers_are_granted_at_once():
    queue = HelperQueue(2)

    assert granted(enter_all(queue, "a", "a", "b")) == [True, True, False]


def test_a_returned_helper_goes_to_the_next_caller():
    queue = HelperQueue(1)
    first, second = enter_all(queue, "a", "a")

    queue.leave(first, has_timed_out=False)

    assert second.granted.is_set()


def test_keys_take_turns():
    queue = HelperQueue(1)

    tickets = enter_all(queue, "a", "a", "a", "a", "b", "c", "b")

    assert serve_until_empty(queue, tickets) == ["a", "a", "b", "c", "a", "b", "a"]


def test_a_free_helper_goes_to_the_key_with_the_fewest_helpers():
    queue = HelperQueue(3)
    first, *others = enter_all(queue, "a", "a", "b", "a", "b", "c")

    queue.leave(first, has_timed_out=False)

    assert granted(others) == [True, True, False, False, True]


def test_one_key_cannot_keep_all_helpers_while_another_waits():
    queue = HelperQueue(2)
    first, second, third, other = enter_all(queue, "endless", "endless", "endless", "other")

    queue.leave(first, has_timed_out=True)

    assert granted([second, third, other]) == [True, False, True]


def test_a_caller_that_gives_up_loses_its_place():
    queue = HelperQueue(1)
    first, second, third = enter_all(queue, "a", "a", "a")

    queue.leave(second)
    queue.leave(first, has_timed_out=False)

    assert granted([second, third]) == [False, True]


def test_a_key_whose_scripts_keep_timing_out_gets_one_helper():
    queue = HelperQueue(4)
    let_time_out(queue, "endless")

    endless = enter_all(queue, "endless", "endless", "endless")

    assert granted(endless) == [True, False, False]
    assert granted(enter_all(queue, "a", "a", "a")) == [True, True, True]


def test_all_slow_keys_together_leave_one_helper_to_others():
    queue = HelperQueue(3)
    for key in "xyz":
        let_time_out(queue, key)

    assert granted(enter_all(queue, "x", "y", "z")) == [True, True, False]
    assert granted(enter_all(queue, "a")) == [True]


def test_a_slow_key_is_served_by_the_only_helper():
    queue = HelperQueue(1)
    let_time_out(queue, "endless")

    assert granted(enter_all(queue, "endless")) == [True]


def test_endless_scripts_of_one_key_never_delay_others_once_they_have_timed_out():
    queue = HelperQueue(2)
    endless = enter_all(queue, *["endless"] * 12)
    for ticket in endless[:2]:
        queue.leave(ticket, has_timed_out=True)

    for _ in range(100):
        ticket = queue.enter("other")
        assert ticket.granted.is_set()
        queue.leave(ticket, has_timed_out=False)
    assert granted(endless[2:]) == [True] + [False] * 9


def test_one_timeout_makes_no_key_slow():
    queue = HelperQueue(2)
    let_time_out(queue, "a", times=1)

    assert granted(enter_all(queue, "a", "a")) == [True, True]


def test_a_slow_key_recovers_when_its_scripts_complete():
    queue = HelperQueue(2)
    let_time_out(queue, "a", times=100)

    for _ in range(3):
        queue.leave(queue.enter("a"), has_timed_out=False)

    assert granted(enter_all(queue, "a", "a")) == [True, True]


def test_an_evaluation_that_did_not_happen_does_not_count():
    queue = HelperQueue(2)
    let_time_out(queue, "a")

    for _ in range(10):
        queue.leave(queue.enter("a"))

    assert granted(enter_all(queue, "a", "a")) == [True, False]


@pytest.mark.parametrize("outcome", [True, False, None])
def test_the_queue_remembers_a_bounded_number_of_keys(outcome):
    queue = HelperQueue(1)

    for number in range(MAX_KEYS + 10):
        let_time_out(queue, "first", times=1)
        queue.leave(queue.enter(number), has_timed_out=outcome)

    assert len(queue._timeouts) <= MAX_KEYS
    assert "first" in queue._timeouts
    assert not queue._waiting and not queue._granted
