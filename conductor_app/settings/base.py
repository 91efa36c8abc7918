"""Settings of all profiles. A profile defines the databases, the broker and the server."""

from pathlib import Path

from ..conf import COLORS
from . import environment
from .logs import logging_config
from .sign_in import *  # noqa: F403
from .sign_in import AXES_SILENCED_CHECKS

PACKAGE_DIR = Path(__file__).resolve().parents[1]
# The wheel has the templates and the static files inside the package, a checkout has them beside it.
IS_INSTALLED = (PACKAGE_DIR / "resources").is_dir()
RESOURCES_DIR = PACKAGE_DIR / "resources" if IS_INSTALLED else PACKAGE_DIR.parent
ROOT_URLCONF = "conductor_app.urls"
WSGI_APPLICATION = "conductor_app.wsgi.application"
DEBUG = False
# The names of the environment variables that these settings read, for `conductor-app check`.
READ_VARIABLES = environment.READ_NAMES

HOST = environment.text("HOST", "127.0.0.1")
PORT = environment.number("PORT", 8000, least=1, most=65_535)
ON_LOOPBACK = environment.is_loopback(HOST)
# The path below which the server is reached, if a proxy serves other applications under the same name.
FORCE_SCRIPT_NAME = environment.path_prefix("SCRIPT_NAME") or None

INSTALLED_APPS = [
    # First, so that a failed sign-in is counted before it is recorded.
    "axes",
    "conductor_app.apps.ConductorConfig",
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_celery_beat",
]
MIDDLEWARE = [
    "conductor_app.telemetry.requests.RequestContextMiddleware",
    "conductor_app.api.client_requests.ClientRequestMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "conductor_app.access.page_middleware.PageSessionMiddleware",
    "conductor_app.access.page_middleware.HostMiddleware",
    "conductor_app.access.page_middleware.PageCsrfMiddleware",
    "conductor_app.access.page_middleware.PageAuthenticationMiddleware",
    "conductor_app.access.page_middleware.PageMessageMiddleware",
    "conductor_app.admin.user_locale.user_locale_middleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "conductor_app.admin.security.content_security_policy",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [RESOURCES_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": [
                "django.templatetags.i18n",
                "django.templatetags.static",
                "django.contrib.admin.templatetags.admin_urls",
                "conductor_app.admin.tags",
                "conductor_app.admin.layout_tags",
            ],
        },
    }
]

EMAIL_HOST = environment.text("EMAIL_HOST", "localhost")
EMAIL_PORT = environment.number("EMAIL_PORT", 25, least=1, most=65_535)
EMAIL_HOST_USER = environment.text("EMAIL_USER", "")
EMAIL_HOST_PASSWORD = environment.text("EMAIL_PASSWORD", "")
EMAIL_USE_TLS = environment.boolean("EMAIL_TLS", False)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = environment.text("EMAIL_FROM", "conductor@localhost")

USE_TZ = True
TIME_ZONE = "UTC"
# The languages of the pages. Responses of the API and stored texts are in English.
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English")]
USE_I18N = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# Workers call the exact addresses of the API. A redirect would lose the body of their request.
APPEND_SLASH = False

# Static files are served from their packages, without `collectstatic`.
STATIC_URL = f"{FORCE_SCRIPT_NAME or ''}/static/"
STATICFILES_DIRS = [RESOURCES_DIR / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

# The maximum size of a request. The APIs refuse larger ones with errors in their own formats.
CONDUCTOR_MAX_REQUEST_BYTES = 20 * 1024 * 1024
DATA_UPLOAD_MAX_MEMORY_SIZE = CONDUCTOR_MAX_REQUEST_BYTES + 64 * 1024

SILENCED_SYSTEM_CHECKS = AXES_SILENCED_CHECKS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "conductor_app.admin.error_pages.csrf_failure"
CSRF_TRUSTED_ORIGINS = environment.split_list(environment.text("CSRF_TRUSTED_ORIGINS", ""))
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]

# The storage of large payloads: s3://bucket/prefix?endpoint_url=…, or a folder that all processes share.
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
PAYLOAD_STORAGE = environment.text("PAYLOAD_STORAGE", "")
CONDUCTOR_MAX_WORKFLOW_DEPTH = environment.number("MAX_WORKFLOW_DEPTH", 100, least=0)
CONDUCTOR_MAX_TASKS_PER_WORKFLOW = environment.number("MAX_TASKS_PER_WORKFLOW", 200_000, least=0)
CONDUCTOR_MAX_LOOP_ITERATIONS = environment.number("MAX_LOOP_ITERATIONS", 100_000, least=0)
CONDUCTOR_MAX_OPEN_DESCENDANTS = environment.number("MAX_OPEN_DESCENDANTS", 20_000, least=0)
CONDUCTOR_MAX_HISTORY_ENTRIES = environment.number("MAX_HISTORY_ENTRIES", 500_000, least=0)
CONDUCTOR_AI_OPENAI_API_KEY = environment.text("OPENAI_API_KEY", "")
CONDUCTOR_AI_OPENAI_BASE_URL = environment.address("OPENAI_BASE_URL", "https", "http").rstrip("/")
CONDUCTOR_AI_ANTHROPIC_API_KEY = environment.text("ANTHROPIC_API_KEY", "")
CONDUCTOR_AI_ANTHROPIC_BASE_URL = environment.address("ANTHROPIC_BASE_URL", "https", "http").rstrip("/")
CONDUCTOR_AI_OLLAMA_URL = environment.address("OLLAMA_HOST", "https", "http").rstrip("/")
CONDUCTOR_AI_TASKS = environment.boolean("AI_TASKS", True)
CONDUCTOR_AI_TASK_SECONDS = environment.number("AI_TASK_SECONDS", 600, least=1)
CONDUCTOR_AI_TASK_THREADS = environment.number("AI_TASK_THREADS", 4, least=1)
CONDUCTOR_AI_CURRENCY = environment.text("AI_CURRENCY", "USD")
CONDUCTOR_AI_CALL_DAYS = environment.number("AI_CALL_DAYS", 90, least=0)
CONDUCTOR_AI_USAGE_DAYS = environment.number("AI_USAGE_DAYS", 400, least=0)
CONDUCTOR_AI_SEARCH_MAX_DOCUMENTS = environment.number("AI_SEARCH_MAX_DOCUMENTS", 100_000, least=1)
CONDUCTOR_AI_SEARCH_CACHE_MB = environment.number("AI_SEARCH_CACHE_MB", 256, least=0)
CONDUCTOR_MAX_CLOCK_SKEW_MS = environment.number("MAX_CLOCK_SKEW_MS", 500, least=0)
CONDUCTOR_BREAKPOINT_MINUTES = environment.number("BREAKPOINT_MINUTES", 60, least=1)
CONDUCTOR_UNATTACHED_UPLOAD_MAX_BYTES = environment.number("UNATTACHED_UPLOADS_MAX_MB", 1024, least=0) * 1024 * 1024
CONDUCTOR_FILE_MAX_BYTES = environment.number("FILE_MAX_MB", 1024, least=1) * 1024 * 1024
CONDUCTOR_ARTIFACT_MAX_BYTES = environment.number("ARTIFACT_MAX_MB", 5 * 1024, least=1) * 1024 * 1024
CONDUCTOR_TASK_PAYLOAD_SOFT_BYTES = environment.number("TASK_PAYLOAD_SOFT_KB", 3072) * 1024
CONDUCTOR_WORKFLOW_PAYLOAD_SOFT_BYTES = environment.number("WORKFLOW_PAYLOAD_SOFT_KB", 5120) * 1024
CONDUCTOR_TASK_PAYLOAD_MAX_BYTES = environment.number("TASK_PAYLOAD_HARD_KB", 10240, least=1) * 1024
CONDUCTOR_WORKFLOW_PAYLOAD_MAX_BYTES = environment.number("WORKFLOW_PAYLOAD_HARD_KB", 10240, least=1) * 1024

CONDUCTOR_TASKCLUSTER_ROOT_CLIENT_ID, CONDUCTOR_TASKCLUSTER_ROOT_ACCESS_TOKEN = environment.taskcluster_client(
    "TASKCLUSTER_ROOT_CLIENT_ID", "TASKCLUSTER_ROOT_ACCESS_TOKEN"
)
# Previous values of SECRET_KEY: what they have signed or encrypted stays valid until they are removed.
SECRET_KEY_FALLBACKS = list(environment.secret_list("SECRET_KEY_FALLBACKS", least=1))
CONDUCTOR_SECRETS_KEYS = environment.secret_list("SECRETS_KEYS", least=32)
CONDUCTOR_METRICS_TOKENS = environment.secret_list("METRICS_TOKEN", least=16)
CONDUCTOR_TRACES_ENDPOINT = environment.text(
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", environment.text("OTEL_EXPORTER_OTLP_ENDPOINT", "")
)
CONDUCTOR_MAX_WAITING_POLLS = environment.web_connections() * 3 // 4
CONDUCTOR_MAX_WAITING_THREADS = environment.number("WEB_THREADS", environment.WEB_THREADS, least=4) * 3 // 4
CONDUCTOR_BULK_APPROVAL_FROM = environment.number("BULK_APPROVAL_FROM", 0, least=0)
CONDUCTOR_RETENTION_DAYS = environment.number("RETENTION_DAYS", 0, least=0)
CONDUCTOR_DATABASE_LIMIT_GB = environment.number("DATABASE_LIMIT_GB", 0, least=0)
CONDUCTOR_EVENT_RETENTION_DAYS = environment.number("EVENT_RETENTION_DAYS", 7, least=0)
CONDUCTOR_EVENT_QUEUES_AMQP_URL = environment.address("EVENT_QUEUES_AMQP_URL", "amqp", "amqps")
CONDUCTOR_EVENT_QUEUES_REDIS_URL = environment.address("EVENT_QUEUES_REDIS_URL", "redis", "rediss")
CONDUCTOR_EVENT_QUEUES_NATS_URL = environment.address("EVENT_QUEUES_NATS_URL", "nats", "tls")
CONDUCTOR_EVENT_QUEUES_KAFKA_SERVERS = environment.servers("EVENT_QUEUES_KAFKA_SERVERS")
CONDUCTOR_TASK_STATUS_LISTENER_URL = environment.address("TASK_STATUS_LISTENER_URL", "https", "http")
CONDUCTOR_WORKFLOW_STATUS_LISTENER_URL = environment.address("WORKFLOW_STATUS_LISTENER_URL", "https", "http")
CONDUCTOR_STATE_CHANGE_SINK = environment.text("STATE_CHANGE_SINK", "conductor")
CONDUCTOR_PUBLIC_URL = environment.address("PUBLIC_URL", "https", "http").rstrip("/")
CONDUCTOR_ARTIFACT_URL = environment.origin("ARTIFACT_URL", "https", "http")
CONDUCTOR_ENVIRONMENT_NAME = environment.text("ENVIRONMENT_NAME", "")
CONDUCTOR_ENVIRONMENT_COLOR = environment.choice("ENVIRONMENT_COLOR", tuple(COLORS), "gray")
CONDUCTOR_TASKCLUSTER_CLAIM_TIMEOUT = environment.number("TASKCLUSTER_CLAIM_TIMEOUT", 1_200, least=1)
CONDUCTOR_TASKCLUSTER_DEADLINE_DELAY = environment.number("TASKCLUSTER_DEADLINE_DELAY", 60)
CONDUCTOR_TASKCLUSTER_EXPIRATION_DELAY = environment.number("TASKCLUSTER_EXPIRATION_DELAY", 1_800)
CONDUCTOR_TASKCLUSTER_EXCEPTION_MESSAGES = environment.choice(
    "TASKCLUSTER_EXCEPTION_MESSAGES", ("final", "every"), "final"
)
CONDUCTOR_TASKCLUSTER_AMQP_URL = environment.address("TASKCLUSTER_AMQP_URL", "amqp", "amqps")
CONDUCTOR_SQL_TASK_CONNECTIONS = environment.connections("SQL_TASK_CONNECTIONS")
CONDUCTOR_ISOLATION_GROUPS = environment.groups("ISOLATION_GROUPS")
CONDUCTOR_ISOLATION_THREADS = environment.number("ISOLATION_THREADS", 4, least=1, most=100)

LOGGING = logging_config(
    environment.choice("LOG_LEVEL", ("DEBUG", "INFO", "WARNING", "ERROR"), "INFO"),
    environment.choice("LOG_FORMAT", ("console", "json"), "console"),
)

# The state is in the database. Late messages are dropped, and beat compensates for lost ones.
CELERY_IMPORTS = ["conductor_app.background.jobs"]
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_RESULT_EXPIRES = None
CELERY_TIMEZONE = TIME_ZONE
# Threads, because jobs mostly wait for databases and other systems.
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONCURRENCY = environment.number("CELERY_THREADS", 8, least=4)
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BEAT_SCHEDULER = "conductor_app.background.leader_scheduler:LeaderScheduler"
CELERY_BEAT_MAX_LOOP_INTERVAL = 1
# The number of jobs after which beat stores their last runs for the pages: about every ten seconds.
CELERY_BEAT_SYNC_EVERY = 30
