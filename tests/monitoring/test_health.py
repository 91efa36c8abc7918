"""Health checks report the truth: about the database, its disk, its migrations, and background jobs."""

import resource

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.test import Client

from conductor_app.monitoring import api as health
from conductor_app.monitoring import commands as readiness
from conductor_app.monitoring.queries.health import BEAT, SWEEPS, Liveness, liveness


@pytest.fixture
def observed():
    """Return a function that lets seconds pass since the last heartbeat of both jobs, or of one."""
    seconds = [0.0]
    own = Liveness(lambda: seconds[0])
    own.observe(BEAT, 1)
    own.observe(SWEEPS, 1)
    liveness.value = own

    def pass_by(passed, alive=()):
        seconds[0] += passed
        for name in alive:
            own.observe(name, 2)

    return pass_by


def get(path, **headers):
    reply = Client().get(path, headers=headers)
    return reply.status_code, reply.json()


def failed_checks(document):
    return [check["name"] for check in document["checks"] if not check["healthy"]]


@pytest.mark.django_db
def test_a_healthy_server_is_live_and_ready(observed):
    assert get("/health/live") == (200, {"status": "live"})
    status, document = get("/health/ready")

    assert (status, document["status"]) == (200, "ready")
    assert [check["name"] for check in document["checks"]] == ["database", "migrations", "clock", "sweeps", "beat"]


@pytest.mark.django_db
def test_a_probe_may_use_any_host_name(settings):
    settings.ALLOWED_HOSTS = ["conductor.example.org"]

    assert get("/health/ready", host="10.42.0.7:8000")[0] == 200


@pytest.mark.django_db
def test_a_server_without_sweeps_is_not_ready(observed):
    observed(11)

    status, document = get("/health/ready")

    assert (status, document["status"], failed_checks(document)) == (503, "unavailable", ["sweeps", "beat"])
    assert get("/health")[1]["healthy"] is False
    assert get("/actuator/health") == (503, {"status": "DOWN"})


@pytest.mark.django_db
def test_a_frozen_beat_is_reported_while_other_processes_sweep(observed):
    observed(11, alive=[SWEEPS])

    status, document = get("/health/ready")

    assert (status, document["status"], failed_checks(document)) == (200, "degraded", ["beat"])
    _, conductors = get("/health")
    assert (conductors["healthy"], len(conductors["suppressedHealthResults"])) == (True, 1)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_server_with_missing_migrations_is_not_ready():
    readiness._is_migrated.cache_clear()
    call_command("migrate", "conductor", "0001", verbosity=0)
    try:
        status, document = get("/health/ready")
    finally:
        call_command("migrate", "conductor", verbosity=0)

    assert (status, failed_checks(document)) == (503, ["migrations"])
    assert "conductor.0002_overdue_items" in str(document)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="the disk of a PostgreSQL server belongs to another process")
@pytest.mark.django_db(transaction=True)
def test_a_server_whose_disk_is_full_is_live_and_not_ready():
    get("/health/ready")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    health._readiness.reset()
    # Every write to a file of this process fails, as on a full disk. Python ignores the signal.
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        live, ready = get("/health/live"), get("/health/ready")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert live[0] == 200
    assert (ready[0], failed_checks(ready[1])) == (503, ["database"])


@pytest.mark.django_db
def test_an_unreachable_database_is_reported_without_its_address(monkeypatch):
    def refuse(*args):
        raise OperationalError("connection to server at db.internal failed")

    with connection.execute_wrapper(refuse):
        status, document = get("/health/ready")

    assert (status, failed_checks(document)) == (503, ["database"])
    assert "db.internal" not in str(document)


@pytest.mark.django_db
def test_frequent_checks_cost_one_write_a_second(django_assert_num_queries, observed):
    get("/health/ready")

    with django_assert_num_queries(0):
        for path in ("/health", "/health/ready", "/actuator/health"):
            assert get(path)[0] == 200


@pytest.mark.parametrize(
    "path", ["/api/health", "/health", "/health/live", "/health/ready", "/actuator/info", "/metrics"]
)
@pytest.mark.parametrize("method", ["POST", "PATCH", "FOO"])
@pytest.mark.parametrize("cookie", ["", "sessionid=x"])
def test_another_method_is_405_in_the_format_of_conductor(db, path, method, cookie):
    reply = Client(enforce_csrf_checks=True).generic(method, path, headers={"cookie": cookie} if cookie else {})

    assert (reply.status_code, reply.json()["status"], reply.headers["Allow"]) == (405, 405, "GET, HEAD")
    assert reply.json()["message"] == f"Request method '{method}' is not supported"
