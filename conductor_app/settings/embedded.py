"""The profile for one machine without other services: SQLite, and a folder for the messages of Celery."""

from platformdirs import user_state_dir

from . import environment, services, table
from .base import *  # noqa: F403
from .base import ON_LOOPBACK, PAYLOAD_STORAGE, PORT, STORAGES
from .resources import IS_INSTALLED, RESOURCES_DIR

# A new environment replaces an installed package, but not the data: they are in the user's folder for states.
DEFAULT_VAR_DIR = user_state_dir("conductor-app", appauthor=False) if IS_INSTALLED else str(RESOURCES_DIR / "var")
VAR_DIR = environment.folder("VAR_DIR", DEFAULT_VAR_DIR)
DATABASE = "conductor.sqlite3"
environment.require_access(
    "VAR_DIR",
    VAR_DIR,
    "secret_key",
    DATABASE,
    f"{DATABASE}-wal",
    f"{DATABASE}-shm",
    f"{DATABASE}-queue",
    "broker",
    "payloads",
    "heartbeats",
)
SECRET_KEY = environment.signing_key(
    "SECRET_KEY", table.read("SECRET_KEY") or environment.load_or_create_secret(VAR_DIR / "secret_key")
)

ALLOWED_HOSTS = environment.host_names(
    "ALLOWED_HOSTS",
    table.read("ALLOWED_HOSTS", default="localhost,127.0.0.1,[::1]")
    if ON_LOOPBACK
    else environment.require_value("ALLOWED_HOSTS", "conductor.example.org,10.0.0.5"),
)
ALLOWED_HOSTS += environment.host_of(table.read("ARTIFACT_URL"))
CONDUCTOR_API_ACCESS = table.read("CONDUCTOR_API_ACCESS", default="open" if ON_LOOPBACK else "token")
CONDUCTOR_PUBLIC_URL = table.read("PUBLIC_URL").rstrip("/") or (f"http://127.0.0.1:{PORT}" if ON_LOOPBACK else "")
CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = table.read(
    "HTTP_TASK_ALLOWED_NETWORKS", default=("127.0.0.0/8", "::1/128") if ON_LOOPBACK else ()
)

vars().update(services.https(table.read("HTTPS", default=False)))

DATABASES = {"default": services.sqlite(VAR_DIR / DATABASE, synchronous=table.read("SQLITE_SYNCHRONOUS"))}
STORAGES["payloads"] = services.payload_storage("PAYLOAD_STORAGE", PAYLOAD_STORAGE or str(VAR_DIR / "payloads"))
CONDUCTOR_PAYLOAD_STORAGE = "payloads"

CONDUCTOR_HEARTBEAT_FOLDER = str(VAR_DIR / "heartbeats")

CELERY_BROKER_URL = "folder://localhost/"
CELERY_BROKER_TRANSPORT_OPTIONS = services.folder_broker(VAR_DIR / "broker")
