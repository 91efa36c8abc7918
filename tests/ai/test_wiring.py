"""The workers of AI tasks are registered under the types that they execute."""

from conductor_app.ai import wiring
from conductor_app.system_tasks.registry import fast_queues, slow_queues, workers


def test_the_registered_types_are_those_of_the_workers():
    assert sorted(slow_queues()) == sorted(worker.type for worker in wiring.load_workers())
    assert workers().keys() == {*fast_queues(), *slow_queues()}
