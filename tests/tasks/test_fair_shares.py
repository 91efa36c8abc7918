"""Fairness keys: the tasks of a queue share its workers by key and weight."""

from collections import Counter
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conductor_app.core.snapshot import Share
from conductor_app.processes import sweeps
from conductor_app.runs.models import Attempt, Run, Task
from conductor_app.tasks import shares
from conductor_app.tasks.commands import queues as queue_commands
from conductor_app.tasks.commands.claims import claim_tasks
from conductor_app.tasks.models import FairShare
from conductor_app.tasks.queries.queues import queue_detail, queue_position
from conductor_app.tasks.queries.shares import claim_order
from tests.builders import definition, policy, step
from tests.conftest import Clock
from tests.runs.test_parallel import at_once
from tests.scenario import RunView, Scenario, register_definitions

pytestmark = pytest.mark.django_db(transaction=True)


class Shop:
    """A workflow whose runs share the workers of its tasks by the tenant in their input."""

    def __init__(self, clock: Clock, *steps, tasks=(), others=(), **fields) -> None:
        keys = {"fairnessKey": "${workflow.input.tenant}", "fairnessWeight": "${workflow.input.weight}"}
        register_definitions(
            *others, definition(*(steps or [step("pack")]), name="shop", **(keys | fields)), tasks=tasks
        )
        self.clock = clock

    def orders(self, tenant: str, count: int = 1, weight: float | str | None = None, **request) -> list[RunView]:
        given = {"tenant": tenant, "weight": weight}
        return [self.order(given, **request) for _ in range(count)]

    def order(self, given: dict[str, Any], workflow: str = "shop", **request) -> RunView:
        self.clock.advance(seconds=0.001)
        return Scenario.starts(None, workflow, given, **request)

    def polls(self, count: int = 1, queue: str = "pack") -> list[str]:
        """Return the tenants of the next tasks that a worker gets, one after the other."""
        return [tenant for _ in range(count) for tenant in self.polls_batch(1, queue)]

    def polls_batch(self, count: int, queue: str = "pack") -> list[str]:
        """Return the tenants of the tasks that a worker gets together."""
        self.clock.advance(seconds=0.001)
        claimed = claim_tasks(queue, worker="ann", count=count, wait_ms=0)
        return self.tenants([each.run_id for each in claimed])

    def tenants(self, run_ids: list[str]) -> list[str]:
        inputs = dict(Run.objects.filter(pk__in=run_ids).values_list("pk", "input"))
        return [inputs[id]["tenant"] for id in run_ids]


@pytest.fixture
def shop(clock):
    return Shop(clock)


def test_the_first_task_of_a_key_does_not_wait_for_the_tasks_of_another(shop):
    shop.orders("a", 20)
    assert shop.polls(5) == ["a"] * 5

    shop.orders("b", 2)

    assert shop.polls(5) == ["b", "a", "b", "a", "a"]


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


def test_a_key_without_tasks_does_not_save_its_turns(shop):
    shop.orders("a", 20), shop.orders("b")
    assert Counter(shop.polls(10)) == {"a": 9, "b": 1}

    shop.orders("b", 6)

    assert Counter(shop.polls(6)) == {"a": 3, "b": 3}


def test_a_key_that_sends_one_task_after_the_other_gets_no_more_than_its_share(shop):
    shop.orders("a", 20)
    served = []
    for _ in range(10):
        if not Attempt.objects.pending("pack").filter(fairness_key="b").exists():
            shop.orders("b")
        served += shop.polls()

    assert Counter(served) == {"a": 5, "b": 5}


def test_a_higher_priority_comes_before_the_turns(shop):
    shop.orders("a", 3), shop.orders("b", 2, priority=5), shop.orders("a", 2, priority=5)

    assert shop.polls(7) == ["a", "b", "a", "b", "a", "a", "a"]


def test_a_retry_waits_for_the_turn_of_its_key_and_not_behind_all_tasks(clock):
    shop = Shop(clock, step("pack", policy=policy(retries=1, delay_seconds=10)))
    [order] = shop.orders("b")
    assert shop.polls() == ["b"]
    order.reports("pack", "FAILED")
    shop.orders("a", 10)
    assert shop.polls(2) == ["a", "a"]

    clock.advance(seconds=10)

    assert "b" in shop.polls(2)
    assert order.task("pack").number == 1


def test_delayed_tasks_of_a_key_hold_nothing_back(clock):
    shop = Shop(clock, step("wait"), step("pack", startDelay=60))
    orders = shop.orders("slow", 3)
    for order in orders:
        order.reports("wait")
    Shop(clock)
    shop.orders("a", 6)

    assert shop.polls(3) == ["a", "a", "a"]
    clock.advance(seconds=60)
    assert Counter(shop.polls(6)) == {"a": 3, "slow": 3}


def test_a_task_that_is_moved_to_the_front_comes_first(shop):
    shop.orders("a", 5)
    *_, last = shop.orders("b", 5)
    assert shop.polls(2) == ["a", "b"]

    queue_commands.move_to_front(last.task("pack").pk, "ann")

    [claimed] = claim_tasks("pack", worker="ann", wait_ms=0)
    assert claimed.run_id == last.id


def test_a_changed_priority_moves_a_task_to_the_turns_of_that_priority(shop):
    shop.orders("a", 3)
    *_, last = shop.orders("b", 3)
    queue_commands.prioritize(last.task("pack").pk, 7, "ann")

    assert shop.polls(3) == ["b", "a", "b"]


def test_a_task_without_a_key_is_claimed_when_it_is_the_oldest(shop):
    register_definitions(definition(step("pack"), name="plain"))
    shop.orders("a", 3), shop.orders("none", workflow="plain"), shop.orders("b", 2)

    assert shop.polls(6) == ["a", "b", "a", "b", "a", "none"]
    shop.orders("none", 2, workflow="plain"), shop.orders("b", 2), shop.orders("none", workflow="plain")
    assert shop.polls(5) == ["none", "none", "b", "b", "none"]


def test_runs_whose_expression_has_no_value_share_the_default_key(shop):
    [order] = shop.orders(None)
    shop.orders("a", 3), shop.orders(None, 2)

    assert order.task("pack").fairness_key == "default"
    assert Counter(shop.polls(4)) == {"a": 2, None: 2}


def test_limits_of_the_name_hold(clock):
    shop = Shop(clock, tasks=[policy("pack", concurrent_limit=3)])
    shop.orders("a", 5), shop.orders("b", 5)

    assert Counter(shop.polls_batch(10)) == {"a": 2, "b": 1}
    assert shop.polls_batch(10) == []


def test_a_paused_queue_gives_nothing(shop):
    shop.orders("a", 2)
    queue_commands.pause_queue("pack", "ann")

    assert shop.polls() == []


def test_the_key_and_the_weight_of_the_start_request_replace_those_of_the_definition(shop):
    [order] = shop.orders("a", fairness=Share("gold", 4.0))

    attempt = order.task("pack")
    assert (attempt.fairness_key, attempt.fairness_weight) == ("gold", 4.0)


@pytest.mark.parametrize(
    ("weight", "stored"), [(None, 1.0), ("2.5", 2.5), (0, 1.0), (-3, 1.0), ("many", 1.0), (1e9, 1000.0), (True, 1.0)]
)
def test_a_weight_that_is_no_positive_number_counts_as_1(shop, weight, stored):
    [order] = shop.orders("a", weight=weight)

    assert order.task("pack").fairness_weight == stored


def test_a_step_may_have_a_key_of_its_own(clock):
    shop = Shop(clock, step("read"), step("pack", fairnessKey="${read.output.region}", fairnessWeight=2))
    [order, other] = shop.orders("a", 2)
    order.reports("read", region="eu"), other.reports("read")

    assert (order.task("read").fairness_key, order.task("pack").fairness_key) == ("a", "eu")
    assert (order.task("pack").fairness_weight, other.task("pack").fairness_key) == (2.0, "a")


def test_a_sub_workflow_has_the_key_of_its_parent_unless_its_definition_has_one(clock):
    from tests.builders import sub_workflow

    child, keyed = definition(step("pack"), name="child"), definition(step("pack"), name="own", fairnessKey="x")
    shop = Shop(clock, sub_workflow("c", "child"), sub_workflow("o", "own"), others=[child, keyed])
    [order] = shop.orders("a", weight=2)
    order.child("c").reports("pack")

    attempt = order.child("c").task("pack")
    assert (attempt.fairness_key, attempt.fairness_weight) == ("a", 2.0)
    assert order.child("o").task("pack").fairness_key == "x"


def test_the_turns_of_keys_that_nobody_uses_are_removed(shop, clock):
    shop.orders("a", 2), shop.orders("b")
    shop.polls(2)
    assert FairShare.objects.count() == 2

    clock.advance(seconds=3601)
    sweeps.prune_finished(100)

    assert not FairShare.objects.exists()
    assert shop.polls() == ["a"]


def test_a_claim_of_a_queue_without_keys_executes_the_same_statements(clock):
    register_definitions(definition(step("pack"), name="plain"))
    for _ in range(3):
        Scenario.starts(None, "plain")

    with CaptureQueriesContext(connection) as captured:
        claim_tasks("pack", worker="ann", wait_ms=0)

    assert not [each["sql"] for each in captured if "fairshare" in each["sql"]]
    statements = [each["sql"] for each in captured if each["sql"].startswith(("SELECT", "WITH", "UPDATE"))]
    # On PostgreSQL one statement finds, claims and loads.
    assert len([sql for sql in statements if "conductor_attempt" in sql]) == {"postgresql": 1}.get(connection.vendor, 3)


def test_keys_are_searched_again_after_as_many_claims_as_there_are_keys(shop):
    for number in range(10):
        shop.orders(f"k{number}", 3)
    shop.polls(1)

    with CaptureQueriesContext(connection) as captured:
        shop.polls(9)

    assert len([each for each in captured if "WITH RECURSIVE keys" in each["sql"]]) == 0
    shop.orders("new")
    assert "new" in shop.polls(2)


def test_the_place_of_a_task_is_that_in_which_claims_take_it(shop, clock):
    register_definitions(definition(step("pack"), name="plain"))
    shop.orders("a", 2, weight=2), shop.orders("none", 2, workflow="plain"), shop.orders("a", 2, weight=2)
    shop.orders("b", 3), shop.orders("c", 2, priority=3), shop.orders("none", workflow="plain")
    shop.polls(2)
    clock.advance(seconds=0.001)
    order = claim_order("pack", clock.now(), 100)
    places = {
        attempt.pk: queue_position(attempt, clock.now()).ahead
        for attempt in Attempt.objects.pending("pack").exclude(fairness_key="").select_related("run", "task")
    }

    assert [row.attempt.pk for row in queue_detail("pack", clock.now()).waiting] == order
    assert {id: places.get(id, place) for place, id in enumerate(order)} == {id: n for n, id in enumerate(order)}
    assert len(places) == 7
    claimed = []
    for _ in order:
        clock.advance(seconds=0.001)
        claimed += [each.id for each in claim_tasks("pack", worker="ann", wait_ms=0)]
    assert claimed == order


def test_what_another_claim_has_locked_is_left_out(shop, monkeypatch):
    shop.orders("a", 2), shop.orders("b", 1)
    # A key whose attempts are all locked keeps its turn.
    monkeypatch.setattr(shares._Turns, "_lock_attempts", lambda self, key, count: iter(()))

    assert shop.polls() == []
    assert FairShare.objects.count() == 2


HUNDRED_THOUSAND = 100_000


def copy_pending_attempt(attempt: Attempt, count: int) -> None:
    """Add copies of a pending attempt with their tasks and runs, one millisecond before it, in one statement each."""
    series = f"WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {count}) SELECT n FROM s"
    numbers = {
        "sqlite": f"({series})",
        "postgresql": f"generate_series(1, {count}) AS s(n)",
    }[connection.vendor]
    text = {"sqlite": "n", "postgresql": "n::text"}[connection.vendor]
    rows = ((Run, attempt.run_id), (Task, attempt.task_id), (Attempt, attempt.pk))
    for model, id in rows:
        columns = [field.column for field in model._meta.concrete_fields]
        copied = {"id", "task_id", "run_id", "attempt_id"}
        values = [
            f"'c' || {text} || o.{name}"
            if name in copied
            else "o.visible_at - 1"
            if name == "visible_at"
            else f'o."{name}"'
            for name in columns
        ]
        names = ", ".join(f'"{name}"' for name in columns)
        with connection.cursor() as cursor:
            table = model._meta.db_table
            cursor.execute(
                f"INSERT INTO {table} ({names}) SELECT {', '.join(values)} FROM {table} o, {numbers} WHERE o.id = %s",
                [id],
            )


@pytest.mark.slow
def test_a_hundred_thousand_tasks_of_one_tenant_do_not_delay_the_first_task_of_another(shop):
    [order] = shop.orders("a")
    copy_pending_attempt(order.task("pack"), HUNDRED_THOUSAND)
    assert Attempt.objects.pending("pack").filter(fairness_key="a").count() == HUNDRED_THOUSAND + 1
    assert shop.polls(3) == ["a", "a", "a"]

    shop.orders("b")

    assert shop.polls(2) == ["b", "a"]
    shop.orders("c", 2), shop.orders("b", 2)
    assert Counter(shop.polls_batch(6)) == {"a": 2, "b": 2, "c": 2}


def test_claims_at_the_same_time_take_each_task_once_and_keep_the_shares(shop):
    shop.orders("a", 30, weight=2), shop.orders("b", 30), shop.orders("c", 30)

    taken = at_once(lambda number: claim_tasks("pack", worker=f"worker {number}", count=2, wait_ms=0), 20)

    ids = [attempt.id for found in taken for attempt in found]
    assert len(ids) == len(set(ids)) == 40
    assert Counter(Attempt.objects.filter(pk__in=ids).values_list("fairness_key", flat=True)) == {
        "a": 20,
        "b": 10,
        "c": 10,
    }
