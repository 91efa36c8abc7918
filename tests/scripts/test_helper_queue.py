"""The order in which callers get helper processes."""

import pytest

from conductor_app.scripts.pool import MAX_KEYS, MAX_PATIENT, MAX_PATIENT_OF_OWNER, HelperQueue, TurnKey


def enter_all(queue, *keys):
    return [queue.enter(key) for key in keys]


def are_granted(tickets):
    return [ticket.granted.is_set() for ticket in tickets]


def serve_until_empty(queue, tickets):
    """Return the keys in the order in which they were served, when each script ends before the next one."""
    served, waiting = [], list(tickets)
    while current := next((ticket for ticket in waiting if ticket.granted.is_set()), None):
        served.append(current.key.name)
        waiting.remove(current)
        queue.leave(current, was_slow=False)
    assert waiting == []
    return served


def let_time_out(queue, key, times=2):
    for _ in range(times):
        queue.leave(queue.enter(key), was_slow=True)


def test_free_helpers_are_granted_at_once():
    queue = HelperQueue(2)

    assert are_granted(enter_all(queue, "a", "a", "b")) == [True, True, False]


def test_a_returned_helper_goes_to_the_next_caller():
    queue = HelperQueue(1)
    first, second = enter_all(queue, "a", "a")

    queue.leave(first, was_slow=False)

    assert second.granted.is_set()


def test_keys_take_turns():
    queue = HelperQueue(1)

    tickets = enter_all(queue, "a", "a", "a", "a", "b", "c", "b")

    assert serve_until_empty(queue, tickets) == ["a", "a", "b", "c", "a", "b", "a"]


def test_a_free_helper_goes_to_the_key_with_the_fewest_helpers():
    queue = HelperQueue(3)
    first, *others = enter_all(queue, "a", "a", "b", "a", "b", "c")

    queue.leave(first, was_slow=False)

    assert are_granted(others) == [True, True, False, False, True]


def test_one_key_cannot_keep_all_helpers_while_another_waits():
    queue = HelperQueue(2)
    first, second, third, other = enter_all(queue, "endless", "endless", "endless", "other")

    queue.leave(first, was_slow=True)

    assert are_granted([second, third, other]) == [True, False, True]


def test_a_caller_that_gives_up_loses_its_place():
    queue = HelperQueue(1)
    first, second, third = enter_all(queue, "a", "a", "a")

    queue.leave(second)
    queue.leave(first, was_slow=False)

    assert are_granted([second, third]) == [False, True]


def test_a_key_whose_scripts_keep_timing_out_gets_one_helper():
    queue = HelperQueue(4)
    let_time_out(queue, "endless")

    endless = enter_all(queue, "endless", "endless", "endless")

    assert are_granted(endless) == [True, False, False]
    assert are_granted(enter_all(queue, "a", "a", "a")) == [True, True, True]


def test_all_slow_keys_together_leave_one_helper_to_others():
    queue = HelperQueue(3)
    for key in "xyz":
        let_time_out(queue, key)

    assert are_granted(enter_all(queue, "x", "y", "z")) == [True, True, False]
    assert are_granted(enter_all(queue, "a")) == [True]


def test_a_slow_key_is_served_by_the_only_helper():
    queue = HelperQueue(1)
    let_time_out(queue, "endless")

    assert are_granted(enter_all(queue, "endless")) == [True]


def test_endless_scripts_of_one_key_never_delay_others_once_they_have_timed_out():
    queue = HelperQueue(2)
    endless = enter_all(queue, *["endless"] * 12)
    for ticket in endless[:2]:
        queue.leave(ticket, was_slow=True)

    for _ in range(100):
        ticket = queue.enter("other")
        assert ticket.granted.is_set()
        queue.leave(ticket, was_slow=False)
    assert are_granted(endless[2:]) == [True] + [False] * 9


def test_one_timeout_makes_no_key_slow():
    queue = HelperQueue(2)
    let_time_out(queue, "a", times=1)

    assert are_granted(enter_all(queue, "a", "a")) == [True, True]


def test_a_slow_key_recovers_when_its_scripts_complete():
    queue = HelperQueue(2)
    let_time_out(queue, "a", times=100)

    for _ in range(3):
        queue.leave(queue.enter("a"), was_slow=False)

    assert are_granted(enter_all(queue, "a", "a")) == [True, True]


def test_an_evaluation_that_did_not_happen_does_not_count():
    queue = HelperQueue(2)
    let_time_out(queue, "a")

    for _ in range(10):
        queue.leave(queue.enter("a"))

    assert are_granted(enter_all(queue, "a", "a")) == [True, False]


def test_an_owner_of_many_definitions_gets_no_more_turns_than_one_of_a_single_definition():
    queue = HelperQueue(1)

    tickets = [queue.enter(f"x{number}", owner=1) for number in range(6)] + [queue.enter("y", owner=2)]

    assert serve_until_empty(queue, tickets) == ["x0", "x1", "y", "x2", "x3", "x4", "x5"]


def test_a_free_helper_goes_to_the_owner_with_the_fewest_helpers():
    queue = HelperQueue(2)
    first, *others = [queue.enter(f"x{number}", owner=1) for number in range(4)]
    other = queue.enter("y", owner=2)

    queue.leave(first, was_slow=False)

    assert are_granted(others) == [True, False, False]
    assert other.granted.is_set()


def test_few_callers_of_one_owner_wait_for_long_and_others_still_may():
    queue = HelperQueue(1)
    queue.enter("busy")
    many = [queue.enter(f"x{number}", owner=1) for number in range(100)]
    other = queue.enter("y", owner=2)

    assert [queue.may_keep_waiting(each) for each in many].count(True) == MAX_PATIENT_OF_OWNER
    assert queue.may_keep_waiting(other)


def test_few_callers_of_all_owners_together_wait_for_long():
    queue = HelperQueue(1)
    queue.enter("busy")

    waiting = [queue.may_keep_waiting(queue.enter("x", owner=number)) for number in range(1, 100)]

    assert waiting.count(True) == MAX_PATIENT


def test_a_caller_whose_helper_was_granted_in_the_meantime_keeps_it():
    queue = HelperQueue(1)
    first = queue.enter("x", owner=1)
    waiting = [queue.enter("x", owner=1) for _ in range(MAX_PATIENT_OF_OWNER + 1)]
    for each in waiting:
        queue.may_keep_waiting(each)

    queue.leave(waiting[0])
    queue.leave(first, was_slow=False)

    assert queue.may_keep_waiting(waiting[1])


@pytest.mark.parametrize("outcome", [True, False, None])
def test_the_queue_remembers_a_bounded_number_of_keys(outcome):
    queue = HelperQueue(1)

    for number in range(MAX_KEYS + 10):
        let_time_out(queue, "first", times=1)
        queue.leave(queue.enter(number), was_slow=outcome)

    assert len(queue._slow) <= MAX_KEYS
    assert TurnKey("first", "first") in queue._slow
    assert not queue._waiting and not queue._granted
