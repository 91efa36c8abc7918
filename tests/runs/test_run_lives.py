"""The lives of a run: from a start or a retry, rerun or restart to the end."""

import pytest

from conductor_app.runs.timeline.queries import run_lives
from conductor_app.runs.timeline.tree import Folding, load_tree
from conductor_app.utils import clock as product_clock
from tests.builders import definition, simple, sub_workflow
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db


def failed_scenario(clock):
    scenario = Scenario(clock, simple("pack"), simple("ship"))
    scenario.later(seconds=1).worker("pack").completes()
    scenario.later(seconds=2).worker("ship").fail_terminally("no truck")
    return scenario.later(seconds=600)


def lives(scenario):
    began = scenario.began
    found = run_lives(scenario.row, product_clock.now())
    return [((life.begin - began) // 1000, (life.end - began) // 1000) for life in found]


def test_a_run_that_was_never_reopened_has_one_life(clock, django_assert_num_queries):
    scenario = Scenario(clock, simple("pack"))
    scenario.later(seconds=5)
    run = scenario.row

    with django_assert_num_queries(0):
        [life] = run_lives(run, product_clock.now())
    assert life.duration_ms == 5_000


def test_a_retry_begins_another_life(clock):
    scenario = failed_scenario(clock)
    scenario.retry()
    scenario.later(seconds=4).worker("ship").completes()

    assert lives(scenario) == [(0, 3), (603, 607)]


def test_the_life_before_a_restart_is_known(clock):
    scenario = failed_scenario(clock)
    scenario.restart()
    scenario.later(seconds=4)

    assert lives(scenario) == [(0, 3), (603, 607)]


def test_a_terminated_run_that_is_terminated_again_has_one_end(clock):
    scenario = failed_scenario(clock)
    scenario.terminate("give up")
    scenario.rerun("pack")

    assert lives(scenario) == [(0, 3), (603, 603)]


def test_the_tasks_of_an_open_sub_workflow_are_below_it(clock, django_assert_max_num_queries):
    child = definition(simple("pack"), name="child")
    scenario = Scenario(clock, sub_workflow("sub"), others=[child]).later(seconds=1)
    run = scenario.row

    assert [row.id for row in load_tree(run, Folding(), product_clock.now()).rows] == ["sub"]
    load_tree(run, Folding(opened=frozenset({"sub"})), product_clock.now())  # reads the definitions, once per process
    with django_assert_max_num_queries(3):
        tree = load_tree(run, Folding(opened=frozenset({"sub"})), product_clock.now())
    assert [row.id for row in tree.rows] == ["sub", "sub>pack"]
    assert tree.rows[1].node.run_id == scenario.child("sub").id
