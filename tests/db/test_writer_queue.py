"""The turns of writers on SQLite: within a process, between processes, and after errors."""

import os
import sqlite3
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from subprocess import DEVNULL, PIPE, Popen, run

import pytest
from django.conf import settings
from django.db import OperationalError, connection, transaction

from conductor_app.db.sqlite.base import NEXT, WRITING, WriterQueue, queue_of
from conductor_app.db.statements import execute, fetch
from conductor_app.tasks.models import QueueHold
from tests.runs.test_parallel import at_once

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'sqlite'", reason="PostgreSQL needs no turns"),
]


def hold(name: str) -> None:
    QueueHold.objects.create(queue=name, until_at=5, reason="", by="olga", held_at=1)


def wait_for_writers(queue: WriterQueue, count: int) -> None:
    while len(queue.waiting) < count:
        pass


def test_transactions_begin_in_the_order_in_which_they_were_asked_for():
    queue, begun = queue_of(connection.settings_dict["NAME"]), []

    def write(number: int) -> None:
        with transaction.atomic():
            begun.append(number)
        connection.close()

    with ThreadPoolExecutor(20) as threads, transaction.atomic():
        for number in range(20):
            threads.submit(write, number)
            wait_for_writers(queue, number + 1)

    assert begun == list(range(20))


def test_a_statement_outside_of_a_transaction_has_a_turn_as_well():
    queue = queue_of(connection.settings_dict["NAME"])
    statements = [
        lambda: hold("inserted"),
        lambda: execute("UPDATE conductor_queuehold SET until_at = 6 WHERE queue = 'inserted'"),
        lambda: execute(
            "WITH chosen AS MATERIALIZED (SELECT queue FROM conductor_queuehold) UPDATE conductor_queuehold "
            "SET until_at = until_at + 1 WHERE queue IN (SELECT queue FROM chosen)"
        ),
    ]

    def write(number: int) -> None:
        statements[number]()
        connection.close()

    with ThreadPoolExecutor(3) as threads, transaction.atomic():
        for number in range(3):
            threads.submit(write, number)
            wait_for_writers(queue, number + 1)

    assert fetch("SELECT until_at FROM conductor_queuehold") == [(7,)]


def test_reading_needs_no_turn():
    with transaction.atomic():
        assert at_once(lambda _: fetch("SELECT COUNT(*) FROM conductor_queuehold"), 1) == [[(0,)]]


@pytest.fixture
def _short_timeout() -> Iterator[None]:
    settings.DATABASES["default"]["OPTIONS"]["timeout"] = 0
    yield
    settings.DATABASES["default"]["OPTIONS"]["timeout"] = 20


def refused_to_hold(_: int) -> bool:
    with pytest.raises(OperationalError, match="database is locked"):
        hold("late")
    return True


@pytest.mark.usefixtures("_short_timeout")
def test_a_writer_whose_turn_does_not_come_in_time_is_refused_and_the_next_one_writes():
    with transaction.atomic():
        assert at_once(refused_to_hold, 1) == [True]

    at_once(lambda _: hold("next"), 1)
    assert QueueHold.objects.count() == 1


@pytest.mark.parametrize("end", ["error", "rollback", "close"])
def test_a_transaction_ends_its_turn_however_it_ends(end):
    def write(_: int) -> None:
        with transaction.atomic():
            hold("undone")
            if end == "close":
                connection.close()
            elif end == "rollback":
                transaction.set_rollback(True)
            else:
                raise ZeroDivisionError

    try:
        write(0)
    except ZeroDivisionError:
        assert end == "error"

    assert at_once(lambda _: hold("kept"), 1) == [None]
    assert [row.queue for row in QueueHold.objects.all()] == ["kept"]


def test_a_failed_statement_outside_of_a_transaction_ends_its_turn():
    with pytest.raises(OperationalError):
        execute("INSERT INTO conductor_nothing VALUES (1)")

    assert at_once(lambda _: hold("kept"), 1) == [None]


def test_a_forked_process_has_its_own_queue():
    with transaction.atomic():
        child = os.fork()
        if not child:
            free = queue_of(connection.settings_dict["NAME"]).acquire(0)
            os._exit(0 if free else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


OTHER_PROCESS = """
import fcntl, sys
file = open(sys.argv[1], "r+")
for byte in map(int, sys.argv[2:]):
    fcntl.lockf(file, fcntl.LOCK_EX, 1, byte)
print("locked", flush=True)
sys.stdin.read()
"""
"""Lock bytes of the queue's file until the end of the input."""
TRY = """
import fcntl, sys
fcntl.lockf(open(sys.argv[1], "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, int(sys.argv[2]))
"""


@contextmanager
def other_process(*numbers: int) -> Iterator[Popen]:
    """Start a process that locks bytes of the queue's file."""
    database = connection.settings_dict["NAME"]
    queue_of(database)
    command = [sys.executable, "-c", OTHER_PROCESS, f"{database}-queue", *map(str, numbers)]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdout.readline() == "locked\n"
        yield process


def can_lock(byte: int) -> bool:
    """Return True if another process can lock a byte of the queue's file."""
    command = [sys.executable, "-c", TRY, f"{connection.settings_dict['NAME']}-queue", str(byte)]
    return run(command, stderr=DEVNULL, check=False).returncode == 0


def test_a_writer_lets_another_process_begin_that_has_waited_longer():
    database = connection.settings_dict["NAME"]
    with ThreadPoolExecutor(1) as thread, other_process(NEXT) as other:
        writing = thread.submit(at_once, lambda _: hold("second"), 1)
        while not queue_of(database).is_taken:
            pass

        with sqlite3.connect(database, timeout=0, isolation_level=None) as other_connection:
            other_connection.execute("BEGIN IMMEDIATE")
            other.stdin.close()
            assert not other_connection.execute("SELECT * FROM conductor_queuehold").fetchall()
            other_connection.execute("COMMIT")
        writing.result(30)

    assert QueueHold.objects.count() == 1


def test_another_process_can_be_next_while_this_one_writes():
    with transaction.atomic():
        assert (can_lock(NEXT), can_lock(WRITING)) == (True, False)

    assert (can_lock(NEXT), can_lock(WRITING)) == (True, True)


def test_a_process_that_is_killed_holds_up_no_other():
    with ThreadPoolExecutor(1) as thread, other_process(NEXT, WRITING) as other:
        writing = thread.submit(at_once, lambda _: hold("next"), 1)
        while not queue_of(connection.settings_dict["NAME"]).is_taken:
            pass
        other.kill()
        writing.result(30)

    assert QueueHold.objects.count() == 1


@pytest.mark.usefixtures("_short_timeout")
def test_a_process_that_is_stopped_while_it_is_next_is_not_awaited_longer_than_the_timeout():
    with other_process(NEXT, WRITING):
        hold("in time")

    assert QueueHold.objects.count() == 1


WRITERS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from django.conf import settings
from conductor_app.settings import services
settings.configure(DATABASES={"default": services.sqlite(Path(sys.argv[1]), synchronous="OFF")})
from conductor_app.db.statements import execute, execute_in_transaction
def write(number):
    sql = "INSERT INTO conductor_queuehold (queue, until_at, reason, by, held_at) VALUES (%s, 5, '', '', 1)"
    for count in range(50):
        queue = f"{sys.argv[2]} {number} {count}"
        execute_in_transaction(lambda: execute(sql, [queue]))
with ThreadPoolExecutor(4) as threads:
    list(threads.map(write, range(4)))
"""


def test_no_writer_of_several_processes_is_refused():
    command = [sys.executable, "-c", WRITERS, connection.settings_dict["NAME"]]
    processes = [Popen([*command, name]) for name in ("one", "two", "three")]

    assert [process.wait(120) for process in processes] == [0, 0, 0]
    assert QueueHold.objects.count() == 600


def test_without_the_right_to_create_a_file_there_is_no_order_of_processes():
    queue = WriterQueue("/sys/conductor")

    with queue.next_of_processes(0):
        assert queue.acquire(0)
    queue.release()
