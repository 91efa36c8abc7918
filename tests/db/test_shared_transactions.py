"""Group commit on SQLite: work that waits for its turn shares a transaction, and none affects another."""

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from signal import SIGUSR1, pthread_kill, signal
from threading import Event, get_ident, main_thread
from typing import Any

import pytest
from django.conf import settings
from django.db import IntegrityError, OperationalError, connection, transaction

from conductor_app.core.decide import Report
from conductor_app.db.sqlite.base import MAX_GROUP, WriterQueue, queue_of
from conductor_app.db.statements import execute, execute_in_transaction, fetch
from conductor_app.runs.commands.start import StartRequest, start_run
from conductor_app.runs.models import HistoryEntry, Run
from conductor_app.tasks.commands.claims import claim_now
from conductor_app.tasks.commands.reports import report_task
from tests.builders import step
from tests.runs.test_parallel import at_once
from tests.scenario import ACTOR, Scenario

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'sqlite'", reason="PostgreSQL locks single runs"),
]

HOLD = "INSERT INTO conductor_queuehold (queue, until_at, reason, by, held_at) VALUES (%s, 5, '', '', 1)"
FRAME_HEADER, PAGE = 24, 4096


def hold(queue: str) -> str:
    execute(HOLD, [queue])
    return queue


def held_queues() -> list[str]:
    return [queue for (queue,) in fetch("SELECT queue FROM conductor_queuehold ORDER BY queue")]


def queue() -> WriterQueue:
    return queue_of(connection.settings_dict["NAME"])


def count_commits() -> int:
    """Return the number of commits in SQLite's log, whose format is documented: each ends with a frame that says so."""
    log = Path(f"{connection.settings_dict['NAME']}-wal").read_bytes()
    salt = log[16:24]
    frames = (log[place : place + FRAME_HEADER] for place in range(32, len(log), FRAME_HEADER + PAGE))
    return sum(frame[8:16] == salt and any(frame[4:8]) for frame in frames)


@pytest.fixture
def commits() -> Iterator[Callable[[], int]]:
    """Return a function that returns the number of commits since the beginning of the test."""
    options = settings.DATABASES["default"]["OPTIONS"]
    before = options["init_command"]
    options["init_command"] += "PRAGMA wal_autocheckpoint=0;"
    connection.close()
    fetch("PRAGMA wal_checkpoint(RESTART)")
    execute("DELETE FROM conductor_queuehold")
    first = count_commits()
    yield lambda: count_commits() - first
    options["init_command"] = before
    connection.close()


class Waiting:
    """Calls that wait while another transaction is active."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads, self._count = threads, 0

    def add(self, call: Callable[[], Any]) -> Future:
        """Let a thread make a call, and wait until it waits."""
        result = self._threads.submit(self._call, call)
        self._count += 1
        while len(queue().waiting) + len(queue().sharing) < self._count:
            assert not result.done(), result
        return result

    def share(self, work: Callable[[], Any]) -> Future:
        """Let a thread execute work in a transaction, and wait until it waits."""
        return self.add(partial(execute_in_transaction, work))

    @staticmethod
    def _call(call: Callable[[], Any]) -> Any:
        try:
            return call()
        finally:
            connection.close()


@contextmanager
def another_transaction() -> Iterator[Waiting]:
    with ThreadPoolExecutor(MAX_GROUP + 10) as threads, transaction.atomic():
        yield Waiting(threads)


def test_work_that_waits_shares_one_commit_and_is_executed_in_order(commits):
    executed = []

    with another_transaction() as waiting:
        for number in range(20):
            waiting.share(lambda number=number: (hold(f"queue {number:02}"), executed.append(number)))

    assert executed == list(range(20))
    assert held_queues() == [f"queue {number:02}" for number in range(20)]
    assert commits() == 1


def test_a_transaction_takes_a_limited_number_of_works_and_the_next_one_takes_the_others(commits):
    with another_transaction() as waiting:
        for number in range(MAX_GROUP + 3):
            waiting.share(lambda number=number: hold(f"queue {number:02}"))

    assert len(held_queues()) == MAX_GROUP + 3
    assert commits() >= 2
    assert not queue().is_taken


def test_other_writers_and_work_have_one_order():
    begun = []

    def write() -> None:
        with transaction.atomic():
            begun.append("writer")

    with another_transaction() as waiting:
        waiting.add(write)
        waiting.share(lambda: begun.append("work"))

    assert begun == ["writer", "work"]


def test_work_that_fails_is_undone_alone(commits):
    def fail() -> None:
        hold("undone")
        raise ZeroDivisionError

    with another_transaction() as waiting:
        first, failed, duplicate, last = (
            waiting.share(lambda: hold("first")),
            waiting.share(fail),
            waiting.share(lambda: hold("first")),
            waiting.share(lambda: hold("last")),
        )

    assert (first.result(), last.result()) == ("first", "last")
    assert type(failed.exception()) is ZeroDivisionError
    assert type(duplicate.exception()) is IntegrityError
    assert held_queues() == ["first", "last"]
    assert commits() == 1


def test_a_leader_whose_work_fails_leaves_the_others_to_the_next_leader(commits):
    def fail() -> None:
        hold("undone")
        raise ZeroDivisionError

    with another_transaction() as waiting:
        failed, *others = waiting.share(fail), waiting.share(lambda: hold("a")), waiting.share(lambda: hold("b"))

    assert type(failed.exception()) is ZeroDivisionError
    assert [other.result() for other in others] == held_queues() == ["a", "b"]
    assert commits() == 1


@pytest.mark.parametrize("position", [0, 1])
def test_work_that_asks_to_be_undone_is_undone_alone_and_its_hooks_are_not_called(position):
    called = []

    def undo() -> None:
        hold("undone")
        transaction.on_commit(lambda: called.append("undone"))
        transaction.set_rollback(True)

    works = [lambda: hold("a"), lambda: hold("b")]
    works.insert(position, undo)
    with another_transaction() as waiting:
        results = [waiting.share(work) for work in works]

    assert [result.exception() for result in results] == [None] * 3
    assert held_queues() == ["a", "b"]
    assert not called


def test_members_whose_transaction_sqlite_undoes_execute_their_work_again_in_their_own():
    executed = []

    def undo_all() -> None:
        hold("undone")
        executed.append("undo")
        execute("INSERT OR ROLLBACK INTO conductor_queuehold SELECT * FROM conductor_queuehold")

    def write(queue: str) -> str:
        executed.append(queue)
        return hold(queue)

    with another_transaction() as waiting:
        first, guilty, last = (
            waiting.share(partial(write, "a")),
            waiting.share(undo_all),
            waiting.share(partial(write, "b")),
        )

    assert (first.result(), last.result()) == ("a", "b")
    assert type(guilty.exception()) is IntegrityError
    assert held_queues() == ["a", "b"]
    assert sorted(executed) == ["a", "a", "b", "undo", "undo"]


def test_a_member_that_fails_the_commit_fails_alone():
    def violate() -> None:
        execute("INSERT INTO conductor_runlabel (run_id, name) VALUES ('missing', 'x')")

    with another_transaction() as waiting:
        first, guilty, last = (
            waiting.share(lambda: hold("a")),
            waiting.share(violate),
            waiting.share(lambda: hold("b")),
        )

    assert (first.result(), last.result()) == ("a", "b")
    assert type(guilty.exception()) is IntegrityError
    assert held_queues() == ["a", "b"]


def test_what_follows_the_commit_is_called_by_the_thread_of_the_work_in_its_context():
    name, called, threads = ContextVar("name"), [], {}

    def call(number: int) -> None:
        name.set(number)
        threads[number] = get_ident()

        def work() -> None:
            hold(f"queue {number}")
            transaction.on_commit(lambda: called.append((number, name.get(), get_ident(), len(held_queues()))))
            assert name.get() == number

        execute_in_transaction(work)

    with another_transaction() as waiting:
        for number in range(3):
            waiting.add(partial(call, number))
        assert not called

    assert sorted(called) == [(number, number, threads[number], 3) for number in range(3)]


def test_hooks_of_work_that_fails_are_not_called():
    called = []

    def fail() -> None:
        transaction.on_commit(lambda: called.append("failed"))
        raise ZeroDivisionError

    with another_transaction() as waiting:
        waiting.share(lambda: transaction.on_commit(lambda: called.append("first")))
        waiting.share(fail)
        waiting.share(lambda: transaction.on_commit(lambda: called.append("last")))

    assert sorted(called) == ["first", "last"]


def test_work_within_a_transaction_belongs_to_that_transaction():
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        execute_in_transaction(lambda: hold("undone"))
        raise ZeroDivisionError

    assert held_queues() == []


@pytest.fixture
def _short_timeout() -> Iterator[None]:
    settings.DATABASES["default"]["OPTIONS"]["timeout"] = 0.05
    connection.close()
    yield
    settings.DATABASES["default"]["OPTIONS"]["timeout"] = 20
    connection.close()


@pytest.mark.usefixtures("_short_timeout")
def test_work_whose_turn_does_not_come_in_time_is_refused_and_other_work_follows():
    def refused(number: int) -> str:
        with pytest.raises(OperationalError, match="database is locked"):
            execute_in_transaction(lambda: hold(f"late {number}"))
        return "refused"

    with transaction.atomic():
        assert at_once(refused, 5) == ["refused"] * 5

    assert not queue().is_taken
    assert not queue().sharing
    assert at_once(lambda number: execute_in_transaction(lambda: hold(f"{number}")), 3) == ["0", "1", "2"]


@pytest.mark.usefixtures("_short_timeout")
def test_another_process_that_writes_too_long_fails_the_leader_only():
    with sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OperationalError, match="database is locked"):
            execute_in_transaction(lambda: hold("late"))
        other.execute("ROLLBACK")

    assert execute_in_transaction(lambda: hold("next")) == "next"


class Interrupted(BaseException):
    """What the handler of a signal raises in the main thread."""


@pytest.mark.parametrize("is_first", [True, False])
def test_work_whose_wait_a_signal_ends_holds_up_no_other(is_first):
    def interrupt(_signal: int, _frame: Any) -> None:
        raise Interrupted

    def write_and_interrupt() -> None:
        with transaction.atomic():
            is_writing.set()
            while not (queue().sharing if not is_first else queue().waiting):
                pass
            pthread_kill(main_thread().ident, SIGUSR1)
            is_interrupted.wait(30)
        connection.close()

    def share(name: str) -> str:
        try:
            return execute_in_transaction(lambda: hold(name))
        finally:
            connection.close()

    is_writing, is_interrupted, before = Event(), Event(), signal(SIGUSR1, interrupt)
    with ThreadPoolExecutor(3) as threads:
        writing = threads.submit(write_and_interrupt)
        is_writing.wait(30)
        others = [] if is_first else [threads.submit(share, "other")]
        while others and not queue().waiting:
            pass
        with pytest.raises(Interrupted):
            execute_in_transaction(lambda: hold("interrupted"))
        is_interrupted.set()
        writing.result(30)
        assert [other.result(30) for other in others] == ["other"] * len(others)
    signal(SIGUSR1, before)

    assert execute_in_transaction(lambda: hold("next")) == "next"
    assert "interrupted" not in held_queues()


def test_reports_on_several_runs_and_on_one_run_share_a_commit(clock, commits):
    scenarios = [Scenario(clock, step("a"), step("b"), name=f"order{number}") for number in range(3)]
    for _ in scenarios:
        scenarios[0].worker("a").polls()
    ids = [(scenario.id, scenario.task("a").id) for scenario in scenarios]
    before = commits()

    with another_transaction() as waiting:
        results = [
            waiting.add(partial(report_task, run_id, attempt_id, Report("COMPLETED"), ACTOR))
            for run_id, attempt_id in [*ids, ids[1]]
        ]

    assert [result.result() for result in results] == [True, True, True, False]
    assert commits() - before == 1
    for scenario in scenarios:
        assert scenario.statuses == {"a": "COMPLETED", "b": "SCHEDULED"}
        assert HistoryEntry.objects.filter(run_id=scenario.id, reason="").count() == 2


def test_claims_that_wait_share_a_commit_and_each_gets_a_task_of_its_own(clock, commits):
    for number in range(3):
        Scenario(clock, step("a"), name=f"order{number}")
    before = commits()

    with another_transaction() as waiting:
        results = [waiting.add(partial(claim_now, "a", f"worker {number}", 1)) for number in range(3)]

    claimed = [attempt for result in results for attempt in result.result()]
    assert len({attempt.id for attempt in claimed}) == 3
    assert [attempt.worker for attempt in claimed] == ["worker 0", "worker 1", "worker 2"]
    assert commits() - before == 1


@pytest.mark.slow
def test_two_thousand_starts_of_twenty_clients_exist_once_with_fewer_commits(clock, commits):
    Scenario(clock, step("a"), name="order")
    before = commits()

    def start(number: int) -> list[str]:
        return [start_run(StartRequest("order", correlation_id=f"{number}/{n}"), ACTOR) for n in range(100)]

    ids = [id for found in at_once(start, 20) for id in found]

    assert len(set(ids)) == 2000 == Run.objects.filter(pk__in=ids, status="RUNNING").count()
    assert commits() - before < 2000


def test_a_start_and_a_report_share_a_commit(clock, commits):
    scenario = Scenario(clock, step("a"), name="order")
    scenario.worker("a").polls()
    attempt, before = scenario.task("a").id, commits()

    with another_transaction() as waiting:
        waiting.add(partial(report_task, scenario.id, attempt, Report("COMPLETED"), ACTOR))
        started = waiting.add(partial(start_run, StartRequest("order"), ACTOR))

    assert Run.objects.get(pk=started.result()).status == "RUNNING"
    assert scenario.task("a").status == "COMPLETED"
    assert commits() - before == 1
