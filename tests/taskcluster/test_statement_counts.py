"""SQL statements per worker request, without transaction control."""

import pytest

from tests.runs.test_statements import Counted

from .conftest import LINUX, new_id


@pytest.fixture
def working(queue):
    """Create twelve tasks of one group for a known worker; two of them are completed."""
    group = new_id()
    for _ in range(12):
        queue.create(taskGroupId=group)
    for claim in queue.claim(tasks=2):
        queue.report(claim["status"]["taskId"], 0, "completed")
    return queue


def test_a_claim_that_finds_work_takes_four_statements(working):
    with Counted() as counted:
        claims = working.claim(tasks=5)

    assert len(claims) == 5
    assert counted.count <= 4, counted.statements


def test_a_claim_that_finds_nothing_takes_one_statement(working):
    working.claim(tasks=10)

    with Counted() as counted:
        assert working.claim() == []

    assert counted.count <= 1, counted.statements


def test_a_reclaim_takes_four_statements(working):
    first, second = (claim["status"]["taskId"] for claim in working.claim(tasks=2))
    working.post(f"/task/{first}/runs/0/reclaim")

    with Counted() as counted:
        assert working.post(f"/task/{second}/runs/0/reclaim").status_code == 200

    assert counted.count <= 4, counted.statements


@pytest.mark.parametrize(("how", "most"), [("completed", 7), ("failed", 8), ("malformed-payload", 8)])
def test_a_report_takes_seven_statements_and_one_for_a_failure(working, how, most):
    [claim] = working.claim()

    with Counted() as counted:
        assert working.report(claim["status"]["taskId"], 0, how).status_code == 200

    assert counted.count <= most, counted.statements


def test_the_report_on_the_last_task_of_a_group_takes_eight_statements(working):
    *others, last = working.claim(tasks=10)
    for claim in others:
        working.report(claim["status"]["taskId"], 0, "completed")

    with Counted() as counted:
        working.report(last["status"]["taskId"], 0, "completed")

    assert counted.count <= 8, counted.statements
    assert working.message_names(last["status"]["taskId"])[-1] == "task-completed"
    assert working.message_names("")[-1] == "task-group-resolved"


def test_a_task_with_many_runs_takes_as_many_statements_as_one_with_few(queue):
    id = queue.create(retries=20)
    costs = []
    for number in range(20):
        queue.claim()
        with Counted() as counted:
            queue.report(id, number, "worker-shutdown")
        costs.append(counted.count)

    assert costs[1] == costs[-1]
    assert queue.claim(queue=LINUX)
