"""The rules for the markers `slow` and `pages`: `make test` leaves out tests that `make test-all` runs.

A test is slow because of what it uses, so that a new one needs no mark: a folder of FOLDERS, a fixture of FIXTURES, or
code of the test or of one of its fixtures that names something of NAMES. Files that repeat requests, examples or
operations many times have `pytestmark = pytest.mark.slow`. Tests of pages are those that use a fixture of PAGES;
`make test` runs them on SQLite only.
"""

from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

FAST = "not slow"
"""How the expression of `pytest -m` for the fast tests begins."""
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
FIXTURES = {"faults", "live_server", "new_data_folder"}
"""`faults` repeats an operation with an error at each call. The others are for servers."""
PAGES = {"admin_client", "operator", "viewer"}
"""Clients of users of the pages."""
NAMES = {"ThreadedWebServer", "Popen", "run_forked", "running_server", "subprocess"}
"""What starts a process or a server."""


def mark_tests(root: Path, items: list[pytest.Item]) -> None:
    """Mark the tests that are slow, and those of pages, by what they use."""
    for item in items:
        fixtures = set(item.fixturenames)
        if folder_of(root, item.path) in FOLDERS or FIXTURES & fixtures or NAMES & names_used(item):
            item.add_marker(pytest.mark.slow)
        if PAGES & fixtures:
            item.add_marker(pytest.mark.pages)


def is_left_out(config: pytest.Config, path: Path) -> bool:
    """Return whether the path is a folder of slow tests, which need not be imported when only the fast ones run."""
    is_folder = path.parent == config.rootpath / "tests" and path.name in FOLDERS
    return is_folder and config.getoption("markexpr").startswith(FAST)


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
