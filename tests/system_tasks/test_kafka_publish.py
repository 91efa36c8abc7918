"""KAFKA_PUBLISH over the cluster that librdkafka brings along (execution §8.22)."""

import json

import pytest
from confluent_kafka import Consumer

from conductor_app.system_tasks.registry import workers
from tests.free_port import free_port

from ..events import brokers


@pytest.fixture(scope="module")
def servers():
    with brokers.kafka() as address:
        yield address


def perform(**request):
    return workers()["KAFKA_PUBLISH"].perform({"kafka_request": request})


def read(servers: str, topic: str):
    consumer = Consumer({"bootstrap.servers": servers, "group.id": f"of {topic}", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        message = consumer.poll(60)
        assert message is not None and message.error() is None
        return message.key(), message.value(), message.headers()
    finally:
        consumer.close()


def test_a_message_is_published_with_its_key_and_headers(servers):
    outcome = perform(bootStrapServers=servers, topic="a", value={"n": 1}, key="k", headers={"h": "v"})

    assert (outcome.status, outcome.output) == ("COMPLETED", {}), outcome.reason
    key, value, headers = read(servers, "a")
    assert (key, json.loads(value), headers) == (b"k", {"n": 1}, [("h", b"v")])


def test_text_is_sent_unchanged_and_the_configured_cluster_is_the_default(servers, settings):
    settings.CONDUCTOR_EVENT_QUEUES_KAFKA_SERVERS = servers
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ()

    outcome = perform(topic="b", value="plain", key=7)

    assert outcome.status == "COMPLETED", outcome.reason
    assert read(servers, "b")[:2] == (b"7", b"plain")


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ({}, "bootStrapServers is missing"),
        ({"bootStrapServers": "nonsense"}, "hosts with ports"),
        ({"bootStrapServers": "127.0.0.1:1"}, "topic is missing"),
        ({"bootStrapServers": "127.0.0.1:1", "topic": "a"}, "value is missing"),
        ({"bootStrapServers": "127.0.0.1:1", "topic": "a", "value": 1, "headers": []}, "headers must be"),
        ({"bootStrapServers": "127.0.0.1:1", "topic": "a", "value": 1, "maxBlockMs": "x"}, "must be numbers"),
        ({"bootStrapServers": "10.1.2.3:9092", "topic": "a", "value": 1}, "10.1.2.3 is not a public address"),
    ],
)
def test_an_invalid_message_fails_with_a_reason(request_, why):
    outcome = perform(**request_)

    assert outcome.status == "FAILED"
    assert why in outcome.reason


def test_a_task_without_a_request_fails():
    assert workers()["KAFKA_PUBLISH"].perform({}).status == "FAILED"


def test_a_cluster_that_does_not_answer_fails_the_task():
    outcome = perform(bootStrapServers=f"127.0.0.1:{free_port()}", topic="a", value=1)

    assert outcome.status == "FAILED"
    assert "kafka" in outcome.reason
