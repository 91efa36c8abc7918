"""The embedded profile for tests: one SQLite file per test process, and no broker."""

from pathlib import Path
from tempfile import TemporaryDirectory

from . import services
from .base import *  # noqa: F403
from .base import STORAGES

# A file, not memory, so that threads of a test meet the same locks as in production.
SCRATCH = TemporaryDirectory(prefix="conductor-tests-")
DATABASES = {"default": services.sqlite(Path(SCRATCH.name) / "conductor.sqlite3", synchronous="OFF")}
DATABASES["default"]["TEST"] = {"NAME": DATABASES["default"]["NAME"]}
# Queries without ORDER BY return rows in reverse, because databases do not guarantee an order.
DATABASES["default"]["OPTIONS"]["init_command"] += "PRAGMA reverse_unordered_selects=ON;"

SECRET_KEY = "not a secret, for tests only"
ALLOWED_HOSTS = ["*"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

STORAGES["payloads"] = services.payload_storage("PAYLOAD_STORAGE", str(Path(SCRATCH.name) / "payloads"))
CONDUCTOR_PAYLOAD_STORAGE = "payloads"
CONDUCTOR_API_ACCESS = "open"
# Most tests move the time without regard to sessions.
CONDUCTOR_SESSION_IDLE_MINUTES = CONDUCTOR_SESSION_HOURS = 10**9
CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8", "::1/128")
CONDUCTOR_RAISES_IN_SWEEPS = True
CONDUCTOR_CHECKS_READ_SNAPSHOTS = True
CELERY_BROKER_URL = "memory://"
# Look up files on demand, instead of all files whenever a test creates a client.
WHITENOISE_AUTOREFRESH = True
