"""The event listener is a child process of the server if a broker is configured."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conductor_app.server.management.commands.serve import managed_processes

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("address", "names"), [("", []), ("redis://127.0.0.1:1", ["events"])])
def test_a_server_listens_where_a_broker_is_named(settings, address, names):
    settings.CONDUCTOR_EVENT_QUEUES_REDIS_URL = address

    with socket.socket() as listener:
        assert [child.name for child in managed_processes(listener)] == ["web", "worker", "beat", *names]


def test_a_server_serves_the_named_isolation_groups(settings):
    settings.CONDUCTOR_ISOLATION_GROUPS = ("blue",)

    with socket.socket() as listener:
        assert [child.name for child in managed_processes(listener)] == ["web", "worker", "beat", "groups"]


def test_it_stops_on_a_signal(tmp_path):
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "conductor_app.settings.embedded",
        "VAR_DIR": str(tmp_path),
        "EVENT_QUEUES_REDIS_URL": "redis://127.0.0.1:1",
    }
    command = [sys.executable, "manage.py", "listen_events"]
    # The database has no tables: the process continues and logs the error.
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert "event_handlers_not_loaded" in process.stderr.readline()
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)

        assert process.wait(60) == 0
        assert time.monotonic() - began < 20
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
