"""The official JavaScript SDK against a live server: the scripts in `javascript/` are the tests."""

import pytest

from . import node

pytestmark = pytest.mark.one_database

SCRIPTS = sorted(node.FOLDER.glob("*.test.mjs"))


@pytest.fixture(scope="session")
def sdk() -> None:
    """Install the SDK."""
    node.node()
    node.install()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name.removesuffix(".test.mjs"))
def test_the_javascript_sdk_works_unchanged(sdk, server, script):
    done = node.run_script(script, server)

    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "tests 0" not in done.stdout
