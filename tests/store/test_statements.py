"""What statements promise on both databases: rows, counts, errors, and a connection that stays of use."""

import pytest
from django.db import DatabaseError, IntegrityError, transaction

from conductor_app.store.statements import fetch, run, run_together

pytestmark = pytest.mark.django_db

INSERT = "INSERT INTO conductor_queuehold (queue, until_at, reason, by, held_at) VALUES (%s, %s, %s, %s, %s)"
HELD = "SELECT queue, until_at FROM conductor_queuehold ORDER BY queue"


def hold(queue: str, until: int = 5) -> tuple[str, list]:
    return INSERT, [queue, until, "ünïcode 'quoted' \\ 100%", "operator", 1]


def test_statements_sent_together_say_how_many_rows_each_has_changed():
    counts = run_together([hold("a"), hold("b"), ("UPDATE conductor_queuehold SET until_at = %s", [7])])

    assert (counts, fetch(HELD)) == ([1, 1, 2], [("a", 7), ("b", 7)])


def test_values_come_back_as_they_were_written():
    run(*hold("a", 9_007_199_254_740_991))

    [(until, reason)] = fetch("SELECT until_at, reason FROM conductor_queuehold WHERE queue = %s", ["a"])
    assert (until, reason) == (9_007_199_254_740_991, "ünïcode 'quoted' \\ 100%")


def test_none_truth_and_numbers_are_told_apart():
    sql = "SELECT CAST(%s AS integer), CAST(%s AS boolean), CAST(%s AS bigint), CAST(%s AS double precision)"
    [(nothing, truth, number, fraction)] = fetch(sql, [None, True, -3, 0.25])

    assert (nothing, bool(truth), number, fraction) == (None, True, -3, 0.25)


def test_what_follows_a_refused_statement_is_not_run_and_the_connection_stays_of_use():
    for _ in range(2):
        with pytest.raises(IntegrityError), transaction.atomic():
            run_together([hold("a"), hold("a"), hold("b")])

    assert fetch(HELD) == []
    assert run_together([hold("a"), hold("b")]) == [1, 1]


def test_a_statement_that_the_database_does_not_understand_is_an_error_of_the_database():
    for _ in range(2):
        with pytest.raises(DatabaseError), transaction.atomic():
            fetch("SELECT nothing FROM nowhere WHERE id = %s", ["a"])

    assert fetch(HELD) == []


def test_more_shapes_of_statements_than_a_connection_keeps_prepared_can_be_run_again_and_again():
    for _ in range(2):
        for width in range(1, 130):
            marks = ", ".join(["%s"] * width)
            assert fetch(f"SELECT COUNT(*) FROM conductor_queuehold WHERE queue IN ({marks})", ["a"] * width) == [(0,)]


def test_large_statements_go_through_whole():
    text = "x" * 3_000_000
    rows = [(INSERT, [str(number), 1, text, "operator", 1]) for number in range(3)]

    assert run_together(rows) == [1, 1, 1]
    assert fetch("SELECT DISTINCT LENGTH(reason) FROM conductor_queuehold") == [(3_000_000,)]


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite keeps NUL in texts")
def test_a_text_that_the_database_cannot_keep_is_refused_whole():
    with pytest.raises(DatabaseError, match="NUL"):
        run(*hold("a\0b"))

    assert fetch(HELD) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no server that could hang up")
def test_a_connection_that_is_cut_off_is_an_error_of_the_database_and_the_next_one_works():
    [(own,)] = fetch("SELECT pg_backend_pid()")
    with pytest.raises(DatabaseError), transaction.atomic():
        fetch("SELECT pg_terminate_backend(%s)", [own])
        run(*hold("a"))

    assert fetch(HELD) == []
