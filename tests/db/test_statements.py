"""The store's statements on both databases: rows, counts, errors, and the state of the connection afterwards."""

from contextlib import nullcontext

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from conductor_app.db.statements import execute, execute_together, fetch

pytestmark = pytest.mark.django_db

INSERT = "INSERT INTO conductor_queuehold (queue, until_at, reason, by, held_at) VALUES (%s, %s, %s, %s, %s)"
HELD = "SELECT queue, until_at FROM conductor_queuehold ORDER BY queue"


def hold(queue: str, until: int = 5) -> tuple[str, list]:
    return INSERT, [queue, until, "ünïcode 'quoted' \\ 100%", "operator", 1]


def test_batched_statements_report_the_row_count_of_each():
    counts = execute_together([hold("a"), hold("b"), ("UPDATE conductor_queuehold SET until_at = %s", [7])])

    assert (counts, fetch(HELD)) == ([1, 1, 2], [("a", 7), ("b", 7)])


def test_values_are_read_as_they_were_written():
    execute(*hold("a", 9_007_199_254_740_991))

    [(until, reason)] = fetch("SELECT until_at, reason FROM conductor_queuehold WHERE queue = %s", ["a"])
    assert (until, reason) == (9_007_199_254_740_991, "ünïcode 'quoted' \\ 100%")


def test_null_booleans_and_numbers_are_distinguished():
    sql = "SELECT CAST(%s AS integer), CAST(%s AS boolean), CAST(%s AS bigint), CAST(%s AS double precision)"
    [(nothing, truth, number, fraction)] = fetch(sql, [None, True, -3, 0.25])

    assert (nothing, bool(truth), number, fraction) == (None, True, -3, 0.25)


def test_a_failed_statement_stops_the_batch_and_the_connection_stays_usable():
    for _ in range(2):
        with pytest.raises(IntegrityError), transaction.atomic():
            execute_together([hold("a"), hold("a"), hold("b")])

    assert fetch(HELD) == []
    assert execute_together([hold("a"), hold("b")]) == [1, 1]


def test_a_statement_that_the_database_does_not_understand_is_an_error_of_the_database():
    for _ in range(2):
        with pytest.raises(DatabaseError), transaction.atomic():
            fetch("SELECT nothing FROM nowhere WHERE id = %s", ["a"])

    assert fetch(HELD) == []


def test_more_distinct_statements_than_the_prepared_cache_holds_can_be_repeated():
    for _ in range(2):
        for width in range(1, 130):
            marks = ", ".join(["%s"] * width)
            assert fetch(f"SELECT COUNT(*) FROM conductor_queuehold WHERE queue IN ({marks})", ["a"] * width) == [(0,)]


def test_large_statements_are_sent_completely():
    text = "x" * 3_000_000
    rows = [(INSERT, [str(number), 1, text, "operator", 1]) for number in range(3)]

    assert execute_together(rows) == [1, 1, 1]
    assert fetch("SELECT DISTINCT LENGTH(reason) FROM conductor_queuehold") == [(3_000_000,)]


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite keeps NUL in texts")
def test_a_text_that_the_database_cannot_store_is_rejected_completely():
    with pytest.raises(DatabaseError, match="NUL"):
        execute(*hold("a\0b"))

    assert fetch(HELD) == []


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite keeps halves of characters in texts")
def test_half_a_character_is_refused_as_other_texts_are():
    with pytest.raises(DatabaseError, match="lone surrogate"):
        execute(*hold("a\ud800"))

    assert fetch(HELD) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite prepares anew whatever it must")
@pytest.mark.parametrize("change", ["ALTER TABLE passing ALTER n TYPE bigint", "DEALLOCATE ALL"])
@pytest.mark.parametrize("scope", [nullcontext, transaction.atomic], ids=["alone", "in a transaction"])
def test_a_statement_prepared_before_a_table_change_is_prepared_again(change, scope):
    execute("CREATE TEMPORARY TABLE passing (n integer)")
    read = "SELECT n FROM passing"
    try:
        with scope():
            assert fetch(read) == []
        # As another process would do it: psycopg sees no word of it.
        connection.connection.pgconn.exec_(change.encode())

        with scope():
            assert fetch(read) == []
            assert execute("INSERT INTO passing VALUES (%s)", [1]) == 1
        assert fetch(read) == [(1,)]
    finally:
        execute("DROP TABLE passing")


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite looks at references as it writes")
def test_a_deferred_foreign_key_violation_raises_an_integrity_error():
    with pytest.raises(IntegrityError, match="foreign key"):
        execute("INSERT INTO conductor_runlabel (run_id, name) VALUES (%s, %s)", ["nobody", "a"])

    assert fetch("SELECT name FROM conductor_runlabel") == []


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite keeps statements in the process")
def test_large_statements_are_not_kept_prepared():
    for width in (501, 502):
        fetch(f"SELECT COUNT(*) FROM conductor_queuehold WHERE queue IN ({', '.join(['%s'] * width)})", ["a"] * width)

    kept = "SELECT COUNT(*) FROM pg_prepared_statements WHERE STRPOS(statement, CAST(%s AS text)) > 0"
    assert (fetch(kept, ["$501"]), fetch(kept, ["STRPOS"])) == ([(0,)], [(1,)])


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no server that could hang up")
def test_too_many_parameters_are_an_error_and_the_next_statement_works():
    with pytest.raises(DatabaseError):
        fetch(f"SELECT COUNT(*) FROM conductor_queuehold WHERE queue IN ({', '.join(['%s'] * 65_536)})", ["a"] * 65_536)

    assert fetch(HELD) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no server that could hang up")
def test_a_closed_connection_is_a_database_error_and_the_next_one_works():
    [(own,)] = fetch("SELECT pg_backend_pid()")
    with pytest.raises(DatabaseError), transaction.atomic():
        fetch("SELECT pg_terminate_backend(%s)", [own])
        execute(*hold("a"))

    assert fetch(HELD) == []
