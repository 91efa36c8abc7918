"""Python SDK calls of Orkes' own products: each is answered with 404 and changes nothing."""

import inspect
from typing import Any

import pytest
from conductor.client.event.event_client import EventClient
from conductor.client.event.queue.kafka_queue_configuration import (
    KafkaConsumerConfiguration,
    KafkaProducerConfiguration,
    KafkaQueueConfiguration,
)
from conductor.client.http.api_client import ApiClient
from conductor.client.http.rest import ApiException
from conductor.client.orkes.orkes_authorization_client import OrkesAuthorizationClient
from conductor.client.orkes.orkes_service_registry_client import OrkesServiceRegistryClient

from . import sdk_table

CLIENTS = {
    "OrkesServiceRegistryClient": OrkesServiceRegistryClient,
    "OrkesAuthorizationClient": OrkesAuthorizationClient,
    "EventClient": lambda configuration: EventClient(ApiClient(configuration)),
}
REFUSED = [name for name in sdk_table.refused_methods("python") if name.partition(".")[0] in CLIENTS]


@pytest.mark.parametrize("method", REFUSED)
def test_unsupported_calls_return_404(configuration, method):
    client, _, name = method.partition(".")
    call = getattr(CLIENTS[client](configuration), name)
    needed = [each for each in inspect.signature(call).parameters.values() if each.default is each.empty]

    with pytest.raises(ApiException) as refused:
        call(*map(some, needed))

    assert refused.value.status == 404


def some(parameter: inspect.Parameter) -> Any:
    """Return a value that the SDK can send."""
    if parameter.name == "queue_configuration":
        queue = KafkaQueueConfiguration("orders")
        queue.add_consumer(KafkaConsumerConfiguration("localhost"))
        queue.add_producer(KafkaProducerConfiguration("localhost"))
        return queue
    is_text = any(name in str(parameter.annotation) for name in ("str", "bytes"))
    return "x" if is_text else {}


def test_the_service_registry_client_reads_queue_sizes(configuration):
    assert OrkesServiceRegistryClient(configuration).get_queue_sizes_for_all_tasks() == {}
