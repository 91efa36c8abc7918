"""SQL statements per step (docs/explanation/architecture.md), without transaction control."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.builders import dynamic_fork, each, fork, inline, loop, policy, simple, step, switch
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db

NOT_COUNTED = ("conductor_poller", '"conductor_resolveddefinition"')
"""Excluded: worker registration happens once a second, and definitions are loaded once per process."""
CONTROL = ("SAVEPOINT", "RELEASE", "BEGIN", "COMMIT", "ROLLBACK")


class Counted(CaptureQueriesContext):
    """Statements of a block, without transaction control."""

    def __init__(self) -> None:
        super().__init__(connection)

    @property
    def statements(self) -> list[str]:
        found = [query["sql"] for query in self.captured_queries]
        return [sql for sql in found if not sql.startswith(CONTROL) and not any(table in sql for table in NOT_COUNTED)]

    @property
    def reads_all(self) -> bool:
        """Return whether the statement reads all tasks of a run."""
        return any(re.search(r"WHERE t\.run_id = \S+ ORDER BY t\.seq$", sql) for sql in self.statements)

    @property
    def count(self) -> int:
        return len(self.statements)


def test_an_empty_poll_takes_one_statement(clock):
    scenario = Scenario(clock, step("a"))

    with Counted() as counted:
        assert scenario.worker("nothing").polls() == []

    assert counted.count <= 1, counted.statements


def test_a_successful_poll_takes_one_statement_on_postgresql_and_three_on_sqlite(clock):
    scenario = Scenario(clock, step("a"))

    with Counted() as counted:
        assert scenario.worker("a").polls() == ["a"]

    assert counted.count <= (1 if connection.vendor == "postgresql" else 3), counted.statements


STEPS = {
    "in a sequence": [step("a"), step("b")],
    "before a switch": [step("a"), switch("way", {"x": [step("b")]}, inputs={"case": "x"})],
    "before a fork": [step("a"), *fork([step("b")], [step("c")])],
    "in a branch": fork([step("a"), step("b")], [step("c")]),
    "in a loop": [loop("l", step("a"), step("b"), times=2)],
}


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_a_report_that_schedules_the_next_task_takes_eight_statements(clock, steps):
    scenario = Scenario(clock, *steps)
    scenario.worker("a").polls()

    with Counted() as counted:
        scenario.worker("a").completes(n=1)

    assert scenario.queue("b")
    assert counted.count <= 8, counted.statements


def test_a_report_in_a_sequence_takes_seven_statements(clock):
    scenario = Scenario(clock, step("a"), step("b"))
    scenario.worker("a").polls()

    with Counted() as counted:
        scenario.worker("a").completes(n=1)

    assert counted.count <= 7, counted.statements


def test_a_report_that_ends_an_iteration_with_scripts_reads_the_run_once(clock):
    total = inline("total", "$.n * 2", inputs={"n": "${l.output.iteration}"})
    way = switch("way", {"yes": [step("b")]}, evaluatorType="javascript", expression="$.n < 9 ? 'yes' : 'no'")
    body = [total, way | {"inputParameters": {"n": "${total.output.result}"}}]
    scenario = Scenario(clock, loop("l", *body, loopCondition="if ($.l['iteration'] < 3) { true; } else { false; }"))
    scenario.worker("b").polls()

    with Counted() as counted:
        scenario.worker("b").completes(n=1)

    assert scenario.task("way__2").output["selectedCase"] == "yes"
    assert scenario.queue("b")
    assert len([sql for sql in counted.statements if sql.startswith("SELECT r.id,")]) == 1
    assert counted.count <= 11, counted.statements


def test_a_referenced_payload_takes_two_more_statements(clock):
    scenario = Scenario(clock, step("z"), step("a"), step("b", inputs={"n": "${z.output.n}"}))
    scenario.worker("z").completes(n=1)
    scenario.worker("a").polls()

    with Counted() as counted:
        scenario.worker("a").completes()

    assert scenario.task("b").input == {"n": 1}
    assert counted.count <= 10, counted.statements


def test_a_lease_renewal_takes_few_statements(clock):
    scenario = Scenario(clock, step("a", policy=policy(lease_seconds=20)))
    scenario.worker("a").polls()

    with Counted() as counted:
        scenario.worker("a").extend_lease()

    assert counted.count <= 6, counted.statements


def costs_of_branches(clock, width: int) -> set[int]:
    inputs = {"forkTaskInputs": list(range(width)), "forkTaskName": "pay"}
    scenario = Scenario(clock, *dynamic_fork(inputs=inputs, optional=False), simple("after"), tasks=[policy("pay")])
    costs = set()
    for number in range(width):
        measured = number in (1, width // 2, width - 2)
        scenario.worker("pay").polls()
        with Counted() as counted:
            scenario.worker("pay").completes()
        costs |= {counted.count} if measured else set()
    assert scenario.is_waiting_for("after")
    return costs


@pytest.mark.slow
def test_a_branch_of_a_wide_fork_costs_as_much_as_one_of_a_narrow_fork(clock):
    narrow, wide = costs_of_branches(clock, 10), costs_of_branches(clock, 300)

    assert len(wide) == 1
    assert wide == narrow


def costs_of_items(clock, count: int, **settings) -> list[int]:
    """Return the statements of the reports that end an early, a middle and a late item, each of which starts the next
    one.
    """
    body = step("pay", inputs={"item": "${each.output.item}"})
    items = each("each", body, items="${workflow.input.items}", **settings)
    scenario = Scenario(clock, items, simple("after"), input={"items": ["x" * 10] * count})
    costs = []
    for number in range(count):
        scenario.worker("pay").polls()
        with Counted() as counted:
            scenario.worker("pay").completes() if number % 3 else scenario.worker("pay").fail_terminally()
        costs.append(counted.count)
    assert scenario.is_waiting_for("after")
    return [costs[number] for number in (1, 2, 3, count // 6 * 3 + 1, count // 6 * 3, count - 6, count - 5)]


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"parallel": 4}, {"keepLastN": 2}], ids=str)
def test_an_item_of_a_long_list_costs_as_much_as_one_of_a_short_list(clock, settings):
    settings = {"onItemFailure": "CONTINUE", **settings}
    short, long = costs_of_items(clock, 12, **settings), costs_of_items(clock, 120, **settings)

    assert set(long) <= set(short), (short, long)
    assert max(long) <= 14


def test_a_wide_fork_is_written_in_few_statements(clock):
    inputs = {"forkTaskInputs": list(range(300)), "forkTaskName": "pay"}

    with Counted() as counted:
        Scenario(clock, *dynamic_fork(inputs=inputs, optional=False), tasks=[policy("pay")])

    assert counted.count < 40, counted.statements


@pytest.mark.slow
def test_a_late_step_of_a_long_run_costs_as_much_as_an_early_one(clock):
    scenario = Scenario(clock, loop("l", step("a"), times=60))
    costs = []
    for _ in range(59):
        scenario.worker("a").polls()
        with Counted() as counted:
            scenario.worker("a").completes()
        costs.append(counted.count)

    assert costs[1] == costs[-1]


def costs_of_forking_items(clock, count: int) -> list[tuple[int, bool]]:
    """Return the statements of the reports that end an early, a middle and a late item, each of which starts the next
    one with a dynamic fork, and whether they read all tasks of the run.
    """
    fork_inputs = {"forkTaskInputs": [1, 2], "forkTaskName": "pay"}
    items = each("each", *dynamic_fork(inputs=fork_inputs, optional=False), items="${workflow.input.items}")
    scenario = Scenario(clock, items, simple("after"), input={"items": ["x"] * count}, tasks=[policy("pay")])
    costs = []
    for _ in range(count):
        scenario.worker("pay").completes()
        scenario.worker("pay").polls()
        with Counted() as counted:
            scenario.worker("pay").completes()
        costs.append((counted.count, counted.reads_all))
    assert scenario.is_waiting_for("after")
    return [costs[1], costs[count // 2], costs[count - 3]]


@pytest.mark.slow
def test_a_dynamic_fork_in_an_item_of_a_long_list_costs_as_much_as_in_a_short_list(clock):
    short, long = costs_of_forking_items(clock, 8), costs_of_forking_items(clock, 50)

    assert set(long) == set(short), (short, long)
    assert [reads_all for _, reads_all in long] == [False] * 3
    assert max(count for count, _ in long) <= 24
