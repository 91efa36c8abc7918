"""Read snapshots: their contents, their restrictions, and the state of the connection afterwards."""

import pytest
from django.db import DatabaseError, connection, transaction

from conductor_app.db.statements import execute, fetch, read_snapshot
from conductor_app.tasks.models import QueueHold
from tests.runs.test_parallel import at_once
from tests.runs.test_statements import Counted

pytestmark = pytest.mark.django_db(transaction=True)

NAMES = "SELECT queue FROM conductor_queuehold ORDER BY queue"


def hold(name: str) -> None:
    QueueHold.objects.create(queue=name, until_at=5, reason="", by="olga", held_at=1)


def read_holds() -> list[str]:
    """Read with a cursor, and past it as the engine reads."""
    names = list(QueueHold.objects.order_by("queue").values_list("queue", flat=True))
    assert [name for (name,) in fetch(NAMES)] == names
    return names


def hold_elsewhere(name: str) -> None:
    """Write on another connection, which has committed when this returns."""
    at_once(lambda _: hold(name), 1)


def test_a_snapshot_reads_only_rows_committed_before_its_first_query():
    with read_snapshot():
        hold_elsewhere("before")
        assert read_holds() == ["before"]
        hold_elsewhere("after")
        assert read_holds() == ["before"]

    assert read_holds() == ["after", "before"]


def test_a_snapshot_can_start_with_a_raw_statement():
    with read_snapshot():
        assert fetch(NAMES) == []
        hold_elsewhere("after")
        assert fetch(NAMES) == []


def test_outside_a_snapshot_each_query_reads_committed_rows():
    assert read_holds() == []
    hold_elsewhere("a")
    assert read_holds() == ["a"]


@pytest.mark.parametrize(
    "write", [hold, lambda name: execute("DELETE FROM conductor_queuehold WHERE queue = %s", [name])]
)
def test_a_snapshot_rejects_writes_and_the_connection_accepts_them_afterwards(write):
    with pytest.raises(DatabaseError), read_snapshot():
        write("a")

    hold("b")
    assert read_holds() == ["b"]


def test_a_transaction_within_a_snapshot_does_not_write_either():
    with pytest.raises(DatabaseError), read_snapshot(), transaction.atomic():
        hold("a")

    assert read_holds() == []


def test_a_snapshot_within_another_is_the_same():
    with read_snapshot():
        assert read_holds() == []
        with read_snapshot():
            hold_elsewhere("a")
            assert read_holds() == []
        assert read_holds() == []


def test_a_snapshot_within_a_writing_transaction_has_no_effect(settings):
    settings.CONDUCTOR_CHECKS_READ_SNAPSHOTS = False
    with transaction.atomic():
        hold("a")
        with read_snapshot():
            assert read_holds() == ["a"]
            hold("b")

    assert read_holds() == ["a", "b"]


def test_a_decorated_function_can_be_called_again_after_an_exception():
    @read_snapshot()
    def look(fails: bool) -> list[str]:
        seen = read_holds()
        hold_elsewhere(str(len(seen)))
        if fails:
            raise LookupError
        return [*seen, *read_holds()]

    with pytest.raises(LookupError):
        look(True)
    assert look(False) == ["0", "0"]


def test_writers_on_other_connections_have_the_usual_isolation():
    with read_snapshot():
        read_holds()
    with transaction.atomic():
        assert read_holds() == []
        if connection.vendor == "postgresql":
            hold_elsewhere("a")
            assert read_holds() == ["a"]
            assert fetch("SHOW transaction_isolation") == [("read committed",)]
            assert fetch("SHOW transaction_read_only") == [("off",)]


def test_many_snapshots_side_by_side_leave_connections_that_write():
    def live(number: int) -> None:
        for turn in range(5):
            with read_snapshot():
                read_holds()
            hold(f"{number}.{turn}")

    at_once(live, 8)

    assert len(read_holds()) == 40


def test_a_connection_that_is_lost_within_a_snapshot_is_replaced_by_one_that_writes():
    if connection.vendor != "postgresql":
        pytest.skip("A file has no connection to lose.")
    with pytest.raises(DatabaseError), read_snapshot():
        fetch("SELECT pg_terminate_backend(pg_backend_pid())")
    connection.close()

    def write(number: int) -> None:
        hold(str(number))

    at_once(write, 8)
    assert len(read_holds()) == 8


def test_a_snapshot_adds_only_its_begin_and_end_statements():
    with Counted() as counted, read_snapshot():
        read_holds()

    assert counted.count == 2
