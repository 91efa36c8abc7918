"""Leader election: one of any number of beats sends jobs, and a standby takes over within three seconds."""

import pytest

from conductor_app.db.leases import FileHeartbeat, LeaseHeartbeat
from conductor_app.processes.beat import LeaderLease

pytestmark = pytest.mark.django_db


class Time:
    def __init__(self):
        self.seconds = 1000.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def time():
    return Time()


@pytest.fixture(params=["row", "file"])
def lease(request, tmp_path, time):
    """Return a function that creates one more candidate for the same lease."""

    def candidate() -> LeaderLease:
        heartbeat = LeaseHeartbeat("beat") if request.param == "row" else FileHeartbeat(tmp_path / "hearts" / "beat")
        return LeaderLease("beat", heartbeat, time)

    return candidate


def run(time, seconds, *candidates):
    """Let each candidate check its lease every half second; return who held it at the end."""
    held = [False] * len(candidates)
    for _ in range(round(seconds / 0.5)):
        time.seconds += 0.5
        held = [candidate.is_held() for candidate in candidates]
        assert sum(held) <= 1
    return held


def test_the_first_candidate_leads_at_once(lease):
    assert lease().is_held()


def test_exactly_one_of_several_candidates_leads(lease, time):
    candidates = [lease() for _ in range(4)]

    assert run(time, 30, *candidates) == [True, False, False, False]


def test_a_standby_takes_over_within_three_seconds(lease, time):
    leader, standby = lease(), lease()
    run(time, 5, leader, standby)

    assert run(time, 1.5, standby) == [False]
    assert run(time, 1.5, standby) == [True]


def test_only_a_takeover_from_a_silent_leader_is_logged(lease, time, caplog):
    caplog.set_level("INFO")
    first, second, third = lease(), lease(), lease()
    run(time, 5, first)
    first.release()
    run(time, 5, second)
    assert not caplog.records

    run(time, 5, third)

    assert [record.message for record in caplog.records] == ["leadership_taken"]


def test_a_leader_renews_its_lease_with_one_statement(time, django_assert_num_queries):
    leader = LeaderLease("beat", LeaseHeartbeat("beat"), time)
    run(time, 1, leader)

    with django_assert_num_queries(1):
        assert run(time, 0.5, leader) == [True]


def test_a_leader_that_was_suspended_notices_that_it_was_replaced(lease, time):
    leader, standby = lease(), lease()
    run(time, 5, leader, standby)
    run(time, 5, standby)

    assert run(time, 10, leader, standby) == [False, True]


def test_a_released_lease_is_taken_at_once(lease, time):
    leader, standby = lease(), lease()
    run(time, 5, leader, standby)
    leader.release()

    assert run(time, 0.5, standby) == [True]


def test_a_standby_cannot_release_the_lease_of_the_leader(lease, time):
    leader, standby = lease(), lease()
    run(time, 5, leader, standby)
    standby.release()

    assert run(time, 5, leader, standby) == [True, False]


def test_a_standby_whose_read_was_slow_does_not_replace_the_leader(tmp_path, time):
    class SlowHeartbeat(FileHeartbeat):
        """A heartbeat that is read from a database behind a network that drops packets for some time."""

        delay = 0.0

        def read(self):
            time.seconds += self.delay
            self.delay = 0.0
            return super().read()

    heartbeat = SlowHeartbeat(tmp_path / "beat")
    leader, standby = LeaderLease("beat", FileHeartbeat(tmp_path / "beat"), time), LeaderLease("beat", heartbeat, time)
    run(time, 5, leader, standby)
    time.seconds += 0.5
    assert leader.is_held()
    heartbeat.delay = 3.0

    assert not standby.is_held()
    time.seconds += 0.5
    assert not standby.is_held()
