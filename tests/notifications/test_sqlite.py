"""Notifications between processes on one machine that share a SQLite file."""

import pytest

from .conftest import sqlite_peers_in

pytestmark = pytest.mark.slow


def test_a_process_receives_announcements_of_another(sqlite_peers):
    listener = sqlite_peers.listener("pay")
    assert listener.read_line() == "listening"

    sqlite_peers.announce("pay")

    assert listener.read_line() == "heard"


def test_every_process_is_notified_of_new_work(sqlite_peers):
    listeners = [sqlite_peers.listener("pay"), sqlite_peers.listener("pay")]
    assert [listener.read_line() for listener in listeners] == ["listening", "listening"]

    sqlite_peers.announce("pay")

    assert [listener.read_line() for listener in listeners] == ["heard", "heard"]


def test_an_unused_notification_is_passed_on_to_other_processes(sqlite_peers):
    listener = sqlite_peers.listener("pay")
    assert listener.read_line() == "listening"

    sqlite_peers.start("pass_on", "pay")

    assert listener.read_line() == "heard"


def test_a_killed_process_does_not_affect_the_others(sqlite_peers):
    dead, alive = sqlite_peers.listener("pay"), sqlite_peers.listener("pay")
    assert [dead.read_line(), alive.read_line()] == ["listening", "listening"]
    dead.wait_for_exit()

    announcer = sqlite_peers.announce("pay")

    assert alive.read_line() == "heard"
    assert announcer.stderr.read() == ""


def test_a_folder_with_a_long_name_is_no_hindrance(tmp_path):
    deep = tmp_path.joinpath(*["a folder with a long name"] * 5)
    neighbours = sqlite_peers_in(deep)
    listener = neighbours.listener("pay")
    assert listener.read_line() == "listening"

    neighbours.announce("pay")

    assert listener.read_line() == "heard"
    neighbours.end()
