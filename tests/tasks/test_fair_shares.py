"""Fairness keys: the tasks of a queue share its workers by key and weight."""

from collections import Counter

import pytest

from conductor_app.runs.models import Attempt, Run
from conductor_app.tasks.models import FairShare
from tests.builders import definition, step
from tests.scenario import Scenario, register_definitions

pytestmark = pytest.mark.django_db(transaction=True)


class Shop:
    """A workflow with one task, which runs of several tenants share."""

    def __init__(self, clock, *steps, **fields) -> None:
        fields = {"fairnessKey": "${workflow.input.tenant}", "fairnessWeight": "${workflow.input.weight}"} | fields
        self.scenario = Scenario(clock, *(steps or [step("pack")]), name="shop", input={"tenant": "first"}, **fields)
        assert self.polls() == ["first"]
        self.clock = clock

    def orders(self, tenant, count=1, weight=None, **request):
        for _ in range(count):
            self.scenario.starts("shop", {"tenant": tenant, "weight": weight}, **request)

    def polls(self, count=1, task="pack") -> list[str]:
        """Return the tenants of the next tasks that a worker gets, one after the other."""
        return [tenant for _ in range(count) for tenant in self.polls_batch(1, task)]

    def polls_batch(self, count, task="pack") -> list[str]:
        from conductor_app.tasks.commands.claims import claim_tasks

        claimed = claim_tasks(task, worker="ann", count=count, wait_ms=0)
        inputs = dict(Run.objects.filter(pk__in=[each.run_id for each in claimed]).values_list("pk", "input"))
        return [inputs[each.run_id].get("tenant", "") for each in claimed]


@pytest.fixture
def shop(clock):
    return Shop(clock)


def test_the_first_task_of_a_key_does_not_wait_for_the_tasks_of_another(shop):
    shop.orders("a", 20)
    assert shop.polls(5) == ["a"] * 5

    shop.orders("b", 2)

    assert shop.polls(5) == ["b", "a", "a", "b", "a"]


def test_keys_with_the_same_weight_take_turns(shop):
    shop.orders("a", 4), shop.orders("b", 3), shop.orders("c", 2)

    assert shop.polls(9) == ["a", "b", "c", "a", "b", "c", "a", "b", "a"]


def test_weights_of_three_and_one_are_served_three_to_one(shop):
    shop.orders("a", 40, weight=3), shop.orders("b", 40, weight="1")

    assert Counter(shop.polls(40)) == {"a": 30, "b": 10}


def test_a_batch_is_shared_as_well(shop):
    shop.orders("a", 40, weight=3), shop.orders("b", 40, weight=1), shop.orders("c", 2)

    assert Counter(shop.polls_batch(10)) == {"a": 6, "b": 2, "c": 2}
    assert Counter(shop.polls_batch(30)) == {"a": 22, "b": 8}
