"""Baseline of the database: the rows of one claim and one completion, written by plain SQL."""

import multiprocessing
import time
import uuid

STEPS = 4000


def measure_baseline(database_url: str, processes: int = 2) -> float:
    """Measure the claim-and-complete steps per second that the database executes as plain SQL."""
    if not database_url.startswith("postgres"):
        return _measure_sqlite_baseline(database_url.removeprefix("sqlite:///"))
    _prepare(database_url, processes)
    context = multiprocessing.get_context("fork")
    running = [context.Process(target=_claim_and_complete, args=(database_url, number)) for number in range(processes)]
    began = time.perf_counter()
    for process in running:
        process.start()
    for process in running:
        process.join()
    return processes * STEPS / (time.perf_counter() - began)


TABLES = (
    "DROP TABLE IF EXISTS floor_attempt",
    "CREATE TABLE floor_attempt (id text PRIMARY KEY, queue text, status text, worker text, output text, "
    "visible_at bigint, due_at bigint, ended_at bigint)",
    "CREATE INDEX floor_waiting ON floor_attempt (queue, visible_at) WHERE status = 'PENDING'",
)
CLAIM = (
    "UPDATE floor_attempt SET status = 'LEASED', worker = 'w', due_at = 1 WHERE id = (SELECT id FROM floor_attempt "
    "WHERE queue = {mark} AND status = 'PENDING' ORDER BY visible_at LIMIT 1 {lock}) RETURNING id"
)
COMPLETE = (
    "UPDATE floor_attempt SET status = 'COMPLETED', output = '{{\"done\": true}}', ended_at = 2 "
    "WHERE id = {mark} AND status = 'LEASED'"
)


def _prepare(url: str, processes: int) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for table in TABLES:
            connection.execute(table)
        with connection.cursor().copy("COPY floor_attempt (id, queue, status, visible_at) FROM STDIN") as copy:
            for number in range(processes):
                for place in range(STEPS):
                    copy.write_row((str(uuid.uuid4()), f"q{number}", "PENDING", place))
        connection.execute("ANALYZE floor_attempt")


def _claim_and_complete(url: str, number: int) -> None:
    import psycopg

    claim, complete = CLAIM.format(mark="%s", lock="FOR UPDATE SKIP LOCKED"), COMPLETE.format(mark="%s")
    with psycopg.connect(url, autocommit=True, prepare_threshold=1) as connection:
        for _ in range(STEPS):
            [(id,)] = connection.execute(claim, [f"q{number}"]).fetchall()
            connection.execute(complete, [id])


def _measure_sqlite_baseline(path: str) -> float:
    import sqlite3

    connection = sqlite3.connect(path, isolation_level=None, timeout=20)
    connection.execute("PRAGMA synchronous=NORMAL")
    for table in TABLES:
        connection.execute(table)
    connection.executemany(
        "INSERT INTO floor_attempt (id, queue, status, visible_at) VALUES (?, 'q', 'PENDING', ?)",
        [(str(uuid.uuid4()), place) for place in range(STEPS)],
    )
    claim, complete = CLAIM.format(mark="?", lock=""), COMPLETE.format(mark="?")
    began = time.perf_counter()
    for _ in range(STEPS):
        [(id,)] = connection.execute(claim, ["q"]).fetchall()
        connection.execute(complete, [id])
    return STEPS / (time.perf_counter() - began)
