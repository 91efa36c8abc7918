"""State changes of standalone tasks are published to a real broker."""

import json

import pytest
from kombu import Connection, Exchange, Queue

from conductor_app.runs.models import PulseMessage
from conductor_app.taskcluster.commands import rows as pulse
from conductor_app.taskcluster.commands import tasks as claims
from conductor_app.taskcluster.commands import tasks as task_commands
from conductor_app.taskcluster.pulse_publisher import publish_due_messages
from tests.free_port import free_port
from tests.taskcluster.test_groups_parallel import LINUX, new_task

from . import brokers

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

NAMES = ("task-defined", "task-pending", "task-running", "task-completed", "task-group-resolved")


@pytest.fixture
def claims_without_waiting(monkeypatch):
    monkeypatch.setattr(claims, "CLAIM_WAIT_SECONDS", 0.0)


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with brokers.rabbitmq(tmp_path_factory.mktemp("rabbitmq")) as address:
        yield address


def listen_to(address: str, key: str):
    """Return a function that returns the messages received so far on all exchanges, by routing key."""
    connection = Connection(address)
    queue = Queue(f"listener.{key}", durable=True).bind(connection.channel())
    queue.declare()
    for name in NAMES:
        exchange = Exchange(f"exchange/taskcluster-queue/v1/{name}", type="topic", durable=True)
        exchange(connection.channel()).declare()
        queue.bind_to(exchange, key)

    def take() -> list[tuple[str, dict]]:
        found = []
        while (message := queue.get(no_ack=True)) is not None:
            found.append((message.delivery_info["exchange"].rpartition("/")[2], json.loads(message.body)))
        return found

    return take


def test_messages_are_delivered_in_order_and_to_their_routes(clock, settings, broker, claims_without_waiting):
    settings.CONDUCTOR_TASKCLUSTER_AMQP_URL = broker
    new = new_task(clock, routes=["index.mine.latest"], tags={"kind": "build"})
    all_of_it, by_route = listen_to(broker, f"primary.{new.id}.#"), listen_to(broker, "route.index.mine.#")
    task_commands.create_task(new)
    claims.claim_tasks(LINUX, "here", "w1", 1)
    task_commands.report_task(new.id, 0, "completed")

    assert publish_due_messages() == 5

    *earlier, last = all_of_it()
    assert [name for name, _ in (*earlier, last)] == list(NAMES)
    assert earlier[2][1]["workerId"] == "w1"
    assert by_route() == earlier
    assert not PulseMessage.objects.exists()


def test_messages_for_an_unreachable_broker_are_delivered_later_in_order(clock, settings, claims_without_waiting):
    settings.CONDUCTOR_TASKCLUSTER_AMQP_URL = f"amqp://me:secret@127.0.0.1:{free_port()}//"
    id = task_commands.create_task(new_task(clock)).id

    assert publish_due_messages() == 0

    first, second = PulseMessage.objects.filter(task_id=id).order_by("id")
    assert (first.tries, second.tries) == (1, 0)
    assert "secret" not in first.error
    assert pulse.take_due(10) == []
    clock.advance(seconds=2)
    assert pulse.take_due(10) == [first]


def test_without_a_broker_messages_stay_readable(clock):
    task_commands.create_task(new_task(clock))

    assert publish_due_messages() == 0
    assert PulseMessage.objects.count() == 2
