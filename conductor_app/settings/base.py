"""Settings of all profiles. A profile defines the databases, the broker and the server."""

from . import environment, services, table
from .logs import logging_config
from .resources import TEMPLATE_OPTIONS, TEMPLATES_DIR
from .sign_in import *  # noqa: F403
from .sign_in import AXES_SILENCED_CHECKS

ROOT_URLCONF = "conductor_app.urls"
WSGI_APPLICATION = "conductor_app.wsgi.application"
DEBUG = False
# The names of the environment variables that these settings read, for `conductor-app check`.
READ_VARIABLES = environment.READ_NAMES

HOST = table.read("HOST")
PORT = table.read("PORT")
ON_LOOPBACK = environment.is_loopback(HOST)
# The path below which the server is reached, if a proxy serves other applications under the same name.
FORCE_SCRIPT_NAME = table.read("SCRIPT_NAME") or None

INSTALLED_APPS = [
    # First, so that a failed sign-in is counted before it is recorded.
    "axes",
    "conductor_app.apps.ConductorConfig",
    "conductor_app.server",
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
    "conductor_app.web.middleware.RequestContextMiddleware",
    "conductor_app.web.middleware.ClientRequestMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "conductor_app.web.compression.StaticFiles",
    "conductor_app.web.compression.PageCompression",
    "conductor_app.web.middleware.PageSessionMiddleware",
    "conductor_app.web.middleware.HostMiddleware",
    "conductor_app.web.middleware.PageCsrfMiddleware",
    "conductor_app.web.middleware.PageAuthenticationMiddleware",
    "conductor_app.web.middleware.PageMessageMiddleware",
    "conductor_app.web.preferences.user_locale_middleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "conductor_app.web.middleware.content_security_policy",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [TEMPLATES_DIR],
        "APP_DIRS": True,
        "OPTIONS": TEMPLATE_OPTIONS,
    }
]

EMAIL_HOST = table.read("EMAIL_HOST")
EMAIL_PORT = table.read("EMAIL_PORT")
EMAIL_HOST_USER = table.read("EMAIL_USER")
EMAIL_HOST_PASSWORD = table.read("EMAIL_PASSWORD")
EMAIL_USE_TLS = table.read("EMAIL_TLS")
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = table.read("EMAIL_FROM")

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
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

# The maximum size of a request. The APIs refuse larger ones with errors in their own formats.
DATA_UPLOAD_MAX_MEMORY_SIZE = table.DEFAULTS["max_request_bytes"] + 64 * 1024

SILENCED_SYSTEM_CHECKS = AXES_SILENCED_CHECKS
# Servers below different paths of one host must neither send nor replace each other's cookies.
COOKIE_SUFFIX = (FORCE_SCRIPT_NAME or "").replace("/", "_")
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = f"sessionid{COOKIE_SUFFIX}", f"csrftoken{COOKIE_SUFFIX}"
SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = FORCE_SCRIPT_NAME or "/"
MESSAGE_STORAGE = "conductor_app.web.middleware.MessageStorage"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "conductor_app.site.error_pages.csrf_failure"
CSRF_TRUSTED_ORIGINS = environment.split_list(table.read("CSRF_TRUSTED_ORIGINS"))
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]

# The storage of large payloads: s3://bucket/prefix?endpoint_url=… or another bucket, or a folder of all processes.
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
PAYLOAD_STORAGE = table.read("PAYLOAD_STORAGE")
RUN_ARCHIVE = table.read("RUN_ARCHIVE")
if RUN_ARCHIVE:
    STORAGES["run_archive"] = services.payload_storage("RUN_ARCHIVE", RUN_ARCHIVE)

CONDUCTOR_IS_SERVER = True
# The settings of this project. Those that follow depend on several variables.
vars().update(table.read_settings())
CONDUCTOR_RUN_ARCHIVE = "run_archive" if RUN_ARCHIVE else ""

CONDUCTOR_TASKCLUSTER_ROOT_CLIENT_ID, CONDUCTOR_TASKCLUSTER_ROOT_ACCESS_TOKEN = environment.taskcluster_client(
    "TASKCLUSTER_ROOT_CLIENT_ID", "TASKCLUSTER_ROOT_ACCESS_TOKEN"
)
# Previous values of SECRET_KEY: what they have signed or encrypted stays valid until they are removed.
SECRET_KEY_FALLBACKS = list(table.read("SECRET_KEY_FALLBACKS"))
CONDUCTOR_TRACES_ENDPOINT = table.read(
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", default=table.read("OTEL_EXPORTER_OTLP_ENDPOINT")
)

LOGGING = logging_config(table.read("LOG_LEVEL"), table.read("LOG_FORMAT"))

# The state is in the database. Late messages are dropped, and beat compensates for lost ones.
CELERY_IMPORTS = ["conductor_app.processes.jobs"]
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_RESULT_EXPIRES = None
CELERY_TIMEZONE = TIME_ZONE
# Threads, because jobs mostly wait for databases and other systems.
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONCURRENCY = table.read("CELERY_THREADS")
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BEAT_SCHEDULER = "conductor_app.processes.beat:LeaderScheduler"
CELERY_BEAT_MAX_LOOP_INTERVAL = 1
# The number of jobs after which beat stores their last runs for the pages: about every ten seconds.
CELERY_BEAT_SYNC_EVERY = 30

REST_FRAMEWORK = {
    "DEFAULT_SCHEMA_CLASS": "conductor_app.site.openapi.schema.ConductorSchema",
    "URL_FORMAT_OVERRIDE": None,
}
