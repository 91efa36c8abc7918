"""The profile for several machines: PostgreSQL, Redis, and any number of web processes, workers and beats."""

from . import environment, services, table
from .base import *  # noqa: F403
from .base import PAYLOAD_STORAGE, STORAGES

SECRET_KEY = environment.signing_key(
    "SECRET_KEY", environment.require_value("SECRET_KEY", "$(openssl rand -base64 48)")
)
ALLOWED_HOSTS = [
    *environment.host_names("ALLOWED_HOSTS", environment.require_value("ALLOWED_HOSTS", "conductor.example.org")),
    *environment.host_of(table.read("ARTIFACT_URL")),
]

# Plain HTTP is for a private network without browsers.
vars().update(services.https(table.read("HTTPS")))

# "transaction": a pooler such as PgBouncer is in between, and may give each transaction another connection.
IS_POOLED = table.read("DATABASE_POOLER") == "transaction"
CONDUCTOR_SQL_PREPARED = not IS_POOLED
DATABASES = {
    "default": services.postgresql(
        "DATABASE_URL",
        environment.require_value("DATABASE_URL", "postgresql://conductor:secret@db.example.org:5432/conductor"),
        # The total over all processes must stay below the connection limit of the database server.
        pool=table.read("DATABASE_POOL"),
        statement_seconds=table.read("DATABASE_STATEMENT_SECONDS"),
        is_pooled=IS_POOLED,
    )
}

if PAYLOAD_STORAGE:
    STORAGES["payloads"] = services.payload_storage("PAYLOAD_STORAGE", PAYLOAD_STORAGE)
    CONDUCTOR_PAYLOAD_STORAGE = "payloads"

CONDUCTOR_API_ACCESS = "token"
CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = table.read("HTTP_TASK_ALLOWED_NETWORKS")
CONDUCTOR_REDIS_URL = services.redis(
    "REDIS_URL", environment.require_value("REDIS_URL", "redis://cache.example.org:6379/0")
)
CONDUCTOR_WAKEUPS = "conductor_app.notifications.redis"

CELERY_BROKER_URL = CONDUCTOR_REDIS_URL
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # The seconds after which the message of a lost worker is redelivered. Every job is shorter.
    "visibility_timeout": 900,
    "unacked_restore_interval": 10,
    "unacked_restore_throttle": 1,
    # Requests must not wait for the broker. A message that cannot be sent at once is dropped.
    "socket_connect_timeout": 1,
    "socket_keepalive": True,
}
