"""KAFKA_PUBLISH over the cluster that librdkafka brings along (execution §8.22)."""

import json

import pytest
from confluent_kafka import Consumer

from conductor_app.definitions.validation import definition_context, lint_workflow
from conductor_app.system_tasks.registry import workers
from tests.builders import step_of
from tests.free_port import free_port

from ..events import brokers

pytestmark = [pytest.mark.slow, pytest.mark.one_database]


@pytest.fixture(scope="module")
def running():
    with brokers.kafka() as address:
        yield address


@pytest.fixture
def servers(running, settings):
    settings.CONDUCTOR_KAFKA_CLUSTERS = {"main": running}
    return running


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


def test_a_cluster_is_found_by_its_name(servers):
    outcome = perform(bootStrapServers="main", topic="named", value="plain")

    assert outcome.status == "COMPLETED", outcome.reason
    assert read(servers, "named")[1] == b"plain"


def test_text_is_sent_unchanged_and_the_configured_cluster_is_the_default(servers, settings):
    settings.CONDUCTOR_EVENT_QUEUES_KAFKA_SERVERS = servers

    outcome = perform(topic="b", value="plain", key=7)

    assert outcome.status == "COMPLETED", outcome.reason
    assert read(servers, "b")[:2] == (b"7", b"plain")


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ({"topic": "a", "value": 1}, "bootStrapServers is missing"),
        ({"bootStrapServers": "127.0.0.1:1"}, "topic is missing"),
        ({"bootStrapServers": "127.0.0.1:1", "topic": "a"}, "value is missing"),
        ({"bootStrapServers": "127.0.0.1:1", "topic": "a", "value": 1, "headers": []}, "headers must be"),
        ({"bootStrapServers": "127.0.0.1:1", "topic": "a", "value": 1, "maxBlockMs": "x"}, "must be numbers"),
        ({"bootStrapServers": ["a:1"], "topic": "a", "value": 1}, "bootStrapServers must be a text"),
    ],
)
def test_an_invalid_message_fails_with_a_reason(settings, request_, why):
    settings.CONDUCTOR_KAFKA_CLUSTERS = {"away": "127.0.0.1:1"}

    outcome = perform(**request_)

    assert outcome.status == "FAILED"
    assert why in outcome.reason


@pytest.mark.parametrize("given", ["one:9092", "main,one:9092", "kafka.example.org:9092", "127.0.0.1:{port}", "MAIN"])
def test_a_cluster_that_is_not_configured_is_refused(servers, given):
    """A permitted server could name any other address as its broker, and librdkafka would connect to it."""
    outcome = perform(bootStrapServers=given.format(port=free_port()), topic="a", value=1)

    assert outcome.status == "FAILED"
    assert "is not a configured Kafka cluster" in outcome.reason


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("given", "is_configured"),
    [("main", True), ("one:1, two:2", True), ("${workflow.input.cluster}", True), ("evil:9092", False)],
)
def test_a_cluster_that_is_not_configured_is_an_error_of_the_definition(settings, given, is_configured):
    settings.CONDUCTOR_KAFKA_CLUSTERS = {"main": "one:1,two:2"}
    request = {"bootStrapServers": given, "topic": "a", "value": 1}
    publish = step_of("KAFKA_PUBLISH", "publish", inputParameters={"kafka_request": request})
    document = {"name": "order", "version": 1, "schemaVersion": 2, "tasks": [publish]}

    for known in (definition_context([document]), None):
        found = [each for each in lint_workflow(document, known) if "bootStrapServers" in each.path]
        assert [each.severity for each in found] == ([] if is_configured else ["error"])


def test_a_task_without_a_request_fails():
    assert workers()["KAFKA_PUBLISH"].perform({}).status == "FAILED"


def test_a_cluster_that_does_not_answer_fails_the_task(settings):
    settings.CONDUCTOR_KAFKA_CLUSTERS = {"away": f"127.0.0.1:{free_port()}"}

    outcome = perform(bootStrapServers="away", topic="a", value=1)

    assert outcome.status == "FAILED"
    assert "kafka" in outcome.reason
