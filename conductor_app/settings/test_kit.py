"""The embedded profile for the servers of the test kit.

Each runs in a folder of its own, to which paths are relative: servers are forked from a process with these settings.
"""

import secrets
from pathlib import Path

from . import services, table
from .base import *  # noqa: F403
from .base import STORAGES

DATABASE = "conductor.sqlite3"
DATABASES = {"default": services.sqlite(Path(DATABASE), synchronous="OFF")}
STORAGES["payloads"] = services.payload_storage("PAYLOAD_STORAGE", "payloads")
CONDUCTOR_PAYLOAD_STORAGE = "payloads"

SECRET_KEY = secrets.token_urlsafe(50)
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]
CONDUCTOR_API_ACCESS = "open"
CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = table.read("HTTP_TASK_ALLOWED_NETWORKS", default=("127.0.0.0/8", "::1/128"))
CELERY_BROKER_URL = "memory://"
WHITENOISE_AUTOREFRESH = True
