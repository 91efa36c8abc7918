"""Typed names and defaults of our own settings: `conf.lease_seconds` reads `CONDUCTOR_LEASE_SECONDS`."""

from typing import Any

from django.conf import settings

MIB = 1024 * 1024
CHECKS = "conductor_settings"
"""The tag of checks on the configuration of the server; the others check the code, and pass in CI."""


class Defaults:
    """All settings of this project: type, default and purpose."""

    # Access to the API: "open" requires no authentication and is allowed only on loopback; "token" requires it.
    api_access: str = "token"
    token_seconds: int = 86_400
    owner_email_mandatory: bool = False

    # A client of Taskcluster with all scopes that is created at start. Empty: none.
    taskcluster_root_client_id: str = ""
    taskcluster_root_access_token: str = ""

    # Keys that encrypt secrets, newest first. SECRET_KEY decrypts older values, and encrypts without other keys.
    secrets_keys: tuple[str, ...] = ()

    # The bearer token with which a monitoring system may read the metrics, and the collector of traces.
    metrics_tokens: tuple[str, ...] = ()
    traces_endpoint: str = ""

    # The public address of the pages, for links in messages, such as https://conductor.example.org.
    public_url: str = ""

    # The name of this installation on the pages, and the color of its label: a group of status colors.
    environment_name: str = ""
    environment_colour: str = "stopped"

    # Attempts. The open-source server gives a task without definition 3600 s.
    lease_seconds: int = 3_600
    # "doubling" is d·2ⁿ as in the open-source server; "scaled" is d·scaleⁿ⁺¹ as in the other source. The maximum
    # number of waiting polls in a web process; further polls are answered at once, so that threads stay free.
    most_waiting_polls: int = 192
    # The maximum time in seconds that a request waits for a run.
    most_wait_seconds: int = 120
    # A worker that has polled within this time counts as active.
    active_worker_seconds: int = 10

    # Standalone tasks, in seconds: the lease of a worker; from the deadline until an unresolved task is ended;
    # and from its expiry until a task is deleted.
    taskcluster_claim_timeout: int = 1_200
    # The time that a claim waits for work: clients give up after half a minute.
    taskcluster_longest_wait: float = 20.0
    taskcluster_deadline_delay: int = 60
    taskcluster_expiration_delay: int = 1_800
    # Whether task-exception is published only for the end of a task, or for every run that ends so.
    taskcluster_exception_messages: str = "final"
    # The broker to which messages about standalone tasks are published.
    taskcluster_amqp_url: str = ""

    # Bulk operations on at least this many runs require the approval of a second user, 0 for none; so do these
    # actions, on any number.
    bulk_approval_from: int = 0
    bulk_approval_actions: tuple[str, ...] = ()

    # Days that an ended run is kept; 0 keeps it for ever.
    retention_days: int = 0
    # The maximum size of the database in GiB; 0 for the size of its disk, if it is a file.
    database_limit_gb: int = 0
    # Days that a received event is kept with its results; 0 keeps it for ever.
    event_retention_days: int = 7

    # Other systems to which events are published and from which they are received; empty ones are not used.
    event_queues_amqp_url: str = ""
    event_queues_redis_url: str = ""
    event_queues_kafka_servers: str = ""
    event_queues_nats_url: str = ""

    # Webhooks: the maximum size of a request, and the maximum age of its signature.
    webhook_max_bytes: int = MIB
    webhook_window_seconds: int = 300

    # Where the status of a run is published if its definition requires it and names no sink; and where states of
    # steps are published: "conductor" for the event handlers of this server, otherwise a sink such as
    # kafka:changes.
    workflow_status_listener_url: str = ""
    # Where every status of a task is published, unless its definition disables it.
    task_status_listener_url: str = ""
    state_change_sink: str = "conductor"

    # The bell.
    sweep_batch: int = 500
    sweep_tick_seconds: float = 0.5
    # A sweep logs an item that fails and steps over it; tests want to see the error.
    raises_in_sweeps: bool = False
    # Refuse writes within a read snapshot on SQLite even where a test's own transaction is open around it.
    checks_read_snapshots: bool = False

    # Scripts run in helper processes that are killed when they take longer.
    script_seconds: float = 4.0
    script_pool_size: int = 2

    # HTTP tasks. Private, link-local and loopback targets are refused unless a network here contains them.
    http_task_allowed_networks: tuple[str, ...] = ()
    http_task_total_seconds: float = 60.0
    http_task_max_bytes: int = 10 * MIB

    # SQL tasks (JDBC): the databases that they may use by name, and the limits of one statement.
    sql_task_connections: dict[str, str] = {}
    sql_task_seconds: float = 30.0
    sql_task_max_rows: int = 10_000
    sql_task_max_bytes: int = 5 * MIB

    # Isolation groups that `manage.py serve_groups` serves, as they stand in queues' names, and threads for each queue.
    isolation_groups: tuple[str, ...] = ()
    isolation_threads: int = 4

    # Whether statements to PostgreSQL are pipelined through libpq instead of psycopg's cursors.
    sql_pipeline: bool = True

    # Sizes. The limit of requests leaves room for a payload of maximum size with escapes, and for its envelope.
    task_payload_max_bytes: int = 10 * MIB
    workflow_payload_max_bytes: int = 10 * MIB
    max_request_bytes: int = 20 * MIB
    # Larger payloads are stored in this storage of Django's; without a storage, and with 0, all stay in rows.
    payload_storage: str = ""
    task_payload_soft_bytes: int = 3 * MIB
    workflow_payload_soft_bytes: int = 5 * MIB

    # Files of runs, uploaded at once or in parts: the maximum size.
    file_max_bytes: int = 1024 * MIB

    # Artifacts of standalone tasks: the maximum size of a file.
    artifact_max_bytes: int = 5 * 1024 * MIB

    # Where hints of new work go: a module of `conductor_app.notifications`.
    wakeups: str = "conductor_app.notifications.sqlite"
    redis_url: str = ""


COLORS = {
    "grey": "stopped",
    "blue": "active",
    "green": "succeeded",
    "amber": "waiting",
    "red": "failed",
    "violet": "paused",
}
"""The colours of the environment's label, as display groups of the pages."""
CHOICES = {
    "api_access": ("open", "token"),
    "environment_colour": tuple(COLORS.values()),
    "taskcluster_exception_messages": ("final", "every"),
}


def __getattr__(name: str) -> Any:
    if name not in Defaults.__annotations__:
        raise AttributeError(f"conductor_app.conf has no setting {name!r}")
    return getattr(settings, django_name(name), getattr(Defaults, name))


def django_name(name: str) -> str:
    """Return the name of a setting in Django's settings."""
    return f"CONDUCTOR_{name.upper()}"


def setting_errors() -> list[str]:
    """Return one sentence for each setting that is unknown or has an invalid type or value."""
    return [*_unknown_settings(), *filter(None, map(_setting_error, Defaults.__annotations__))]


def _unknown_settings() -> list[str]:
    known = {django_name(name) for name in Defaults.__annotations__}
    given = {name for name in dir(settings) if name.startswith("CONDUCTOR_")}
    return [f"{name} is not a setting of this server." for name in sorted(given - known)]


def _setting_error(name: str) -> str | None:
    value, default = __getattr__(name), getattr(Defaults, name)
    if not isinstance(value, _accept(default)):
        return f"{django_name(name)} is {value!r}, but must be of type {type(default).__name__}."
    if value not in CHOICES.get(name, (value,)):
        return f"{django_name(name)} is {value!r}, but must be one of: {', '.join(CHOICES[name])}."
    return None


def _accept(default: Any) -> tuple[type, ...]:
    return {float: (int, float), tuple: (list, tuple)}.get(type(default), (type(default),))
