"""Types and defaults of the settings of this project: `conf.retention_days` reads `CONDUCTOR_RETENTION_DAYS`."""

from typing import Any

from django.conf import settings

MIB = 1024 * 1024
CHECKS = "conductor_settings"
"""The tag of system checks of the configuration. The other checks are about the code."""


class Defaults:
    """All settings of this project: type, default and purpose."""

    # Access to the API: "open" requires no authentication and is allowed only on loopback; "token" requires it.
    api_access: str = "token"
    owner_email_mandatory: bool = False

    # Sign-in: the failures of an account at an address that lock it, and for how long; the maximum idle time and age of
    # a session; and whether users with a password need a second factor.
    sign_in_attempts: int = 5
    sign_in_lock_minutes: int = 15
    session_idle_minutes: int = 120
    session_hours: int = 12
    second_factor_required: bool = False
    local_sign_in: bool = True
    # Proxies whose X-Forwarded-For header is trusted.
    trusted_proxies: tuple[str, ...] = ("127.0.0.0/8", "::1/128")
    # Single sign-on. `external_group_roles` maps groups of the provider to roles; `*` is every user.
    oidc_issuer: str = ""
    oidc_client_id: str = ""
    oidc_client_secret: str = ""
    oidc_scopes: str = "openid profile email"
    oidc_name: str = "single sign-on"
    oidc_username_claim: str = "preferred_username"
    oidc_groups_claim: str = "groups"
    external_group_roles: dict[str, list[str]] = {}

    # A client of Taskcluster with all scopes that is created at start. Empty: none.
    taskcluster_root_client_id: str = ""
    taskcluster_root_access_token: str = ""

    # Keys that encrypt secrets, newest first. SECRET_KEY also decrypts, and encrypts if there is no other key.
    secrets_keys: tuple[str, ...] = ()

    # The bearer token with which a monitoring system may read the metrics, and the collector of traces.
    metrics_tokens: tuple[str, ...] = ()
    traces_endpoint: str = ""

    # The public address of the pages, for links in messages, such as https://conductor.example.org.
    public_url: str = ""

    # The address of another host of this server, from which browsers load artifacts, such as
    # https://artifacts.example.net. Empty: the host of the pages. Uploads always go to the host of the request.
    artifact_url: str = ""

    # The name of this installation on the pages, and the color of its label: a group of status colors.
    environment_name: str = ""
    environment_color: str = "gray"

    # The maximum number of waiting requests per web process. Further ones wait for at most a second, so that
    # connections stay free.
    max_waiting_polls: int = 3072
    # Their maximum where each holds a thread. Further ones return at once, so that threads stay free.
    max_waiting_threads: int = 48

    # Standalone tasks, in seconds. The lease of a worker:
    taskcluster_claim_timeout: int = 1_200
    # The time from the deadline until an unresolved task is resolved, and from the expiry until a task is deleted.
    taskcluster_deadline_delay: int = 60
    taskcluster_expiration_delay: int = 1_800
    # "final": publish task-exception only at the end of a task; "every": for every run with that result.
    taskcluster_exception_messages: str = "final"
    # The broker to which messages about standalone tasks are published.
    taskcluster_amqp_url: str = ""

    # Bulk operations on at least this number of runs or on so many tasks of a group, require the approval of a second
    # user, 0 for no limit.
    bulk_approval_from: int = 0

    # The days after which ended runs are deleted, 0 for never.
    retention_days: int = 0
    # The maximum size of the database in GiB. 0 means the size of the disk, if the database is a file.
    database_limit_gb: int = 0
    # The days after which received events and their results are deleted, 0 for never.
    event_retention_days: int = 7

    # Brokers to which events are published and from which they are received. Empty ones are not used.
    event_queues_amqp_url: str = ""
    event_queues_redis_url: str = ""
    event_queues_kafka_servers: str = ""
    event_queues_nats_url: str = ""

    # The address to which the status of a run is sent if its definition requires that but names no sink.
    workflow_status_listener_url: str = ""
    # The address to which every status of a task is sent, unless its definition disables that.
    task_status_listener_url: str = ""
    # The sink of state changes of steps: "conductor" for the event handlers of this server, or a sink such as
    # kafka:changes.
    state_change_sink: str = "conductor"

    # The difference between a host's clock and the database's, in milliseconds, above which it is reported. 0: never.
    max_clock_skew_ms: int = 500
    # The folder of heartbeats of the processes of one machine. Empty: the processes use the database.
    heartbeat_folder: str = ""
    # Raise errors in sweeps, for tests. Otherwise a sweep logs a failing item and skips it.
    raises_in_sweeps: bool = False
    # Refuse writes in a read snapshot on SQLite even inside a transaction, for tests.
    checks_read_snapshots: bool = False

    # HTTP tasks. Private, link-local and loopback addresses are refused unless one of these networks contains them.
    http_task_allowed_networks: tuple[str, ...] = ()

    # Integrations with providers of models that need no configuration on the pages.
    ai_openai_api_key: str = ""
    ai_openai_base_url: str = ""
    ai_anthropic_api_key: str = ""
    ai_anthropic_base_url: str = ""
    ai_ollama_url: str = ""

    # AI tasks: whether this server executes them, the maximum duration of one call in seconds, and the number of calls
    # that a worker process makes at the same time.
    ai_tasks: bool = True
    ai_task_seconds: float = 600.0
    ai_task_threads: int = 4
    # The currency of the prices of models; the days after which calls of models and their hourly usage are deleted, 0
    # for never; the maximum number of documents that one search compares; and the memory of a process for the vectors
    # that it has read.
    ai_currency: str = "USD"
    ai_call_days: int = 90
    ai_usage_days: int = 400
    ai_search_max_documents: int = 100_000
    ai_search_cache_mb: int = 256

    # JDBC tasks: the addresses of databases by name.
    sql_task_connections: dict[str, str] = {}

    # The isolation groups that `manage.py serve_groups` serves, as in queue names, and the threads per queue.
    isolation_groups: tuple[str, ...] = ()
    isolation_threads: int = 4

    # The lag of the replica above which pages and searches read the primary.
    replica_max_lag_seconds: int = 10

    # Prepared statements of the pipeline. They belong to a connection, which a pooler may change between transactions.
    sql_prepared: bool = True

    # Sizes. A request may be larger than a payload because of escapes and its other fields.
    task_payload_max_bytes: int = 10 * MIB
    workflow_payload_max_bytes: int = 10 * MIB
    max_request_bytes: int = 20 * MIB
    # The Django storage for payloads above the soft limits. Without it, or with limits of 0, all payloads are in rows.
    payload_storage: str = ""
    task_payload_soft_bytes: int = 3 * MIB
    workflow_payload_soft_bytes: int = 5 * MIB

    # Limits that stop a workflow which would never end. 0 means no limit. Depth: levels of sub-workflows and failure
    # workflows below a started workflow. Descendants: open sub-workflows below it, checked every few seconds. History:
    # decisions about a run, of which each is an entry of at most 200 lines.
    max_workflow_depth: int = 100
    max_tasks_per_workflow: int = 200_000
    max_loop_iterations: int = 100_000
    max_open_descendants: int = 20_000
    max_history_entries: int = 500_000

    # The longest time that a breakpoint stops runs, and that a run stands at one, in minutes.
    breakpoint_minutes: int = 60

    # The maximum size of the payloads of one caller that it has uploaded and no run uses yet, 0 for no limit.
    unattached_upload_max_bytes: int = 1024 * MIB

    # The maximum size of a file of a run.
    file_max_bytes: int = 1024 * MIB

    # The maximum size of an artifact of a standalone task.
    artifact_max_bytes: int = 5 * 1024 * MIB

    # The module that transports notifications between processes.
    wakeups: str = "conductor_app.notifications.sqlite"
    redis_url: str = ""


COLORS = {
    "gray": "stopped",
    "blue": "active",
    "green": "succeeded",
    "amber": "waiting",
    "red": "failed",
    "violet": "paused",
}
"""The colors of the environment label, with the status group that has this color on the pages."""
CHOICES = {
    "api_access": ("open", "token"),
    "environment_color": tuple(COLORS),
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
    valid_names = {django_name(name) for name in Defaults.__annotations__}
    names = {name for name in dir(settings) if name.startswith("CONDUCTOR_")}
    return [f"{name} is not a setting of this server." for name in sorted(names - valid_names)]


def _setting_error(name: str) -> str | None:
    value, default = __getattr__(name), getattr(Defaults, name)
    if not isinstance(value, _accept(default)):
        return f"{django_name(name)} is {value!r}, but must be of type {type(default).__name__}."
    if value not in CHOICES.get(name, (value,)):
        return f"{django_name(name)} is {value!r}, but must be one of: {', '.join(CHOICES[name])}."
    return None


def _accept(default: Any) -> tuple[type, ...]:
    return {float: (int, float), tuple: (list, tuple)}.get(type(default), (type(default),))
