"""The official Go SDK against a server with Gunicorn, which reads requests byte by byte as they arrive.

`SDK_TABLE=write make test-go` writes which of the SDK's own tests pass. GO_SDK_SOURCES names other sources of the SDK.
"""

import json
import os
import urllib.request
from pathlib import Path
from threading import Event

import pytest
from django.conf import settings

from tests.management.server import Server
from tests.recording_web_server import json_answer, running_web_server

from . import go_sdk, sdk_table

pytestmark = [
    pytest.mark.one_database,
    pytest.mark.skipif(
        "postgresql" in settings.DATABASES["default"]["ENGINE"],
        reason="serve brings its own SQLite; one run says it all",
    ),
]
PRESUPPOSED = {
    "name": "PopulationMinMax",
    "version": 1,
    "schemaVersion": 2,
    "ownerEmail": "shop@example.com",
    "tasks": [{"name": "nothing", "taskReferenceName": "nothing", "type": "NOOP"}],
}
"""A workflow of the cluster on which the SDK's tests usually run: one of them starts it as a sub-workflow."""


DELAY_SECONDS = 2


def answer_to(path: str) -> tuple[int, dict, bytes]:
    """Reply like the SDK's test server, which waits if the path says so."""
    if path.endswith("/with-delay"):
        Event().wait(DELAY_SECONDS)
    return json_answer({"message": "hello"})


@pytest.fixture(scope="module")
def gunicorn(tmp_path_factory):
    """Return the URL of a server with Gunicorn."""
    go_sdk.go()
    started = Server(tmp_path_factory.mktemp("machine")).wait_until_up()
    yield f"http://127.0.0.1:{started.port}"
    started.stop()


@pytest.mark.parametrize("end", ["", "/"])
def test_a_program_with_the_go_sdk_registers_starts_and_serves_workflows(gunicorn, tmp_path: Path, end: str):
    found = go_sdk.run_program("suit", tmp_path, CONDUCTOR_SERVER_URL=f"{gunicorn}/api{end}")

    assert found == {
        "suit": ["COMPLETED", "order-7", 4, 3],
        "types": ["measure", "stitch"],
        "rag": ["FAILED", "FAILED_WITH_TERMINAL_ERROR", "the cloth is torn"],
        "letter": ["COMPLETED", "yes"],
        "variable": "eu west",
        "unknown": [True, True],
    }


def test_the_integration_tests_of_the_go_sdk_pass_as_the_table_states(gunicorn, tmp_path: Path):
    body = json.dumps([PRESUPPOSED]).encode()
    headers = {"Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(f"{gunicorn}/api/metadata/workflow", body, headers, method="PUT"))
    with running_web_server() as web_server:
        web_server.answer_to = answer_to
        suite = go_sdk.IntegrationTests(tmp_path, web_server.url)
        failures = {name: suite.failure(name, gunicorn) for name in suite.names()}

    stated = sdk_table.read_go_tests()["tests"]
    if os.environ.get("SDK_TABLE") == "write":
        for name, failure in failures.items():
            stated[name] = (stated.get(name) or failure[-300:]) if failure else ""
        sdk_table.write_go_tests(stated)
    assert failures.keys() <= stated.keys()
    wrong = {name: failure for name, failure in failures.items() if bool(failure) != bool(stated[name])}
    assert wrong == {}


@pytest.mark.django_db
def test_the_models_of_the_go_sdk_read_every_reply(reply_folder, tmp_path: Path):
    found = go_sdk.run_program("documents", tmp_path, REPLIES=str(reply_folder.path))

    assert found["wrong"] == {}
    manifest = json.loads((reply_folder.path / "manifest.json").read_bytes())
    assert found["counts"] == {model: len(files) for model, files in manifest.items()}
