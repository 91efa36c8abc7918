"""Record the durability of each SQLite connection of this process. Python imports this module at its start."""

import os
from pathlib import Path

from django.db.backends.signals import connection_created


def record(connection, **_):
    [level] = connection.connection.execute("PRAGMA synchronous").fetchone()
    with open(os.environ["PRAGMA_PROBE_FILE"], "a") as file:
        file.write(f"{level} {Path('/proc/self/comm').read_text()}")


connection_created.connect(record)
