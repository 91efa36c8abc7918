"""What queues of SQS add to those of other brokers, with the server of moto and the client of AWS."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from conductor_app.events.sinks import PROVIDERS, publish
from conductor_app.events.sinks.base import SinkFailed, SinkUnavailable
from tests.free_port import free_port

from . import brokers


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with brokers.aws() as address:
        yield address


@pytest.fixture(autouse=True)
def configured(address, settings, monkeypatch) -> None:
    settings.CONDUCTOR_EVENT_QUEUES_SQS_URL = address
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")


@pytest.fixture
def client(address, configured):
    """Return the client of another program."""
    return boto3.client(
        "sqs", endpoint_url=address, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )


def receive(queue: str, count: int = 1) -> list[tuple[str, Any]]:
    received: list[tuple[str, Any]] = []
    PROVIDERS["sqs"].consume(queue, lambda *message: received.append(message), lambda: len(received) >= count)
    return received


def test_a_message_of_another_program_has_the_id_of_sqs(client):
    url = client.create_queue(QueueName="shop")["QueueUrl"]
    id = client.send_message(QueueUrl=url, MessageBody="sold")["MessageId"]

    assert receive("shop") == [(id, "sold")]


def test_another_program_receives_the_payload_as_json(client):
    publish("sqs:bills", "m1", {"n": 1})

    url = client.get_queue_url(QueueName="bills")["QueueUrl"]
    (message,) = client.receive_message(QueueUrl=url, MessageAttributeNames=["All"])["Messages"]
    assert message["Body"] == '{"n": 1}'
    assert message["MessageAttributes"]["message-id"]["StringValue"] == "m1"


def test_a_message_of_a_crashed_receiver_is_redelivered(client):
    publish("sqs:crashes", "m1", {"n": 1})
    url = client.get_queue_url(QueueName="crashes")["QueueUrl"]
    (message,) = client.receive_message(QueueUrl=url, VisibilityTimeout=1)["Messages"]

    assert message["Body"] == '{"n": 1}'
    assert receive("crashes") == [("m1", {"n": 1})]


def test_a_message_is_deleted_after_its_processing_and_redelivered_at_once_if_that_fails(client):
    publish("sqs:refunds", "m1", {})

    def fail(*_: Any) -> None:
        raise OSError("the database went away")

    with pytest.raises(OSError, match="went away"):
        PROVIDERS["sqs"].consume("refunds", fail, lambda: False)
    assert receive("refunds") == [("m1", {})]
    url = client.get_queue_url(QueueName="refunds")["QueueUrl"]
    counts = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    assert client.get_queue_attributes(QueueUrl=url, AttributeNames=counts)["Attributes"] == dict.fromkeys(counts, "0")


def test_a_message_that_is_never_processed_moves_to_the_dead_letters_of_its_queue(client):
    dead = client.create_queue(QueueName="dead")["QueueUrl"]
    arn = client.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": 2}}'
    client.create_queue(QueueName="poisoned", Attributes={"RedrivePolicy": redrive})
    publish("sqs:poisoned", "m1", {"n": 1})
    publish("sqs:poisoned", "m2", {"n": 2})
    failed: list[str] = []
    received: list[str] = []

    def handle(id: str, _: Any) -> None:
        if id == "m1":
            failed.append(id)
            raise OSError("m1 has no effect")
        received.append(id)

    while not received:
        try:
            PROVIDERS["sqs"].consume("poisoned", handle, lambda: bool(received))
        except OSError:
            continue

    assert failed == ["m1", "m1"]
    assert receive("dead") == [("m1", {"n": 1})]


def test_events_of_a_run_stay_in_order_in_a_fifo_queue():
    for number in range(5):
        publish("sqs:steps.fifo", f"m{number}", {"workflowInstanceId": "r1"})
    publish("sqs:steps.fifo", "m0", {"workflowInstanceId": "r1"})

    assert [id for id, _ in receive("steps.fifo", 5)] == [f"m{number}" for number in range(5)]


def test_a_queue_may_be_named_by_its_address_at_the_configured_service(address, client):
    client.create_queue(QueueName="mine")

    publish(f"sqs:{address}/123456789012/mine", "m1", {})

    assert receive("mine") == [("m1", {})]


@pytest.mark.parametrize(
    "queue",
    ["https://sqs.example.org/123456789012/mine", "https:/169.254.169.254/mine", "../mine", "a" * 81, "not a queue"],
)
def test_a_queue_at_another_service_is_refused(queue):
    with pytest.raises(SinkFailed, match="no queue at EVENT_QUEUES_SQS_URL"):
        publish(f"sqs:{queue}", "m1", {})


def test_an_event_waits_for_a_service_that_is_away(settings):
    settings.CONDUCTOR_EVENT_QUEUES_SQS_URL = f"http://127.0.0.1:{free_port()}"

    with pytest.raises(SinkUnavailable, match=r"^sqs cannot be reached: EndpointConnectionError.$"):
        publish("sqs:orders", "m1", {})


def test_missing_credentials_are_named(monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))

    with pytest.raises(SinkFailed, match="NoCredentialsError"):
        publish("sqs:orders", "m1", {})


@pytest.mark.parametrize(
    ("url", "region"),
    [
        ("https://sqs.eu-central-1.amazonaws.com", "eu-central-1"),
        ("https://sqs.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("https://vpce-1a2b-3c4d.sqs.ap-southeast-2.vpce.amazonaws.com", "ap-southeast-2"),
    ],
)
def test_requests_are_signed_for_the_region_of_the_address(settings, url, region):
    settings.CONDUCTOR_EVENT_QUEUES_SQS_URL = url

    assert PROVIDERS["sqs"]._client().meta.region_name == region
