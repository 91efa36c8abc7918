"""The commit that PostgreSQL receives with the last statements of a transaction."""

import pytest
from django.db import IntegrityError, connection, transaction

from conductor_app.db.statements import fetch
from conductor_app.runs.store.writing import StaleRow, StatementBatch
from tests.builders import step
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db(transaction=True)

HOLD = "INSERT INTO conductor_queuehold (queue, until_at, reason, by, held_at) VALUES (%s, 5, '', '', 1)"
EXTEND = "UPDATE conductor_queuehold SET until_at = 9 WHERE queue = %s"


def holds() -> list[tuple[str, int]]:
    return fetch("SELECT queue, until_at FROM conductor_queuehold ORDER BY queue")


def send(*statements: tuple[str, list, int | None]) -> None:
    batch = StatementBatch(ends_transaction=True)
    for sql, params, expected in statements:
        batch.run(sql, params, expected)
    with transaction.atomic():
        batch.send()


def test_the_statements_are_committed_and_hooks_run_after_the_commit():
    seen = []
    with transaction.atomic():
        batch = StatementBatch(ends_transaction=True)
        batch.run(HOLD, ["a"], expected=1)
        batch.run(EXTEND, ["a"], expected=1)
        transaction.on_commit(lambda: seen.append(holds()))
        batch.send()
        assert seen == []

    assert seen == [[("a", 9)]]
    assert not connection.in_atomic_block


@pytest.mark.parametrize("position", [0, 1])
def test_a_statement_that_changes_another_number_of_rows_undoes_all(position):
    statements = [(HOLD, ["a"], 1)]
    statements.insert(position, (EXTEND, ["missing"], 1))

    with pytest.raises(StaleRow):
        send(*statements)

    assert holds() == []


def test_a_failed_statement_undoes_all_and_the_connection_stays_usable():
    for _ in range(2):
        with pytest.raises(IntegrityError):
            send((HOLD, ["a"], 1), (HOLD, ["a"], None))

        assert holds() == []
    send((HOLD, ["a"], 1))
    assert holds() == [("a", 5)]


def test_a_report_within_a_larger_transaction_is_undone_with_it(clock):
    scenario = Scenario(clock, step("a"), step("b"))
    scenario.worker("a").polls()

    with pytest.raises(ZeroDivisionError), transaction.atomic():
        scenario.worker("a").completes()
        raise ZeroDivisionError

    assert scenario.task("a").status == "LEASED"
