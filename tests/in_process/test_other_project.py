"""The app in another Django project: it changes nothing there, and its API works in the project's processes."""

import subprocess
import sys

import pytest

from tests.in_process.shop import DATABASES, PROJECT, ROOT

pytestmark = pytest.mark.django_db(transaction=True)

IMPORT = """
import os, sys, threading
before = set(sys.modules), set(os.listdir("/proc/self/fd"))
import conductor_app
loaded = {name for name in set(sys.modules) - before[0] if not name.startswith("conductor_app")}
assert {name.split(".")[0] for name in loaded} <= sys.stdlib_module_names, loaded
assert {name for name in sys.modules if name.startswith("conductor_app")} == {"conductor_app"}
from conductor_app import start_workflow
assert not [name for name in sys.modules if name.split(".")[0] in {"django", "celery", "kombu", "psycopg"}]
assert threading.active_count() == 1 and set(os.listdir("/proc/self/fd")) == before[1]
"""
STATE = """
import atexit, faulthandler, gc, locale, logging, os, signal, sys, threading, time, warnings
def state():
    loggers = {name: logger for name, logger in logging.root.manager.loggerDict.items()
               if isinstance(logger, logging.Logger)} | {"root": logging.root}
    return {
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "logging": {name: (each.level, list(each.handlers), list(each.filters), each.propagate, each.disabled)
                    for name, each in loggers.items() if each.handlers or each.filters or each.level or each.disabled},
        "log records": (logging.getLogRecordFactory(), logging.getLoggerClass(), logging.root.manager.disable),
        "threads": [thread.name for thread in threading.enumerate()],
        "warnings": (list(warnings.filters), warnings.showwarning),
        "locale": (locale.setlocale(locale.LC_ALL), time.tzname),
        "environment": {**os.environ, "TZ": "", "DJANGO_SETTINGS_MODULE": ""},
        "hooks": (sys.excepthook, threading.excepthook, sys.unraisablehook, sys.displayhook, list(sys.meta_path)),
        "garbage": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()),
        "limits": (sys.getrecursionlimit(), sys.getswitchinterval(), os.getcwd(), os.umask(0o22), os.umask(0o22)),
        "exit": atexit._ncallbacks(),
    }
"""
SAME = (
    STATE
    + """
def require_same(before):
    for name, now in state().items():
        assert now == before[name], (name, before[name], now)
os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"
import django
from django.conf import settings
apps = settings.INSTALLED_APPS
if sys.argv[1] == "import":
    before = state()
    import conductor_app
    for name in conductor_app.__all__:
        getattr(conductor_app, name)
else:
    # Django, the other apps and psycopg, which sets the level of its logger, change some, so they are loaded first.
    import psycopg
    settings.INSTALLED_APPS = [name for name in apps if name not in ("conductor_app", "orders")]
    django.setup()
    before = state()
    from django.apps import registry
    settings.INSTALLED_APPS = apps
    registry.apps.set_installed_apps(apps)
require_same(before)
"""
)
SETUP = """
import os, sys, threading
def opened():
    paths = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
    return {os.readlink(path) for path in paths if os.path.exists(path)} - {"/dev/null"}
files = opened()
os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"
from django.conf import settings
from django.db import connections
connections.settings  # Django completes DATABASES
before = {name: repr(getattr(settings, name)) for name in dir(settings) if name.isupper()}
import django
django.setup()
assert threading.active_count() == 1, threading.enumerate()
assert opened() == files, opened()
assert {name: repr(getattr(settings, name)) for name in dir(settings) if name.isupper()} == before
from django.contrib.auth import get_user_model, signals
from django.contrib.auth.models import Group
from django.db.models.signals import post_save, pre_save
assert [receiver for each in (signals.user_logged_in, signals.user_login_failed, signals.user_logged_out)
        for receiver in each.receivers if "conductor_app" in repr(receiver[1]())] == []
for model in (get_user_model(), Group):
    for each in (post_save, pre_save):
        found = [receiver for receiver in each._live_receivers(model)[0] if "conductor_app" in receiver.__module__]
        assert found == [], found
from django.db import connection
assert connection.connection is None
"""


def test_an_import_loads_and_opens_nothing():
    subprocess.run([sys.executable, "-c", IMPORT], cwd=ROOT, check=True, timeout=60)


def test_the_start_of_another_project_starts_nothing_and_changes_no_setting(shop):
    subprocess.run([sys.executable, "-c", SETUP], cwd=PROJECT, env=shop.environment, check=True, timeout=60)


def test_the_app_changes_nothing_of_the_process_of_another_project(shop):
    subprocess.run([sys.executable, "-c", SAME, "setup"], cwd=PROJECT, env=shop.environment, check=True, timeout=60)


@DATABASES
def test_the_checks_of_a_project_find_nothing(shop):
    assert "no issues" in shop.manage("check", "--fail-level", "WARNING")


@DATABASES
def test_the_project_needs_no_migrations_of_its_own(shop):
    assert "No changes detected" in shop.manage("makemigrations", "--check", "--dry-run")


def test_settings_are_one_dictionary(shop):
    shop.settings = {"RETENTION_DAYS": 30}
    assert shop.execute("from conductor_app.settings import conf; result = conf.retention_days") == 30

    shop.settings = {"RETENTION_DAYS": "30", "RETENTION": 1}
    said = shop.call("check").stdout
    assert "CONDUCTOR['RETENTION_DAYS'] is '30', but must be of type int." in said
    assert "CONDUCTOR['RETENTION'] is not a setting of this app." in said


def test_a_database_without_support_is_an_error_with_a_hint(shop):
    shop.database = {"ENGINE": "django.db.backends.sqlite3", "NAME": "unused.sqlite3"}

    said = shop.call("check").stdout

    assert "conductor.W002" in said and "Set ENGINE to 'conductor_app.db.sqlite'" in said


def test_tables_that_a_router_sends_to_another_database_are_an_error(shop):
    shop.variables = {"SHOP_ROUTER": "1"}

    said = shop.call("check").stdout

    assert "conductor.E003" in said and "the database routers send the tables of conductor_app to 'other'" in said
    assert "HINT: Put 'conductor_app.in_process.routers.ConductorRouter' first in DATABASE_ROUTERS" in said


def test_a_database_that_does_not_exist_is_an_error(shop):
    shop.settings = {"DATABASE": "workflows"}

    said = shop.call("check").stdout

    assert "CONDUCTOR['DATABASE'] is 'workflows', but DATABASES has no such database." in said


@pytest.mark.parametrize(
    ("setting", "name", "code"),
    [
        ("INSTALLED_APPS", "django.contrib.messages", "E007"),
        ("INSTALLED_APPS", "django.contrib.admin", "E007"),
        ("INSTALLED_APPS", "django.contrib.sessions", "E007"),
        ("INSTALLED_APPS", "django.contrib.staticfiles", "E007"),
        ("MIDDLEWARE", "django.contrib.sessions.middleware.SessionMiddleware", "E007"),
        ("MIDDLEWARE", "django.contrib.messages.middleware.MessageMiddleware", "E007"),
    ],
)
def test_what_the_pages_need_and_the_project_lacks_is_an_error_with_a_hint(shop, setting, name, code):
    listed = shop.execute(f"from django.conf import settings; result = list(settings.{setting})")
    shop.change(**{setting: [each for each in listed if each != name]}, ROOT_URLCONF="shop.pages_only")

    said = shop.call("check").stdout

    assert f"conductor.{code}" in said and f"{name!r}." in said and f"HINT: Add it to {setting}" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("name", ["django.contrib.auth", "django.contrib.contenttypes"])
def test_an_app_whose_tables_are_missing_is_named(shop, name):
    shop.change(INSTALLED_APPS=sorted({"django.contrib.auth", "django.contrib.contenttypes", "conductor_app"} - {name}))

    said = shop.call("check").stdout

    assert f"conductor_app requires {name!r}. Add what is missing to INSTALLED_APPS." in said


ORDER = """
from django.db import transaction
from accounts.models import User
from conductor_app import get_run, start_workflow
from orders.models import Order
user = User.objects.create_user("ann@example.com")
try:
    with transaction.atomic(using=Order.objects.db):
        Order.objects.create(customer="undone").begin()
        raise ZeroDivisionError
except ZeroDivisionError:
    pass
with transaction.atomic(using=Order.objects.db):
    Order.objects.create(customer="ann").begin(user)
[order] = Order.objects.all()
run = get_run(order.run_id, with_tasks=True)
from conductor_app.runs.models import Run
result = [order.customer, run.status, run.input["order_id"] == order.pk, run.started_by, len(run.tasks)]
result.append(Run.objects.count())
"""


@DATABASES
def test_definitions_that_differ_are_shown_and_applied(shop):
    assert "The definitions in the database are those of the project." in shop.manage("conductor_definitions")
    assert "conductor.W003" not in shop.manage("check", "--database", shop.alias)
    shop.execute(
        """
from conductor_app.definitions.models import TaskDefinition, WorkflowDefinition
WorkflowDefinition.objects.filter(name="notice").delete()
TaskDefinition.objects.filter(name="ship").delete()
result = 0
"""
    )

    said = shop.call("conductor_definitions")
    assert said.returncode == 1 and "create workflow notice, version 1" in said.stdout
    said = shop.call("check", "--database", shop.alias).stdout
    assert "conductor.W003" in said and "create task ship" in said
    shop.manage("conductor_definitions", "--apply")

    assert "conductor.W003" not in shop.manage("check", "--database", shop.alias)


@DATABASES
def test_an_order_and_its_workflow_are_one_transaction(shop):
    assert shop.execute(ORDER) == ["ann", "RUNNING", True, "ann@example.com", 1, 1]


def test_an_order_and_its_workflow_are_one_transaction_on_the_backend_of_django(shop):
    if "ENGINE" not in shop.database:
        shop.database["ENGINE"] = "django.db.backends.sqlite3"

    assert shop.execute(ORDER) == ["ann", "RUNNING", True, "ann@example.com", 1, 1]
