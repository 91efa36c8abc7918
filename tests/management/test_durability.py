"""SQLite keeps each acknowledged commit through a loss of power, in every process of the server."""

from pathlib import Path

import pytest
from django.conf import settings

from .server import Server, wait_until

PROBE = Path(__file__).with_name("pragma_probe")
PROCESSES = {"python", *(f"serve: {name}" for name in ("web", "worker", "beat", "events", "groups"))}
FULL = "2"

pytestmark = pytest.mark.skipif(
    "postgresql" in settings.DATABASES["default"]["ENGINE"], reason="PostgreSQL has no such setting."
)


def test_connections_of_all_processes_keep_commits_through_a_loss_of_power(new_data_folder, tmp_path):
    found = tmp_path / "pragmas"
    probe = {"PYTHONPATH": str(PROBE), "PRAGMA_PROBE_FILE": str(found)}
    optional = {"EVENT_QUEUES_REDIS_URL": "redis://127.0.0.1:1/0", "ISOLATION_GROUPS": "blue"}
    server = Server(new_data_folder("durable"), **probe, **optional).wait_until_up()
    try:
        wait_until(lambda: {line.partition(" ")[2] for line in found.read_text().splitlines()} >= PROCESSES)
    finally:
        server.stop()

    assert {line.split()[0] for line in found.read_text().splitlines()} == {FULL}
