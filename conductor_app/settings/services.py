"""Settings of databases, brokers and storages, which profiles combine. Options are based on measurements."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from . import environment
from .sign_in import AXES_SILENCED_CHECKS


def https(is_on: bool) -> dict[str, Any]:
    """Return the settings of a server that browsers reach over HTTPS, through a proxy that sets X-Forwarded-Proto.

    Cookies are sent over HTTPS only. Pages redirect to HTTPS; API requests and health checks inside the network do not,
    because a redirect would lose their bodies.
    """
    return {
        "HTTPS": is_on,
        "SESSION_COOKIE_SECURE": is_on,
        "CSRF_COOKIE_SECURE": is_on,
        "SECURE_PROXY_SSL_HEADER": ("HTTP_X_FORWARDED_PROTO", "https") if is_on else None,
        "SECURE_HSTS_SECONDS": 31_536_000 if is_on else 0,
        "SECURE_SSL_REDIRECT": is_on,
        "SECURE_REDIRECT_EXEMPT": [r"^(?!admin(/|$))"],
        # W003: this project has its own middleware for CSRF. W005 and W021 would bind other hosts of the domain.
        "SILENCED_SYSTEM_CHECKS": ["security.W003", "security.W005", "security.W021", *AXES_SILENCED_CHECKS],
    }


def sqlite(path: Path, *, synchronous: str = "FULL") -> dict[str, Any]:
    """Return a SQLite database that several processes can write to without lock errors.

    `synchronous`: FULL keeps every commit through a loss of power. With NORMAL, the last commits can be lost.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return {
        "ENGINE": "conductor_app.db.sqlite",
        "NAME": str(path),
        # Opening the file and its log costs more than a query. A waiting poll closes its connection anyway.
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            # Otherwise a transaction that reads before it writes fails if another one writes in between.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            # Each thread has a connection. By default it caches 128 prepared statements of 30 kB, and 2 MB of pages,
            # which each commit of another connection invalidates. Workers' requests use fewer than 32 statements.
            "cached_statements": 32,
            "init_command": f"PRAGMA journal_mode=WAL; PRAGMA synchronous={synchronous}; PRAGMA cache_size=-256;",
        },
    }


CONNECTION_DEFAULTS = {
    "connect_timeout": "5",
    # A server that vanished without closing its connections is noticed after about 20 s.
    "keepalives": "1",
    "keepalives_idle": "10",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
"""Parameters of libpq, which the query of the address overrides. `tcp_user_timeout` is in ms, the others in seconds."""


GENERIC_PLANS = {"plan_cache_mode": "force_generic_plan"}
"""The plan of a prepared statement is made once. Planning the claim for each execution took four times its execution.

Only the statements of `store` are prepared. Django's queries carry their values, so each is planned for them.
"""

POOL_WAIT_SECONDS = 10
"""The maximum wait for a connection of the pool."""


def postgresql(
    name: str, url: str, *, pool: int = 0, statement_seconds: int = 0, is_pooled: bool = False
) -> dict[str, Any]:
    """Return the PostgreSQL database at this address, optionally with a connection pool per process.

    `statement_seconds`: the maximum duration of a statement, or of a pause within a transaction; a lock is awaited for
    a third of it. 0 means no limit. `is_pooled`: True if a pooler may give each transaction another connection. It
    refuses parameters of the session, so the role must have these limits (docs/how-to/size-and-scale.md).
    """
    parts = _split(name, url, ("postgresql", "postgres"), "postgresql://user:password@db.example.org:5432/conductor")
    if len(parts.path) < 2:
        raise ImproperlyConfigured(f"{name} is refused: it has no database name after the last slash.")
    options: dict[str, Any] = CONNECTION_DEFAULTS | dict(parse_qsl(parts.query))
    if not is_pooled:
        session = GENERIC_PLANS | (_session_limits(statement_seconds * 1000) if statement_seconds else {})
        options["options"] = f"{_session_options(session)} {options.get('options', '')}".strip()
    host, port = options.pop("host", parts.hostname), options.pop("port", parts.port)
    if pool:
        options["pool"] = {"min_size": 2, "max_size": pool, "timeout": POOL_WAIT_SECONDS}
    return {
        "ENGINE": "conductor_app.db.postgresql",
        "NAME": unquote(parts.path[1:]),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host or "",
        "PORT": str(port or ""),
        "CONN_MAX_AGE": 0,
        # A cursor on the server outlives its transaction.
        "DISABLE_SERVER_SIDE_CURSORS": is_pooled,
        "OPTIONS": options,
    }


def _session_limits(statement_ms: int) -> dict[str, int]:
    return {
        "statement_timeout": statement_ms,
        "lock_timeout": statement_ms // 3,
        "idle_in_transaction_session_timeout": statement_ms,
    }


def _session_options(values: Mapping[str, object]) -> str:
    return " ".join(f"-c {name}={value}" for name, value in values.items())


def redis(name: str, url: str) -> str:
    """Return the address of a Redis server."""
    return _split(name, url, ("redis", "rediss"), "redis://cache.example.org:6379/0").geturl()


def folder_broker(path: Path) -> dict[str, Any]:
    """Return a broker that stores messages of Celery as files, for one machine."""
    for folder in ("messages", "control"):
        (path / folder).mkdir(parents=True, exist_ok=True, mode=0o700)
    return {
        "data_folder_in": str(path / "messages"),
        "data_folder_out": str(path / "messages"),
        "control_folder": str(path / "control"),
        "polling_interval": 0.1,
    }


class Bucket(NamedTuple):
    """A service that stores objects. `container`: the option of its storage that names the bucket."""

    library: str
    extra: str
    backend: str
    container: str
    options: dict[str, Any]


NO_ENCODING = {"content_encoding": None}
"""With the encoding of its name, `.gz`, the service or its library would decompress a file of the archive."""
BUCKETS = {
    "s3": Bucket(
        "boto3",
        "s3",
        "storages.backends.s3.S3Storage",
        "bucket_name",
        {"default_acl": None, "file_overwrite": True, "querystring_auth": False},
    ),
    "azure": Bucket(
        "azure.storage.blob",
        "azure",
        "conductor_app.settings.azure_storage.AzureContainer",
        "azure_container",
        {"overwrite_files": True, "object_parameters": NO_ENCODING},
    ),
    "gs": Bucket(
        "google.cloud.storage",
        "gcs",
        "storages.backends.gcloud.GoogleCloudStorage",
        "bucket_name",
        {"file_overwrite": True, "querystring_auth": False, "object_parameters": NO_ENCODING},
    ),
}
"""By the scheme of an address."""
MAX_IN_MEMORY = 8 * 1024 * 1024
"""The maximum size of content in memory. Larger content is buffered in a file."""


def payload_storage(name: str, place: str) -> dict[str, Any]:
    """Return the storage of large payloads: a folder, or a bucket such as s3://bucket/prefix?option=value."""
    if "://" not in place:
        folder = {"location": place, "file_permissions_mode": 0o600, "directory_permissions_mode": 0o700}
        return {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": folder}
    parts = urlsplit(place)
    bucket = BUCKETS.get(parts.scheme)
    if bucket is None:
        raise ImproperlyConfigured(f"{name} is refused: it must be a folder, or begin with s3://, azure:// or gs://.")
    if not parts.netloc:
        raise ImproperlyConfigured(f"{name} is refused: it has no bucket. Use the form {parts.scheme}://bucket/prefix.")
    if not _is_installed(bucket.library):
        raise ImproperlyConfigured(f"{name} is refused: install conductor-app with its extra `{bucket.extra}`.")
    where = {bucket.container: parts.netloc, "location": parts.path.strip("/")}
    if parts.scheme == "azure":
        where["connection_string"] = environment.require_value(
            "AZURE_STORAGE_CONNECTION_STRING", "DefaultEndpointsProtocol=https;AccountName=…;AccountKey=…"
        )
    options = {**bucket.options, "max_memory_size": MAX_IN_MEMORY, **where, **dict(parse_qsl(parts.query))}
    return {"BACKEND": bucket.backend, "OPTIONS": options}


def _is_installed(library: str) -> bool:
    try:
        return find_spec("storages") is not None and find_spec(library) is not None
    except ModuleNotFoundError:
        return False


def _split(name: str, url: str, schemes: tuple[str, ...], example: str) -> SplitResult:
    """Return the parts of an address. Errors do not contain it, because it may include a password."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} is refused: it is not an address such as {example}") from error
    if parts.scheme not in schemes:
        raise ImproperlyConfigured(f"{name} is refused: it must begin with {schemes[0]}://, for example {example}")
    return parts
