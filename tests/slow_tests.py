"""The rules for the markers `slow` and `commands`: `make test` leaves out tests that `make test-all` runs.

A test is slow because of what it uses, so that a new one needs no mark: a folder of FOLDERS, a fixture of FIXTURES, or
code of the test or of one of its fixtures that names something of NAMES. Files that repeat requests, examples or
operations many times have `pytestmark = pytest.mark.slow`.

On PostgreSQL, `make test` runs the tests of commands: those of COMMANDS and SCENARIOS that use no fixture of PAGES. Of
a test with several cases, it runs the first. These execute nine tenths of the distinct statements that all fast tests
in these folders execute.
"""

from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

FAST, FAST_COMMANDS = "not slow", "commands and not slow"
"""The expressions of `pytest -m` for the fast tests."""
FOLDERS = {
    "browser": "a browser",
    "clients": "an SDK and a server",
    "cluster": "a cluster of processes",
    "deploy": "proxies, charts and images",
    "docs": "the commands of the documentation",
    "in_process": "the processes of another project",
    "packaging": "builds and installations of the package",
    "upgrade": "former versions and backups",
}
FIXTURES = {"bucket", "faults", "live_server", "new_data_folder"}
"""`faults` repeats an operation with an error at each call. The others are for servers."""
COMMANDS = (
    *("bulk", "db", "events", "human_tasks", "payloads", "processes", "runs", "schedules"),
    *("system_tasks", "taskcluster", "tasks"),
)
"""Folders with commands on rows that processes change at the same time, whose SQL depends on the database."""
SCENARIOS = {
    *("test_branches.py", "test_events.py", "test_masked_fields_in_storage.py", "test_schedules.py"),
    *("test_secrets.py", "test_undelivered_messages.py"),
}
"""Scenarios with statements that tests of COMMANDS do not execute."""
PAGES = {"admin_client", "operator", "viewer"}
"""Clients of users of the pages."""
NAMES = {"ThreadedWebServer", "Popen", "ValkeyServer", "brokers", "run_forked", "running_server", "subprocess"}
"""What starts a process or a server."""


def mark_tests(root: Path, items: list[pytest.Item]) -> None:
    """Mark the tests that are slow, and those of commands, by what they use."""
    functions = set()
    for item in items:
        folder, fixtures = folder_of(root, item.path), set(item.fixturenames)
        if folder in FOLDERS or FIXTURES & fixtures or NAMES & names_used(item):
            item.add_marker(pytest.mark.slow)
        name = item.nodeid.partition("[")[0]
        if _has_commands(root, item.path) and not PAGES & fixtures and name not in functions:
            functions.add(name)
            item.add_marker(pytest.mark.commands)


def is_left_out(config: pytest.Config, path: Path) -> bool:
    """Return whether the path has no fast tests, so that it need not be imported when only those run."""
    expression, is_folder = config.getoption("markexpr"), path.parent == config.rootpath / "tests" and path.is_dir()
    if expression == FAST_COMMANDS and (is_folder or path.name.startswith("test_")):
        return not _has_commands(config.rootpath, path) and path.name != "scenarios"
    return expression == FAST and is_folder and path.name in FOLDERS


def _has_commands(root: Path, path: Path) -> bool:
    folder = folder_of(root, path)
    return folder in COMMANDS or (folder == "scenarios" and path.name in SCENARIOS)


def folder_of(root: Path, path: Path) -> str:
    return path.relative_to(root / "tests").parts[0]


def names_used(item: pytest.Item) -> set[str]:
    """Return the names in the code of the test and of its fixtures in this repository."""
    definitions = item._fixtureinfo.name2fixturedefs.values()
    functions = [item.function, *(each.func for found in definitions for each in found)]
    return {name for function in functions for name in _names(getattr(function, "__code__", None))}


def _names(code: CodeType | None) -> Iterator[str]:
    if code is None or "/site-packages/" in code.co_filename:
        return
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
