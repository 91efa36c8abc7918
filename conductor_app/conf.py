"""Typed names and defaults of our own settings: `conf.lease_seconds` reads `CONDUCTOR_LEASE_SECONDS`."""

from typing import Any

from django.conf import settings

MIB = 1024 * 1024
CHECKS = "conductor_settings"
"""The tag of those checks that are about how the server is set up; all others are about its code, and pass in CI."""


class Defaults:
    """Every setting of ours: its type, its default, and what it is for."""

    # Who may call. "open" asks for no login and is allowed on loopback only; "token" asks for one.
    api_access: str = "token"
    token_seconds: int = 86_400
    owner_email_mandatory: bool = False

    # Taskcluster's side: a client that may do everything, made at start. Empty: none.
    taskcluster_root_client_id: str = ""
    taskcluster_root_access_token: str = ""

    # Keys that seal secrets, newest first; what SECRET_KEY has sealed stays readable. Without any, it seals.
    secrets_keys: tuple[str, ...] = ()

    # What a monitoring system may send as its bearer token to read the metrics; traces go to this collector.
    metrics_tokens: tuple[str, ...] = ()
    traces_endpoint: str = ""

    # Where people reach the pages, for the links in what they are sent: https://conductor.example.org
    public_url: str = ""

    # What the pages call this installation, and the colour of its label: a display group of their status colours.
    environment_name: str = ""
    environment_colour: str = "stopped"

    # Attempts. 3600 is what the open-source server gives a task that has no definition.
    lease_seconds: int = 3_600
    # "doubling" is d·2ⁿ as the open-source server waits; "scaled" is d·scaleⁿ⁺¹ as the other source says.
    # Polls that may wait at the same time in a web process; others are answered at once, so that a thread stays free.
    most_waiting_polls: int = 192
    # The longest that a request may wait for a run; a client that asks for more is answered then.
    most_wait_seconds: int = 120
    # A worker that has polled within this time counts as active.
    active_worker_seconds: int = 10

    # Stand-alone tasks, in seconds: a worker's lease; from a deadline until what is not resolved is ended; and from
    # the end of its life until a task is deleted.
    taskcluster_claim_timeout: int = 1_200
    # How long a claim waits for work: clients give up after half a minute.
    taskcluster_longest_wait: float = 20.0
    taskcluster_deadline_delay: int = 60
    taskcluster_expiration_delay: int = 1_800
    # Whether a task-exception goes out for the end of a task alone, or for every run that is resolved so.
    taskcluster_exception_messages: str = "final"
    # The broker that is told of what becomes of stand-alone tasks.
    taskcluster_amqp_url: str = ""

    # Operations on so many runs and more wait for a second person's approval, 0: none does; and so do these actions,
    # on however few.
    bulk_approval_from: int = 0
    bulk_approval_actions: tuple[str, ...] = ()

    # Days that a finished run is kept; 0 keeps it for ever.
    retention_days: int = 0
    # How large the database may become, in GiB; 0: what the disk of its file holds, if it is one.
    database_limit_gb: int = 0
    # Days that an event which came in is kept, with its handlers' verdicts and actions; 0 keeps it for ever.
    event_retention_days: int = 7

    # Other systems that events go to and come from; an empty one is not there.
    event_queues_amqp_url: str = ""
    event_queues_redis_url: str = ""
    event_queues_kafka_servers: str = ""
    event_queues_nats_url: str = ""

    # Webhooks that come in: how large one may be, and how old its signature.
    webhook_max_bytes: int = MIB
    webhook_window_seconds: int = 300

    # Where a run's status is posted if its definition wants that and names no sink; and where steps' states go:
    # "conductor" is this server's own handlers, else a sink such as kafka:changes.
    workflow_status_listener_url: str = ""
    # Where each status that a task comes to is posted, unless its definition says that nobody is told.
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

    # SQL tasks (JDBC): the databases that they may name, by name, and what one statement may cost.
    sql_task_connections: dict[str, str] = {}
    sql_task_seconds: float = 30.0
    sql_task_max_rows: int = 10_000
    sql_task_max_bytes: int = 5 * MIB

    # Isolation groups that `manage.py serve_groups` serves, as they stand in queues' names, and threads for each queue.
    isolation_groups: tuple[str, ...] = ()
    isolation_threads: int = 4

    # Whether statements to PostgreSQL are pipelined through libpq, past the cursors of psycopg.
    sql_pipeline: bool = True

    # Sizes. The request limit leaves room for a full payload, escaped, and what is around it.
    task_payload_max_bytes: int = 10 * MIB
    workflow_payload_max_bytes: int = 10 * MIB
    max_request_bytes: int = 20 * MIB
    # Larger payloads are kept in this storage of Django's instead of in rows; without one, and with 0, all stay there.
    payload_storage: str = ""
    task_payload_soft_bytes: int = 3 * MIB
    workflow_payload_soft_bytes: int = 5 * MIB

    # Files of runs, sent whole or in parts: how large one may be.
    file_max_bytes: int = 1024 * MIB

    # What workers keep of their attempts at stand-alone tasks: how large one file may be.
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
    """What a setting of ours is called in Django's settings."""
    return f"CONDUCTOR_{name.upper()}"


def setting_errors() -> list[str]:
    """One sentence for each setting of ours that has a wrong type or value, or that does not exist."""
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
