"""The table of settings: each environment variable and each setting with its type, bounds and default.

`conf`, the settings modules and the tables of `docs/reference/configuration.md` follow from it. The meanings are on
that page. A profile reads a variable whose default depends on it with another `default`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from .environment import (
    address,
    boolean,
    choice,
    clusters,
    connections,
    groups,
    issue_address,
    networks,
    number,
    origin,
    path_prefix,
    roles_by_group,
    secret_list,
    servers,
    text,
    trace_address,
    web_connections,
)

KIB, MIB = 1024, 1024 * 1024
COLORS = {
    "gray": "stopped",
    "blue": "active",
    "green": "succeeded",
    "amber": "waiting",
    "red": "failed",
    "violet": "paused",
}
"""The colors of the environment label, with the status group that has this color on the pages."""


class Row(NamedTuple):
    """A variable of the environment, and the setting of this project that it sets."""

    variable: str
    """"" for a setting that only a settings module can set."""
    setting: str
    """Its name in `conf`, "" for a variable that sets something else."""
    reader: Callable[..., Any]
    default: Any
    """The default of the variable, in its unit."""
    options: dict[str, Any]
    convert: Callable[[Any], Any]
    """Return the value of the setting for a value of the variable."""
    profile: str
    """The profile that reads the variable, "both" if each of them reads it on its own, "" for the common settings."""

    def read(self, **options: Any) -> Any:
        """Return the variable's value."""
        return self.reader(self.variable, **{"default": self.default, **self.options, **options})


def read(variable: str, **options: Any) -> Any:
    """Return the value of a variable of the table, with these options, such as `default`, instead of the table's."""
    return BY_VARIABLE[variable].read(**options)


def read_settings() -> dict[str, Any]:
    """Return the settings of all profiles by their names in Django."""
    return {
        django_name(row.setting): row.convert(row.read())
        for row in BY_VARIABLE.values()
        if row.setting and not row.profile
    }


def django_name(setting: str) -> str:
    """Return the name of a setting in Django's settings."""
    return f"CONDUCTOR_{setting.upper()}"


def _as_it_is(value: Any) -> Any:
    return value


def _three_quarters(value: int) -> int:
    return value * 3 // 4


def _without_slash(value: str) -> str:
    return value.rstrip("/")


def _variable(name: str, reader: Callable[..., Any], default: Any, *, profile: str = "", **options: Any) -> Row:
    return Row(name, "", reader, default, options, _as_it_is, profile)


def _setting(
    name: str,
    reader: Callable[..., Any],
    default: Any,
    *,
    sets: str = "",
    convert: Callable[[Any], Any] = _as_it_is,
    profile: str = "",
    **options: Any,
) -> Row:
    return Row(name, sets or name.lower(), reader, default, options, convert, profile)


def _internal(setting: str, default: Any) -> Row:
    return Row("", setting, text, default, {}, _as_it_is, "")


TABLE = (
    # Server
    _variable("HOST", text, "127.0.0.1"),
    _variable("PORT", number, 8_000, least=1, most=65_535),
    _variable("WEB_WORKERS", number, 1, least=1),
    _setting("WEB_THREADS", number, 64, least=4, sets="max_waiting_threads", convert=_three_quarters),
    _setting("WEB_CONNECTIONS", web_connections, 4_096, least=512, sets="max_waiting_polls", convert=_three_quarters),
    _variable("CELERY_THREADS", number, 8, least=4),
    _variable("SCRIPT_NAME", path_prefix, ""),
    _setting("PUBLIC_URL", address, "", schemes=("https", "http"), convert=_without_slash),
    _setting("ENVIRONMENT_NAME", text, ""),
    _setting("ENVIRONMENT_COLOR", choice, "gray", choices=tuple(COLORS)),
    # Security
    _variable("SECRET_KEY", text, ""),
    _variable("SECRET_KEY_FALLBACKS", secret_list, (), least=1),
    _setting("SECRETS_KEYS", secret_list, (), least=32),
    _variable("ALLOWED_HOSTS", text, ""),
    _setting("CONDUCTOR_API_ACCESS", choice, "token", choices=("open", "token"), sets="api_access", profile="embedded"),
    _variable("HTTPS", boolean, True),
    _variable("CSRF_TRUSTED_ORIGINS", text, ""),
    _setting("TRUSTED_PROXIES", networks, ("127.0.0.0/8", "::1/128")),
    _setting("HTTP_TASK_ALLOWED_NETWORKS", networks, (), profile="both"),
    _setting("ARTIFACT_URL", origin, "", schemes=("https", "http")),
    # Sign-in
    _setting("SIGN_IN_ATTEMPTS", number, 5, least=1),
    _setting("SIGN_IN_LOCK_MINUTES", number, 15, least=1),
    _setting("SESSION_IDLE_MINUTES", number, 120, least=1),
    _setting("SESSION_HOURS", number, 12, least=1),
    _setting("SECOND_FACTOR_REQUIRED", boolean, False),
    _setting("LOCAL_SIGN_IN", boolean, True),
    _setting("OIDC_ISSUER", address, "", schemes=("https", "http")),
    _setting("OIDC_CLIENT_ID", text, ""),
    _setting("OIDC_CLIENT_SECRET", text, ""),
    _setting("OIDC_SCOPES", text, "openid profile email"),
    _setting("OIDC_NAME", text, "single sign-on"),
    _setting("OIDC_USERNAME_CLAIM", text, "preferred_username"),
    _setting("OIDC_GROUPS_CLAIM", text, "groups"),
    _setting("EXTERNAL_GROUP_ROLES", roles_by_group, {}),
    # Database and Redis
    _variable("DATABASE_URL", text, ""),
    _setting("REDIS_URL", text, "", profile="cluster"),
    _variable("DATABASE_POOL", number, 8, least=2),
    _variable("DATABASE_POOLER", choice, "none", choices=("none", "transaction")),
    _variable("DATABASE_STATEMENT_SECONDS", number, 60),
    _variable("SQLITE_SYNCHRONOUS", choice, "FULL", choices=("FULL", "NORMAL"), profile="embedded"),
    _setting("DATABASE_LIMIT_GB", number, 0),
    _setting("MAX_CLOCK_SKEW_MS", number, 500),
    # Limits of workflows
    _setting("MAX_WORKFLOW_DEPTH", number, 100),
    _setting("MAX_TASKS_PER_WORKFLOW", number, 200_000),
    _setting("MAX_LOOP_ITERATIONS", number, 100_000),
    _setting("MAX_FORKED_TASKS", number, 10_000),
    _setting("MAX_OPEN_DESCENDANTS", number, 20_000),
    _setting("MAX_HISTORY_ENTRIES", number, 500_000),
    # Payloads and files
    _variable("PAYLOAD_STORAGE", text, ""),
    _variable("AZURE_STORAGE_CONNECTION_STRING", text, ""),
    _setting("TASK_PAYLOAD_SOFT_KB", number, 3_072, sets="task_payload_soft_bytes", convert=KIB.__mul__),
    _setting("WORKFLOW_PAYLOAD_SOFT_KB", number, 5_120, sets="workflow_payload_soft_bytes", convert=KIB.__mul__),
    _setting("TASK_PAYLOAD_HARD_KB", number, 10_240, least=1, sets="task_payload_max_bytes", convert=KIB.__mul__),
    _setting(
        "WORKFLOW_PAYLOAD_HARD_KB", number, 10_240, least=1, sets="workflow_payload_max_bytes", convert=KIB.__mul__
    ),
    _setting("UNATTACHED_UPLOADS_MAX_MB", number, 1_024, sets="unattached_upload_max_bytes", convert=MIB.__mul__),
    _setting("FILE_MAX_MB", number, 1_024, least=1, sets="file_max_bytes", convert=MIB.__mul__),
    _setting("ARTIFACT_MAX_MB", number, 5_120, least=1, sets="artifact_max_bytes", convert=MIB.__mul__),
    # Built-in tasks
    _setting("SQL_TASK_CONNECTIONS", connections, {}),
    _setting("KAFKA_CLUSTERS", clusters, {}),
    _setting("ISOLATION_GROUPS", groups, ()),
    _setting("ISOLATION_THREADS", number, 4, least=1, most=100),
    # AI
    _setting("OPENAI_API_KEY", text, "", sets="ai_openai_api_key"),
    _setting(
        "OPENAI_BASE_URL", address, "", schemes=("https", "http"), sets="ai_openai_base_url", convert=_without_slash
    ),
    _setting("ANTHROPIC_API_KEY", text, "", sets="ai_anthropic_api_key"),
    _setting(
        "ANTHROPIC_BASE_URL",
        address,
        "",
        schemes=("https", "http"),
        sets="ai_anthropic_base_url",
        convert=_without_slash,
    ),
    _setting("OLLAMA_HOST", address, "", schemes=("https", "http"), sets="ai_ollama_url", convert=_without_slash),
    _setting("AI_TASKS", boolean, True),
    _setting("AI_TASK_SECONDS", number, 600, least=1),
    _setting("AI_TASK_THREADS", number, 4, least=1),
    # Events and listeners
    _setting("EVENT_QUEUES_AMQP_URL", address, "", schemes=("amqp", "amqps")),
    _setting("EVENT_QUEUES_REDIS_URL", address, "", schemes=("redis", "rediss")),
    _setting("EVENT_QUEUES_KAFKA_SERVERS", servers, ""),
    _setting("EVENT_QUEUES_SQS_URL", origin, "", schemes=("https", "http")),
    _setting("EVENT_QUEUES_NATS_URL", address, "", schemes=("nats", "tls")),
    _setting("TASK_STATUS_LISTENER_URL", address, "", schemes=("https", "http")),
    _setting("WORKFLOW_STATUS_LISTENER_URL", address, "", schemes=("https", "http")),
    _setting("STATE_CHANGE_SINK", text, "conductor"),
    _setting("EVENT_RETENTION_DAYS", number, 7),
    # Operations
    _setting("RETENTION_DAYS", number, 0),
    _variable("RUN_ARCHIVE", text, ""),
    _setting("BULK_APPROVAL_FROM", number, 0),
    _variable("LOG_LEVEL", choice, "INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR")),
    _variable("LOG_FORMAT", choice, "console", choices=("console", "json")),
    _setting("METRICS_TOKEN", secret_list, (), least=16, sets="metrics_tokens"),
    _setting("METRICS_CONDUCTOR_NAMES", boolean, False),
    _variable("OTEL_EXPORTER_OTLP_ENDPOINT", text, ""),
    _setting("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", text, "", sets="traces_endpoint"),
    _setting("TRACE_URL", trace_address, ""),
    _setting("ISSUE_URL", issue_address, ""),
    _variable("EMAIL_HOST", text, "localhost"),
    _variable("EMAIL_PORT", number, 25, least=1, most=65_535),
    _variable("EMAIL_USER", text, ""),
    _variable("EMAIL_PASSWORD", text, ""),
    _variable("EMAIL_TLS", boolean, False),
    _variable("EMAIL_FROM", text, "conductor@localhost"),
    # Taskcluster
    _setting("TASKCLUSTER_CLAIM_TIMEOUT", number, 1_200, least=1),
    _setting("TASKCLUSTER_DEADLINE_DELAY", number, 60),
    _setting("TASKCLUSTER_EXPIRATION_DELAY", number, 1_800),
    _setting("TASKCLUSTER_EXCEPTION_MESSAGES", choice, "final", choices=("final", "every")),
    _setting("TASKCLUSTER_AMQP_URL", address, "", schemes=("amqp", "amqps")),
    _setting("TASKCLUSTER_ROOT_CLIENT_ID", text, ""),
    _setting("TASKCLUSTER_ROOT_ACCESS_TOKEN", text, ""),
    # Debugger
    _setting("BREAKPOINT_MINUTES", number, 60, least=1),
    # AI steps
    _setting("AI_CURRENCY", text, "USD"),
    _setting("AI_CALL_DAYS", number, 90),
    _setting("AI_USAGE_DAYS", number, 400),
    _setting("AI_SEARCH_MAX_DOCUMENTS", number, 100_000, least=1),
    # Without a variable: for a settings module, a profile or tests
    # True in the settings of this server; False where the app is one of several in another Django project
    _internal("is_server", False),
    # the database of the tables, of another Django project only
    _internal("database", "default"),
    # definitions require `ownerEmail`
    _internal("owner_email_mandatory", False),
    # the folder of heartbeats of the processes of one machine; without it, they use the database
    _internal("heartbeat_folder", ""),
    # for tests: errors in sweeps are raised instead of logged
    _internal("raises_in_sweeps", False),
    # for tests: writes in a read snapshot are refused on SQLite, too
    _internal("checks_read_snapshots", False),
    # statements of the pipeline are prepared; a pooler excludes it
    _internal("sql_prepared", True),
    # the maximum size of a request; it may be larger than a payload because of escapes and other fields
    _internal("max_request_bytes", 20 * MIB),
    # the name of the Django storage of large payloads; the profile sets it if `PAYLOAD_STORAGE` is set
    _internal("payload_storage", ""),
    # the name of the Django storage of archived runs; the profiles set it if `RUN_ARCHIVE` is set
    _internal("run_archive", ""),
    # the module that transports notifications between processes; the profile sets it
    _internal("wakeups", "conductor_app.notifications.sqlite"),
)
BY_VARIABLE = {row.variable: row for row in TABLE if row.variable}
BY_SETTING = {row.setting: row for row in TABLE if row.setting}
DEFAULTS = {name: row.convert(row.default) for name, row in BY_SETTING.items()}
