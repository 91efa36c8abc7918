"""Processes on one machine that share a SQLite file hear of each other."""


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
