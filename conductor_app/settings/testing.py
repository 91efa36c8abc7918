"""The embedded profile for the suite: a SQLite file of its own for each test process, and no broker."""

from pathlib import Path
from tempfile import TemporaryDirectory

from . import services
from .base import *  # noqa: F403
from .base import STORAGES

# A file, not memory: threads of a test then meet the same locks as in production.
SCRATCH = TemporaryDirectory(prefix="conductor-tests-")
DATABASES = {"default": services.sqlite(Path(SCRATCH.name) / "conductor.sqlite3", synchronous="OFF")}
DATABASES["default"]["TEST"] = {"NAME": DATABASES["default"]["NAME"]}
# Rows without a requested order are returned in another order than usual: databases do not guarantee one.
DATABASES["default"]["OPTIONS"]["init_command"] += "PRAGMA reverse_unordered_selects=ON;"

SECRET_KEY = "a secret that everybody may know, for tests only"
ALLOWED_HOSTS = ["*"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

STORAGES["payloads"] = services.payload_storage("PAYLOAD_STORAGE", str(Path(SCRATCH.name) / "payloads"))
CONDUCTOR_PAYLOAD_STORAGE = "payloads"
CONDUCTOR_API_ACCESS = "open"
CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8", "::1/128")
CONDUCTOR_RAISES_IN_SWEEPS = True
CONDUCTOR_CHECKS_READ_SNAPSHOTS = True
CONDUCTOR_WAKEUPS = "conductor_app.notifications.sqlite"
CELERY_BROKER_URL = "memory://"
# Files are looked up when needed, instead of all of them whenever a test creates a client.
WHITENOISE_AUTOREFRESH = True
