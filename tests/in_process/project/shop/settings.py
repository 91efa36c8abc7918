"""Settings as `startproject` writes them, with a user model of the project and one more app."""

import json
import os
import sys
from pathlib import Path

from conductor_app.processes.command_line import SERVER_PACKAGES

# The packages of a server are not installed in a project.
sys.modules |= dict.fromkeys(SERVER_PACKAGES)

BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = "insecure, for tests only"
DEBUG = "SHOP_DEBUG" in os.environ
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "conductor_app",
    "accounts",
    "orders",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "shop.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
DATABASES = {
    "default": {"ENGINE": "conductor_app.db.sqlite", "NAME": BASE_DIR / "db.sqlite3"}
    | json.loads(os.environ.get("SHOP_DATABASE", "{}")),
}
if "SHOP_ROUTER" in os.environ:
    DATABASES["other"] = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
    DATABASE_ROUTERS = ["shop.routers.OtherDatabase"]
if "SHOP_WORKFLOWS" in os.environ:
    DATABASES["workflows"] = DATABASES["default"] | json.loads(os.environ["SHOP_WORKFLOWS"])
    DATABASE_ROUTERS = ["conductor_app.in_process.routers.ConductorRouter", "shop.routers.OrdersWithWorkflows"]
    ROOT_URLCONF = "shop.no_pages"
AUTH_USER_MODEL = "accounts.User"
LANGUAGE_CODE = "de-ch"
TIME_ZONE = "Europe/Zurich"
USE_I18N = USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
STATIC_URL = "static/"
TASKS = {"default": {"BACKEND": "conductor_app.in_process.tasks_backend.ConductorBackend"}}
CONDUCTOR = json.loads(os.environ.get("SHOP_CONDUCTOR", "{}"))
globals().update(json.loads(os.environ.get("SHOP_SETTINGS", "{}")))
