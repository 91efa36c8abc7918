"""Faults of the database: clients receive a status that they retry, and connections are replaced."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection, connections
from django.test import Client

from conductor_app.runs.models import Run
from tests.builders import definition, step
from tests.scenario import register_definitions
from tests.taskcluster.conftest import Queue, new_id, refusal_code

pytestmark = pytest.mark.django_db(transaction=True)
START = {"name": "order", "input": {"text": "x" * 100_000}}
MAX_REQUESTS = 300


@pytest.fixture
def client_without_exceptions() -> Client:
    return Client(raise_request_exception=False)


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Let the database refuse to grow, as on a full disk."""
    if connection.vendor != "sqlite":
        pytest.skip("Only SQLite can limit the size of its file.")
    register_definitions(definition(step("a"), name="order"))
    with connection.cursor() as cursor:
        [pages] = cursor.execute("PRAGMA page_count").fetchone()
        [limit] = cursor.execute("PRAGMA max_page_count").fetchone()
        cursor.execute(f"PRAGMA max_page_count = {pages}")
        yield
        cursor.execute(f"PRAGMA max_page_count = {limit}")


def until_refused(send: Callable[[], Any]) -> Iterator[Any]:
    """Send a request until it fails, because the database may have free pages. Yield the replies."""
    for _ in range(MAX_REQUESTS):
        reply = send()
        yield reply
        if reply.status_code != 200:
            return


def test_a_start_on_a_full_disk_is_retryable_and_not_acknowledged(full_disk, client_without_exceptions):
    replies = list(
        until_refused(lambda: client_without_exceptions.post("/api/workflow", START, content_type="application/json"))
    )

    refused = replies[-1]
    assert (refused.status_code, refused.json()["retryable"], refused.headers["Retry-After"]) == (503, True, "1")
    assert Run.objects.count() == sum(reply.status_code == 200 for reply in replies)


def test_a_taskcluster_method_on_a_full_disk_is_retryable(full_disk, clock):
    queue, payload = Queue(clock), {"text": "x" * 100_000}

    replies = list(until_refused(lambda: queue.request_creation(new_id(), payload=payload)))

    assert {reply.status_code for reply in replies} <= {200, 503}
    assert refusal_code(replies[-1]) == (503, "InternalServerError")


def end_other_sessions() -> int:
    """End the sessions of this process, as a restart of the server does. Returns their number when they have ended."""
    parameters = connection.get_connection_params()
    named = {name: parameters[name] for name in ("dbname", "user", "host", "port", "password") if name in parameters}
    with psycopg.connect(**named, autocommit=True) as other:
        ended = other.execute(
            "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchone()
    return ended[0] if ended else 0


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no connections to lose.")
def test_requests_after_a_restart_of_the_database_use_new_connections(client_without_exceptions):
    statuses: list[int] = []

    def request() -> None:
        statuses.append(client_without_exceptions.get("/api/metadata/taskdefs").status_code)
        connections.close_all()

    def request_in_threads(count: int) -> None:
        threads = [threading.Thread(target=request) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    request_in_threads(8)
    connections.close_all()
    assert end_other_sessions() > 0

    request_in_threads(8)

    assert statuses == [200] * 16


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has one writer and no lock timeout.")
def test_statements_locks_and_open_transactions_have_time_limits():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('statement_timeout'), current_setting('lock_timeout'),"
            " current_setting('idle_in_transaction_session_timeout')"
        )
        assert cursor.fetchone() == ("1min", "20s", "1min")
