"""Processes on one machine that share a SQLite file hear of each other."""

from .conftest import beside_sqlite_in


def test_a_process_hears_what_another_announces(beside_sqlite):
    listener = beside_sqlite.listener("pay")
    assert listener.says() == "listening"

    beside_sqlite.announce("pay")

    assert listener.says() == "heard"


def test_every_process_hears_of_new_work(beside_sqlite):
    listeners = [beside_sqlite.listener("pay"), beside_sqlite.listener("pay")]
    assert [listener.says() for listener in listeners] == ["listening", "listening"]

    beside_sqlite.announce("pay")

    assert [listener.says() for listener in listeners] == ["heard", "heard"]


def test_a_process_that_was_killed_disturbs_nobody(beside_sqlite):
    dead, alive = beside_sqlite.listener("pay"), beside_sqlite.listener("pay")
    assert [dead.says(), alive.says()] == ["listening", "listening"]
    dead.ends()

    announcer = beside_sqlite.announce("pay")

    assert alive.says() == "heard"
    assert announcer.stderr.read() == ""


def test_a_folder_with_a_long_name_is_no_hindrance(tmp_path):
    deep = tmp_path.joinpath(*["a folder with a long name"] * 5)
    neighbours = beside_sqlite_in(deep)
    listener = neighbours.listener("pay")
    assert listener.says() == "listening"

    neighbours.announce("pay")

    assert listener.says() == "heard"
    neighbours.end()
