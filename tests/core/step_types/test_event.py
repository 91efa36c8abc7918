"""EVENT: publishing an event to a sink (execution §8.15)."""

import pytest

from conductor_app.core.effects import PublishEvent
from tests.builders import event, plan, policy, step
from tests.core.simulated_run import RunInMemory


def published_events(run: RunInMemory) -> list[PublishEvent]:
    return [effect for effect in run.effects if isinstance(effect, PublishEvent)]


@pytest.mark.parametrize(
    ("sink", "name"),
    [
        ("conductor", "conductor:order:tell"),
        ("conductor:paid", "conductor:order:paid"),
        ("conductor:${workflow.input.what}", "conductor:order:shipped"),
    ],
)
def test_an_internal_event_is_published_in_the_decision(sink, name):
    run = RunInMemory(
        plan(event("tell", sink, inputs={"n": "${workflow.input.n}"}), step("after")), {"n": 1, "what": "shipped"}
    )

    [effect] = published_events(run)
    task = run.task("tell").attempt
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
    assert run.statuses == {"tell": "COMPLETED", "after": "SCHEDULED"}


def test_an_event_with_async_complete_is_published_one_time():
    run = RunInMemory(plan(event("tell", "conductor:paid", asyncComplete=True), step("after")))
    assert run.statuses == {"tell": "IN_PROGRESS"}

    run.later(3600)
    run.completes("tell", heard=True)

    assert len(published_events(run)) == 1
    assert run.task("tell").attempt.output == {"heard": True}
    assert run.statuses == {"tell": "COMPLETED", "after": "SCHEDULED"}


def test_an_event_whose_client_reports_failure_is_published_again_after_the_delay():
    limits = policy(retries=1, delay_seconds=5)
    run = RunInMemory(plan(event("tell", "conductor:paid", asyncComplete=True, policy=limits)))

    run.fails("tell").later(4)
    assert len(published_events(run)) == 1

    run.later(1)
    first, second = published_events(run)
    assert second.id == run.task("tell").attempt.id != first.id
    assert run.statuses == {"tell": "IN_PROGRESS"}


@pytest.mark.parametrize("sink", ["kafka:orders", "amqp_queue:orders", "nonsense", ""])
def test_events_for_other_sinks_wait_for_the_built_in_worker(sink):
    run = RunInMemory(plan(event("tell", "${workflow.input.sink}", inputs={"n": 1})), {"sink": sink})

    assert published_events(run) == []
    assert run.task("tell").attempt.queue == "EVENT"
    assert run.task("tell").attempt.input == {"n": 1, "sink": sink, "asyncComplete": False}


def test_a_held_run_publishes_no_event():
    run = RunInMemory(plan(event("tell", "conductor:paid")), is_held=True)

    assert published_events(run) == []
    assert run.statuses == {"tell": "SCHEDULED"}
