"""Fixtures of the whole suite. The settings choose the database: see `make test`."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from conductor_app.utils import clock as product_clock
from conductor_app.utils import memory_tuning, process_state
from conductor_app.utils import randomness as product_randomness
from tests import database_baseline, hypothesis_profile, reply_check, slow_tests
from tests.fault_injection import FaultInjector
from tests.pure_decisions import forbid_statements

# Fixtures that tests of several slices share.
pytest_plugins = ["tests.api_fixtures", "tests.page_fixtures", "tests.access_fixtures", "conductor_app.testing.plugin"]

hypothesis_profile.load_profile()

# 1 March 2027, 12:00:00 UTC
NOON = 1_803_902_400_000


class Clock:
    """The product's time, standing still until a test moves it."""

    def __init__(self, moment: int) -> None:
        self._moment = moment

    def now(self) -> int:
        """Return the application's time in epoch milliseconds."""
        return self._moment

    def advance(self, *, seconds: float) -> None:
        """Let time pass."""
        self._moment += round(seconds * 1000)

    def time_ns(self) -> int:
        return self._moment * 1_000_000


@pytest.fixture(scope="session", autouse=True)
def checked_replies() -> Iterator[None]:
    """Check every reply that Django's test client receives against the OpenAPI document."""
    with pytest.MonkeyPatch.context() as patch:
        reply_check.install(patch)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rows-only", action="store_true", help="leave out the tests that no database can change")


WAIT_FOR_OTHERS = (
    *("management", "browser", "clients", "system_tasks", "ai", "cluster", "qa", "notifications", "packaging"),
    *("docs", "settings", "telemetry", "testing", "upgrade", "deploy"),
)
"""Folders whose tests wait for processes of their own, and have the files that take longest."""
WITH_CLUSTER = ("cluster", "qa")
"""Folders whose tests start PostgreSQL themselves, once: beside the suite on PostgreSQL."""
ROWLESS = ("architecture", "browser", "core", "deploy", "docs", "scripts")
"""Folders in which no test touches rows, or in which rows and commands mean the same on each database."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the import of folders that `--rows-only` or `-m "not slow"` excludes."""
    is_rowless = collection_path.parent == config.rootpath / "tests" and collection_path.name in ROWLESS
    is_excluded = is_rowless and config.getoption("--rows-only")
    return True if is_excluded or slow_tests.is_left_out(config, collection_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark slow tests. Run tests that wait first. On a second database, skip tests that use no rows.

    There, tests that wait are the last ones, except those of a cluster, so that the tests on one database use the cores
    while those on the other one wait.
    """
    slow_tests.mark_tests(config.rootpath, items)
    is_second = config.getoption("--rows-only")

    def order(item: pytest.Item) -> tuple[bool, bool]:
        folder = item.path.relative_to(config.rootpath).parts[1]
        return folder not in WITH_CLUSTER, (folder in WAIT_FOR_OTHERS) == is_second

    items.sort(key=order)
    if not is_second:
        return
    left_out = [item for item in items if not uses_database(item)]
    items[:] = [item for item in items if uses_database(item)]
    config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish() -> None:
    """Exclude the imported modules from garbage collection, which would otherwise traverse them repeatedly."""
    memory_tuning.tune_garbage_collection()


def uses_database(item: pytest.Item) -> bool:
    """Return whether the test uses the database, by a mark or a fixture, in a way that the database can affect."""
    if item.path.parent.name in WITH_CLUSTER:
        return True
    if item.get_closest_marker("one_database"):
        return False
    asks = {"db", "transactional_db", "live_server"} & set(getattr(item, "fixturenames", ()))
    return bool(asks) or item.get_closest_marker("django_db") is not None


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock():
        database_baseline.remember_baseline()
    yield
    with django_db_blocker.unblock():
        database_baseline.end_sessions()


@pytest.fixture(scope="session")
def new_data_folder(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Return a function that creates a data folder for a server of a test.

    On SQLite, it has a database with all migrations, which would take the first start of a server some seconds.
    """

    def create(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        (folder / "var").mkdir()
        if connection.vendor == "sqlite":
            with django_db_blocker.unblock(), connection.cursor() as cursor:
                cursor.execute("VACUUM INTO %s", [str(folder / "var" / "conductor.sqlite3")])
        return folder

    return create


@pytest.fixture(autouse=True)
def seeded_randomness(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    seed_randomness(monkeypatch, request.node.nodeid)


def seed_randomness(patch: pytest.MonkeyPatch, test: str) -> None:
    """Seed all random generators from the test's name, so that values are independent of the test order."""
    draws = count()
    patch.setattr(
        product_randomness, "_source", lambda size: sha256(f"{test} {next(draws)}".encode()).hexdigest()[: 2 * size]
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return a clock that advances only when the test says so."""
    return freeze_time(monkeypatch)


def freeze_time(patch: pytest.MonkeyPatch) -> Clock:
    """Freeze the time at noon."""
    travelling = Clock(NOON)
    patch.setattr(product_clock, "_source", travelling.time_ns)
    return travelling


@pytest.fixture(autouse=True)
def pure_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test if a decision executes a statement."""
    forbid_statements(monkeypatch)


@pytest.fixture(autouse=True)
def new_process_state() -> None:
    """Drop what the process knows of the database, which is reset between tests."""
    process_state.reset()


@pytest.fixture
def faults(transactional_db: None, monkeypatch: pytest.MonkeyPatch, settings: Any) -> FaultInjector:
    """Return the injector of errors at each call of the database, the storage and the helper processes.

    Sweeps handle their errors as in production.
    """
    settings.CONDUCTOR_RAISES_IN_SWEEPS = False
    return FaultInjector(monkeypatch)
