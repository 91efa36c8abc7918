"""Two runs compared on a page."""

import pytest

from tests.builders import definition, policy, step
from tests.page_text import html, page_text
from tests.scenario import Scenario, register_definitions

pytestmark = pytest.mark.django_db


def address(run) -> str:
    return f"/admin/runs/{run.id}/compare/"


@pytest.fixture
def pair(clock):
    """Return a run that succeeded and one that failed at its second task."""
    scenario = Scenario(clock, step("pay", policy=policy(retries=1)), step("ship"), input={"order": 1, "by": "ann"})
    scenario.worker("pay", "w@1").completes()
    scenario.worker("ship", "w@1").completes()
    clock.advance(seconds=60)
    bad = scenario.starts("order", {"order": 2, "by": "ann"})
    scenario.worker("pay", "w@1").polls()
    clock.advance(seconds=5)
    scenario.worker("pay", "w@1").completes()
    scenario.worker("ship", "w@2").fails()
    return scenario, bad


def test_a_failed_run_is_compared_with_the_last_that_succeeded(operator, pair):
    good, bad = pair

    answer = operator.get(address(bad))
    page = page_text(answer)

    assert good.id in html(answer) and good.id not in page
    assert "last success order 1" in page and "Run order 2 order 1" in page
    assert "ship Failed Completed" in page and "2 / 1" in page
    assert "Show 1 equal row" in page
    assert "Input Path This run Other run order 2 1" in page


def test_all_tasks_can_be_shown(operator, pair):
    good, bad = pair

    page = page_text(operator.get(address(bad), {"with": good.id, "all": "yes"}))

    assert "pay Completed Completed" in page and "5.0 s faster" in page


def test_equal_runs_are_summarized_in_one_line(operator, clock):
    scenario = Scenario(clock, step("pay"))
    other = scenario.starts("order")
    for _ in range(2):
        scenario.worker("pay").completes()

    assert "Only times differ" in page_text(operator.get(address(scenario), {"with": other.id}))


def test_runs_of_different_definitions_are_compared_by_name(operator, pair):
    good, _ = pair
    register_definitions(definition(step("pay"), step("mail"), name="refund"))
    other = good.starts("refund")

    page = page_text(operator.get(address(good), {"with": other.id}))

    assert "different definitions" in page
    assert "ship Completed –" in page


def test_an_unknown_run_is_reported(operator, clock):
    scenario = Scenario(clock, step("pay"))

    assert "No other run of order" in page_text(operator.get(address(scenario)))
    assert "There is no run nobody" in page_text(operator.get(address(scenario), {"with": "nobody"}))
    assert operator.get("/admin/runs/nobody/compare/").status_code == 404


def test_the_other_run_is_named_by_its_correlation_id_or_the_start_of_its_id(operator, pair):
    good, bad = pair
    other = good.starts("order", {"order": 3}, correlation_id="c-0244")
    good.starts("order", {"order": 4})

    assert "Run order 2 c-0244" in page_text(operator.get(address(bad), {"with": "c-0244"}))
    assert "Run order 2 order 1" in page_text(operator.get(address(bad), {"with": good.id[:-2]}))
    assert "Run order 2 c-0244" in page_text(operator.get(address(bad), {"with": other.id}))


def test_a_comparison_takes_few_queries(operator, pair, django_assert_max_num_queries):
    _, bad = pair
    operator.get(address(bad))
    with django_assert_max_num_queries(15):
        operator.get(address(bad))


def test_a_comparison_leads_to_that_of_the_api(operator, pair):
    good, bad = pair
    api = f"/api/insight/runs/{bad.id}/compare?with={good.id}"

    assert api in operator.get(address(bad), {"with": good.id}).content.decode()
    assert "ship" in operator.get(api).content.decode()
