"""The critical path: the chain of tasks that determines the duration of a run."""

from dataclasses import replace

import pytest

from conductor_app.runs.timeline.queries import TaskSpan, critical_path, critical_path_among, enclosing_branches
from conductor_app.runs.timeline.tree import spans_of_run
from tests.builders import definition, fork, step_without_policy, sub_workflow
from tests.scenario import Scenario


def task_span(key, begin, end, **facts):
    ref, *iteration_path = key.split("__")
    return TaskSpan(key, ref, begin, end, facts.pop("seq", 0), iteration_path=tuple(iteration_path), **facts)


def with_sequence_numbers(*tasks):
    return [replace(each, seq=number) for number, each in enumerate(tasks, 1)]


def find_path(*tasks, within=None, last=""):
    return [each.key for each in critical_path(with_sequence_numbers(*tasks), within, last)]


FORK = {
    "taskReferenceName": "both",
    "type": "FORK_JOIN",
    "forkTasks": [
        [{"taskReferenceName": "a"}, {"taskReferenceName": "a2"}],
        [{"taskReferenceName": "b"}, {"taskReferenceName": "b2"}],
    ],
}
"""A fork with two branches of two steps each."""


def test_a_sequence_is_its_own_path():
    assert find_path(task_span("a", 0, 5), task_span("b", 5, 9), task_span("c", 9, 10)) == ["a", "b", "c"]


def test_an_empty_run_has_no_critical_path():
    assert find_path() == [] and find_path(task_span("all", 0, 5, type="JOIN")) == []


def test_the_last_branch_of_a_fork_is_critical():
    tasks = (
        task_span("both", 0, 0, type="FORK_JOIN"),
        task_span("a", 0, 3),
        task_span("b", 0, 7),
        task_span("joined", 0, 9, type="JOIN"),
        task_span("a2", 3, 9),
        task_span("b2", 7, 8),
        task_span("after", 9, 12),
    )

    assert find_path(*tasks, within=enclosing_branches([FORK])) == ["a", "a2", "after"]


def test_a_task_that_ended_simultaneously_in_another_branch_is_not_a_predecessor():
    tasks = (task_span("a", 0, 3), task_span("b", 0, 3), task_span("a2", 3, 9), task_span("b2", 3, 4))

    assert find_path(*tasks, within=enclosing_branches([FORK])) == ["a", "a2"]


def test_a_later_iteration_can_depend_on_another_branch_of_an_earlier_one():
    loop = {"taskReferenceName": "loop", "type": "DO_WHILE", "loopOver": [FORK]}
    tasks = (
        task_span("loop", 0, 20, type="DO_WHILE"),
        task_span("a__1", 0, 2), task_span("b__1", 0, 5), task_span("a2__1", 2, 3), task_span("b2__1", 5, 6),
        task_span("a__2", 6, 14), task_span("b__2", 6, 7), task_span("a2__2", 14, 20), task_span("b2__2", 7, 8),
    )  # fmt: skip

    assert find_path(*tasks, within=enclosing_branches([loop])) == ["b__1", "b2__1", "a__2", "a2__2"]


def test_branches_of_a_dynamic_fork_are_parallel():
    tasks = (
        task_span("pick", 0, 1),
        task_span("x_0", 1, 4, branch_head="x_0"), task_span("x_1", 1, 4, branch_head="x_1"),
        task_span("x_0_then", 4, 5, branch_head="x_0"), task_span("x_1_then", 4, 9, branch_head="x_1"),
        task_span("after", 9, 10),
    )  # fmt: skip

    assert find_path(*tasks) == ["pick", "x_1", "x_1_then", "after"]


def test_the_critical_path_of_a_failed_run_ends_with_the_failed_task():
    tasks = (task_span("a", 0, 5, status="FAILED"), task_span("b", 0, 5, status="CANCELED"))

    assert find_path(*tasks) == ["a"]
    assert find_path(*tasks, last="b") == ["b"]


def test_a_run_of_thousands_of_iterations_is_analyzed_quickly():
    tasks = [task_span(f"a__{n}", n, n + 1) for n in range(5_000)]

    assert len(find_path(*tasks)) == 5_000


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

    with django_assert_max_num_queries(2):  # one of them reads the definition, once per process
        spans = critical_path_among(run, spans_of_run(run.pk, clock.now()))

    assert [span.key for span in spans] == ["sub", "ship"]
