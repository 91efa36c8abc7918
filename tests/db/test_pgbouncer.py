"""PgBouncer in transaction mode: each transaction may have another connection to the database."""

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from tests.management.server import wait_until

ROOT = Path(__file__).parents[2]
PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="PgBouncer is for PostgreSQL."),
    pytest.mark.skipif(PGBOUNCER is None, reason="PgBouncer is not installed (Debian: pgbouncer)."),
]
RUN_COUNT = 30


@pytest.fixture
def pooler(tmp_path) -> Iterator[str]:
    """Start PgBouncer with fewer connections than threads, and yield the address of the test database behind it."""
    database = connection.settings_dict
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    target = {"host": database["HOST"], "port": database["PORT"], "user": database["USER"]}
    target |= {"password": database["PASSWORD"]}
    words = " ".join(f"{name}='{value}'" for name, value in target.items() if value)
    (tmp_path / "pgbouncer.ini").write_text(
        f"[databases]\n{database['NAME']} = {words}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
        "auth_type = any\npool_mode = transaction\ndefault_pool_size = 3\nunix_socket_dir =\n"
    )
    process = subprocess.Popen([PGBOUNCER, "-q", *user_options(database["HOST"]), str(tmp_path / "pgbouncer.ini")])
    try:
        wait_until(lambda: is_open(port))
        yield f"postgresql://{database['USER']}@127.0.0.1:{port}/{database['NAME']}"
    finally:
        process.terminate()
        process.wait()


def test_runs_complete_and_pages_load_through_a_pooler(pooler):
    done = load_through(pooler, DATABASE_POOLER="transaction")

    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result == {"runs": {"COMPLETED": RUN_COUNT}, "pages": [200] * 6}


def load_through(address: str, **settings: str) -> subprocess.CompletedProcess[str]:
    given = {
        "DJANGO_SETTINGS_MODULE": "conductor_app.settings.cluster",
        "DATABASE_URL": address,
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "SECRET_KEY": "a-key-for-tests-" * 4,
        "ALLOWED_HOSTS": "testserver",
        "HTTPS": "0",
        "LOG_LEVEL": "ERROR",
        **settings,
    }
    command = [sys.executable, "-m", "tests.db.pooled_load"]
    return subprocess.run(command, env=os.environ | given, cwd=ROOT, capture_output=True, text=True)


def user_options(host: str) -> list[str]:
    """Return options to run as the user that may open the socket of the database, because root is refused."""
    if os.getuid():
        return []
    return ["-u", pwd.getpwuid(os.stat(host).st_uid).pw_name if host.startswith("/") else "nobody"]


def is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
