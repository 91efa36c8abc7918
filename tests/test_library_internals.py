"""The contract with private parts of libraries. A new version that breaks one of them fails here first.

Gunicorn's parts are in `test_gunicorn_internals.py` and psycopg's in `store/test_psycopg_internals.py`: both have a
fallback. The network guards check themselves, and send nothing if they have no effect.
"""

import logging
import subprocess
import sys
from inspect import signature, unwrap
from unittest.mock import Mock

import httpcore2
import pytest
from celery.signals import worker_init
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, Permission, User
from django.db.backends.postgresql.base import DatabaseWrapper as PostgresqlWrapper
from django.db.backends.sqlite3.base import DatabaseWrapper as SqliteWrapper
from django.db.utils import ConnectionHandler
from django.http import HttpResponse
from django.test import RequestFactory
from django.utils.log import log_response
from psycopg_pool import ConnectionPool
from urllib3 import PoolManager
from urllib3.connection import HTTPConnection

from conductor_app.access.permissions import load_permissions
from conductor_app.ai.workers import guarded_http
from conductor_app.processes import gunicorn_config, jobs
from conductor_app.processes.serving import load_modules
from conductor_app.system_tasks import guarded_requests
from conductor_app.system_tasks.http import HttpTransport, RequestFailed
from conductor_app.system_tasks.network_guard import GuardIneffective, require_network_guards

SQLITE = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}


@pytest.fixture(autouse=True)
def _forget():
    guarded_requests.require_effective_guard.cache_clear()
    guarded_http.require_effective_guard.cache_clear()
    yield
    guarded_requests.require_effective_guard.cache_clear()
    guarded_http.require_effective_guard.cache_clear()


def test_pooled_connections_of_django_are_returned_to_a_pool_of_psycopg():
    """`db/postgresql/base.py` replaces a connection of the pool that the server has closed."""
    assert isinstance(PostgresqlWrapper.pool, property)
    assert "getconn" in unwrap(PostgresqlWrapper.get_new_connection).__code__.co_names
    assert [*signature(ConnectionPool.putconn).parameters] == ["self", "conn"]


@pytest.mark.django_db
def test_sqlite_begins_transactions_in_the_mode_of_the_connection():
    """The snapshots of `read_snapshot` begin deferred, so that they do not wait for writers."""
    wrapper = ConnectionHandler({"default": SQLITE})["default"]
    wrapper.ensure_connection()
    statements = []
    wrapper.connection.set_trace_callback(statements.append)
    wrapper.transaction_mode = "DEFERRED"

    wrapper.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)

    assert statements == ["BEGIN DEFERRED"]
    assert isinstance(wrapper, SqliteWrapper)


@pytest.mark.django_db
def test_the_backend_of_django_reads_the_permissions_that_were_loaded_before(django_assert_num_queries):
    """`access/permissions.py` fills the caches of `ModelBackend` with one statement instead of two."""
    user, group = User.objects.create_user("amy"), Group.objects.create(name="team")
    own, shared = Permission.objects.all()[:2]
    user.user_permissions.add(own)
    user.groups.add(group)
    group.permissions.add(shared)
    names = {f"{each.content_type.app_label}.{each.codename}" for each in (own, shared)}
    user = User.objects.get(pk=user.pk)

    with django_assert_num_queries(1):
        load_permissions(user)
        found = ModelBackend().get_all_permissions(user)

    assert found == names


def test_a_response_that_is_marked_as_logged_is_not_logged_again(caplog):
    """Both `errors.py` mark errors of API clients. Django would log a warning for each missing object."""
    caplog.set_level(logging.DEBUG, logger="django.request")
    response = HttpResponse(status=404)
    response._has_been_logged = True

    log_response("not found", response=response, request=RequestFactory().get("/"))

    assert caplog.records == []


@pytest.mark.parametrize(
    ("method", "names"),
    [
        ("get_queryset", "filter_specs has_filters has_active_filters clear_all_filters_qs"),
        (
            "get_results",
            "result_count show_full_result_count show_admin_actions full_result_count result_list can_show_all "
            "multi_page paginator",
        ),
    ],
)
def test_the_change_list_of_django_has_the_fields_that_the_list_of_runs_sets(method, names):
    """`runs/pages/list.py` has its own filters and pages. Django's templates read these fields."""
    used = getattr(ChangeList, method).__code__.co_names

    assert [name for name in names.split() if name not in used] == []


def test_functions_that_run_at_the_end_of_a_process_can_be_run():
    """A process of `serve` is a fork, which does not run them on its own (`processes/serving.py`)."""
    script = "import atexit, os; atexit.register(print, 'ended', flush=True); atexit._run_exitfuncs(); os._exit(0)"

    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout == b"ended\n"


def test_the_guards_have_an_effect_with_the_installed_versions():
    guarded_requests.require_effective_guard()
    guarded_http.require_effective_guard()


def test_urllib3_and_requests_that_do_not_ask_the_guard_send_nothing(monkeypatch):
    """`system_tasks/guarded_requests.py` overrides `_new_conn` and sets `pool_classes_by_scheme`."""
    monkeypatch.setattr(guarded_requests.GuardedConnection, "_new_conn", HTTPConnection._new_conn)

    with pytest.raises(GuardIneffective, match=r"no effect with requests [\d.]+ and urllib3 [\d.]+"):
        guarded_requests.require_effective_guard()


@pytest.mark.parametrize("library", ["urllib3", "httpcore2"])
def test_no_process_starts_while_a_guard_has_no_effect(monkeypatch, library):
    if library == "urllib3":
        monkeypatch.setattr(
            HTTPConnection, "connect", lambda self: setattr(self, "sock", HTTPConnection._new_conn(self))
        )
    else:
        pool = httpcore2.ConnectionPool
        monkeypatch.setattr(httpcore2, "ConnectionPool", lambda network_backend=None, **options: pool(**options))

    for start in (
        require_network_guards,
        jobs.require_guards,
        load_modules,
        lambda: gunicorn_config.on_starting(Mock()),
    ):
        with pytest.raises(SystemExit, match=rf"The network guard has no effect with .*{library} [\d.]+"):
            start()


def test_celery_calls_the_test_of_the_guards_when_a_worker_starts():
    assert jobs.require_guards in [receiver() for _, receiver in worker_init.receivers]


def test_processes_start_with_the_installed_versions():
    require_network_guards()


def test_an_http_task_fails_while_the_guard_has_no_effect(monkeypatch):
    monkeypatch.setattr(guarded_requests.GuardedAdapter, "init_poolmanager", unguarded_pools)

    with pytest.raises(RequestFailed, match="The network guard has no effect") as failure:
        HttpTransport().reply_to({"http_request": {"uri": "http://127.0.0.1:9/", "method": "GET"}})

    assert failure.value.is_retryable


def unguarded_pools(self, connections, maxsize, block=False, **options):
    self.poolmanager = PoolManager(num_pools=connections, maxsize=maxsize, block=block, **options)


@pytest.mark.parametrize("name", ["ConnectionPool", "AsyncConnectionPool"])
def test_httpcore_that_does_not_ask_the_guard_sends_nothing(monkeypatch, name):
    """`ai/workers/guarded_http.py` sets `_pool` of a transport, with a network backend that opens the sockets."""
    pool = getattr(httpcore2, name)
    monkeypatch.setattr(httpcore2, name, lambda network_backend=None, **options: pool(**options))

    with pytest.raises(GuardIneffective, match="no effect with httpx2"):
        guarded_http.guarded_client(1)
