"""A server for the commands of the documentation, and what its pages install."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from tests.clients import java_sdk, node
from tests.clients.live_server import running_server
from tests.docs.json_checks import check_json
from tests.docs.page_run import PageRun


@pytest.fixture
def page_run(transactional_db, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PageRun]:
    """Return a reader in an empty folder, beside a server that listens."""
    for name in ("CONDUCTOR_AUTH_KEY", "CONDUCTOR_AUTH_SECRET", "CONDUCTOR_SERVER_URL"):
        monkeypatch.delenv(name, raising=False)
    create_command(tmp_path / "bin" / "conductor-app")
    with running_server() as url:
        run = PageRun(tmp_path, url, check_json)
        try:
            yield run
        finally:
            run.stop()


def create_command(path: Path) -> None:
    """Create `conductor-app`, which works on the database of the test."""
    path.parent.mkdir()
    path.write_text(
        f"""#!/bin/sh
export PYTHONPATH={Path(__file__).parents[2]} DJANGO_SETTINGS_MODULE=tests.docs.command_settings
export TEST_DATABASE_NAME={connection.settings_dict["NAME"]}
exec {sys.executable} -c 'from conductor_app.processes.command_line import main; main()' "$@"
"""
    )
    path.chmod(0o755)


@pytest.fixture
def javascript_packages(tmp_path: Path) -> None:
    """Install the JavaScript SDK as the page describes, from the lock file of the tests."""
    node.node()
    node.install()
    (tmp_path / "node_modules").symlink_to(node.FOLDER / "node_modules")


@pytest.fixture
def java(page_run: PageRun) -> None:
    """Choose the newest JDK, as a reader with several would."""
    java_sdk.maven()
    home = java_sdk.java_home()
    if home is None or java_sdk.version_of(home) < java_sdk.NEWEST:
        pytest.skip(f"No JDK from {java_sdk.NEWEST} on is installed: the Java SDK of this page cannot be executed.")
    page_run.environment |= {"JAVA_HOME": str(home), "MAVEN_OPTS": java_sdk.QUICK_START}
