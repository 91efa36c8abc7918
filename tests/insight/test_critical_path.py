"""The chain of tasks that decided how long a run took."""

from dataclasses import replace

import pytest

from conductor_app.insight.runs.critical_path import TaskSpan, critical_path, critical_path_of, enclosing_branches
from tests.builders import definition, fork, step_without_policy, sub_workflow
from tests.scenario import Scenario


def task(key, begin, end, **facts):
    ref, *path = key.split("__")
    return TaskSpan(key, ref, begin, end, facts.pop("seq", 0), iteration_path=tuple(path), **facts)


def numbered(*tasks):
    return [replace(each, seq=number) for number, each in enumerate(tasks, 1)]


def path(*tasks, within=None, last=""):
    return [each.key for each in critical_path(numbered(*tasks), within, last)]


FORK = {
    "taskReferenceName": "both",
    "type": "FORK_JOIN",
    "forkTasks": [
        [{"taskReferenceName": "a"}, {"taskReferenceName": "a2"}],
        [{"taskReferenceName": "b"}, {"taskReferenceName": "b2"}],
    ],
}
"""Two branches of two steps each."""


def test_a_sequence_is_its_own_path():
    assert path(task("a", 0, 5), task("b", 5, 9), task("c", 9, 10)) == ["a", "b", "c"]


def test_an_empty_run_has_no_critical_path():
    assert path() == [] and path(task("all", 0, 5, type="JOIN")) == []


def test_the_last_branch_of_a_fork_is_critical():
    tasks = (
        task("both", 0, 0, type="FORK_JOIN"),
        task("a", 0, 3),
        task("b", 0, 7),
        task("joined", 0, 9, type="JOIN"),
        task("a2", 3, 9),
        task("b2", 7, 8),
        task("after", 9, 12),
    )

    assert path(*tasks, within=enclosing_branches([FORK])) == ["a", "a2", "after"]


def test_a_task_that_ended_simultaneously_in_another_branch_is_not_a_predecessor():
    tasks = (task("a", 0, 3), task("b", 0, 3), task("a2", 3, 9), task("b2", 3, 4))

    assert path(*tasks, within=enclosing_branches([FORK])) == ["a", "a2"]


def test_a_later_iteration_can_depend_on_another_branch_of_an_earlier_one():
    loop = {"taskReferenceName": "loop", "type": "DO_WHILE", "loopOver": [FORK]}
    tasks = (
        task("loop", 0, 20, type="DO_WHILE"),
        task("a__1", 0, 2), task("b__1", 0, 5), task("a2__1", 2, 3), task("b2__1", 5, 6),
        task("a__2", 6, 14), task("b__2", 6, 7), task("a2__2", 14, 20), task("b2__2", 7, 8),
    )  # fmt: skip

    assert path(*tasks, within=enclosing_branches([loop])) == ["b__1", "b2__1", "a__2", "a2__2"]


def test_branches_of_a_dynamic_fork_are_parallel():
    tasks = (
        task("pick", 0, 1),
        task("x_0", 1, 4, branch_head="x_0"), task("x_1", 1, 4, branch_head="x_1"),
        task("x_0_then", 4, 5, branch_head="x_0"), task("x_1_then", 4, 9, branch_head="x_1"),
        task("after", 9, 10),
    )  # fmt: skip

    assert path(*tasks) == ["pick", "x_1", "x_1_then", "after"]


def test_the_critical_path_of_a_failed_run_ends_with_the_failed_task():
    tasks = (task("a", 0, 5, status="FAILED"), task("b", 0, 5, status="CANCELED"))

    assert path(*tasks) == ["a"]
    assert path(*tasks, last="b") == ["b"]


def test_a_run_of_thousands_of_iterations_is_analyzed_quickly():
    tasks = [task(f"a__{n}", n, n + 1) for n in range(5_000)]

    assert len(path(*tasks)) == 5_000


@pytest.mark.django_db
def test_a_run_with_a_fork_and_a_sub_workflow_is_analyzed_from_its_rows(clock, django_assert_max_num_queries):
    child = definition(step_without_policy("pack"), name="child")
    scenario = Scenario(
        clock, fork([step_without_policy("quick")], [sub_workflow("sub")]), step_without_policy("ship"), others=[child]
    )
    scenario.later(seconds=1).worker("quick").completes()
    scenario.later(seconds=5).worker("pack").completes()
    scenario.later(seconds=2).worker("ship").completes()

    run = scenario.row

    with django_assert_max_num_queries(2):  # one of them for the plan, which is read once in a process
        found = critical_path_of(run, clock.now())

    assert [link.key for link in found] == ["sub", "ship"]
