"""Events to Amazon SQS and from it."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...core.trace_context import HEADER
from ...settings import conf
from ...utils import process_state
from .base import (
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    GROUP,
    MessageHandler,
    Provider,
    SinkFailed,
    SinkUnavailable,
    import_library,
    parse_payload,
    trace_headers,
    with_trace_of,
)

ID_ATTRIBUTE = "message-id"
WAIT_SECONDS = 3
"""How long a request waits for a message. Requests cost money, and a stopping listener waits for the last one."""
HIDDEN_SECONDS = 120
"""The time after which a received message that was not deleted is redelivered. Processing takes less."""
QUEUE_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo")
REGION = re.compile(r"\b[a-z]{2}(?:-[a-z]+)+-\d\b")
DEFAULT_REGION = "us-east-1"
NOT_NOW = frozenset({"RequestThrottled", "ThrottlingException", "Throttling", "OverLimit", "KMS.ThrottlingException"})
"""Refusals because of the current load."""
_clients = process_state.slot(dict[str, Any])


class Sqs(Provider):
    """A queue at the configured address, such as `sqs:orders`. A queue that does not exist is created.

    The credentials are those that AWS's library finds: in the environment, in its files, or of the machine's role.
    """

    name, setting = "sqs", "EVENT_QUEUES_SQS_URL"

    def publish(self, queue: str, message_id: str, payload: dict[str, Any]) -> None:
        self.require_configured()
        attributes = {ID_ATTRIBUTE: message_id, **trace_headers(payload)}
        message: dict[str, Any] = {
            "MessageBody": json.dumps(payload),
            "MessageAttributes": {
                name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
            },
        }
        if queue.endswith(".fifo"):
            # Events of a run stay in order.
            group = str(payload.get("workflowInstanceId") or GROUP)
            message |= {"MessageGroupId": group, "MessageDeduplicationId": message_id}
        with self._readable_errors():
            client = self._client()
            client.send_message(QueueUrl=find_queue(client, queue), **message)

    def consume(self, queue: str, handle_message: MessageHandler, is_stopping: Callable[[], bool]) -> None:
        self.require_configured()
        with self._readable_errors():
            client = self._client()
            url = find_queue(client, queue)
        while not is_stopping():
            with self._readable_errors():
                found = client.receive_message(
                    QueueUrl=url,
                    WaitTimeSeconds=WAIT_SECONDS,
                    VisibilityTimeout=HIDDEN_SECONDS,
                    MessageAttributeNames=[ID_ATTRIBUTE, HEADER],
                )
            for message in found.get("Messages", ()):
                self._handle_delivery(client, url, message, handle_message)

    def _handle_delivery(self, client: Any, url: str, message: dict[str, Any], handle_message: MessageHandler) -> None:
        """Delete a message after its processing. If that fails, the message is redelivered at once."""
        attributes = {name: each.get("StringValue") for name, each in message.get("MessageAttributes", {}).items()}
        id = attributes.get(ID_ATTRIBUTE) or message["MessageId"]
        receipt = {"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"]}
        try:
            handle_message(id, with_trace_of(parse_payload(message["Body"]), attributes.get(HEADER)))
        except Exception:
            with self._readable_errors():
                client.change_message_visibility(**receipt, VisibilityTimeout=0)
            raise
        with self._readable_errors():
            client.delete_message(**receipt)

    def _client(self) -> Any:
        """Return the client of this process for the configured address."""
        url, clients = conf.event_queues_sqs_url, _clients.value
        if url not in clients:
            session = import_library(self, "boto3").session.Session()
            config = import_library(self, "botocore.config").Config(
                connect_timeout=CONNECT_SECONDS, read_timeout=ANSWER_SECONDS, retries={"total_max_attempts": 2}
            )
            named = REGION.search(url)
            region = named[0] if named else session.region_name or DEFAULT_REGION
            clients[url] = session.client("sqs", endpoint_url=url, region_name=region, config=config)
        return clients[url]

    @contextmanager
    def _readable_errors(self) -> Iterator[None]:
        """Replace the errors of AWS's library, whose texts may include accounts and keys.

        Raises:
            SinkUnavailable: when the service does not answer, or refuses because of its load.
            SinkFailed: when it refuses the request.
        """
        errors = import_library(self, "botocore.exceptions")
        try:
            yield
        except errors.ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            failure = SinkUnavailable if status >= 500 or code in NOT_NOW else SinkFailed
            raise failure(f"sqs did not accept the event: {code}.") from error
        except (errors.ConnectionError, errors.HTTPClientError) as error:
            raise SinkUnavailable(f"sqs cannot be reached: {type(error).__name__}.") from error
        except errors.BotoCoreError as error:
            raise SinkFailed(f"sqs did not accept the event: {type(error).__name__}.") from error


def find_queue(client: Any, queue: str) -> str:
    """Return the address of a queue of the configured service, by its name or its address there.

    A queue that does not exist is created, unless it belongs to another account.

    Raises:
        SinkFailed: when the name is invalid, or the address is at another service.
    """
    account, _, name = queue.removeprefix(f"{conf.event_queues_sqs_url}/").rpartition("/")
    if not QUEUE_NAME.fullmatch(name) or not re.fullmatch(r"\d*", account):
        raise SinkFailed(f"`{queue[:200]}` is no queue at EVENT_QUEUES_SQS_URL. Use the form sqs:orders.")
    try:
        found = client.get_queue_url(QueueName=name, **({"QueueOwnerAWSAccountId": account} if account else {}))
    except client.exceptions.QueueDoesNotExist:
        if account:
            raise
        attributes = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
        found = client.create_queue(QueueName=name, Attributes=attributes)
    return found["QueueUrl"]
