"""EVENT: something is told to a sink (execution §8.15)."""

import pytest

from conductor_app.core.effects import PublishEvent
from tests.builders import event, plan, policy, step
from tests.core.simulated_run import RunInMemory


def told(life: RunInMemory) -> list[PublishEvent]:
    return [effect for effect in life.effects if isinstance(effect, PublishEvent)]


@pytest.mark.parametrize(
    ("sink", "name"),
    [
        ("conductor", "conductor:order:tell"),
        ("conductor:paid", "conductor:order:paid"),
        ("conductor:${workflow.input.what}", "conductor:order:shipped"),
    ],
)
def test_an_internal_event_is_published_in_the_decision(sink, name):
    life = RunInMemory(
        plan(event("tell", sink, inputs={"n": "${workflow.input.n}"}), step("after")), {"n": 1, "what": "shipped"}
    )

    [effect] = told(life)
    task = life.task("tell").attempt
    assert (effect.sink, effect.id) == (name, task.id)
    assert effect.payload == {
        "n": 1,
        "sink": sink.replace("${workflow.input.what}", "shipped"),
        "asyncComplete": False,
        "workflowInstanceId": "run",
        "workflowType": "order",
        "workflowVersion": 1,
        "correlationId": None,
        "taskToDomain": {},
        "event_produced": name,
    }
    assert task.output == effect.payload
    assert life.statuses == {"tell": "COMPLETED", "after": "SCHEDULED"}


def test_an_event_with_async_complete_is_published_one_time():
    life = RunInMemory(plan(event("tell", "conductor:paid", asyncComplete=True), step("after")))
    assert life.statuses == {"tell": "IN_PROGRESS"}

    life.later(3600)
    life.completes("tell", heard=True)

    assert len(told(life)) == 1
    assert life.task("tell").attempt.output == {"heard": True}
    assert life.statuses == {"tell": "COMPLETED", "after": "SCHEDULED"}


def test_an_event_whose_client_reports_failure_is_published_again_after_the_delay():
    limits = policy(retries=1, delay_seconds=5)
    life = RunInMemory(plan(event("tell", "conductor:paid", asyncComplete=True, policy=limits)))

    life.fails("tell").later(4)
    assert len(told(life)) == 1

    life.later(1)
    first, second = told(life)
    assert second.id == life.task("tell").attempt.id != first.id
    assert life.statuses == {"tell": "IN_PROGRESS"}


@pytest.mark.parametrize("sink", ["kafka:orders", "amqp_queue:orders", "nonsense", ""])
def test_other_sinks_are_a_built_in_workers_business(sink):
    life = RunInMemory(plan(event("tell", "${workflow.input.sink}", inputs={"n": 1})), {"sink": sink})

    assert told(life) == []
    assert life.task("tell").attempt.queue == "EVENT"
    assert life.task("tell").attempt.input == {"n": 1, "sink": sink, "asyncComplete": False}


def test_a_held_run_publishes_no_event():
    life = RunInMemory(plan(event("tell", "conductor:paid")), is_held=True)

    assert told(life) == []
    assert life.statuses == {"tell": "SCHEDULED"}
