"""The official Java SDK against a live server: workers serve a workflow, and every client method is called.

`SDK_TABLE=write make test-java` writes the results of the calls to the compatibility table.
"""

import os

import pytest

from conductor_app.access.tokens import create_key

from . import java_sdk, sdk_table
from .model_server import running_model_server

pytestmark = pytest.mark.one_database
WORKS = "works"
MISSING = {"result": "missing", "note": ""}
NOT_CALLED = "not called"


@pytest.fixture(scope="module")
def java():
    java_sdk.maven()
    return java_sdk.compile_programs()


def test_workers_of_the_java_sdk_execute_a_workflow(java, server):
    found = java_sdk.run_program(java[0], "Suit", CONDUCTOR_SERVER_URL=f"{server}/api")

    assert found == {"TaskRunnerConfigurer.init": WORKS, "TaskRunnerConfigurer.shutdown": WORKS}


@pytest.mark.django_db
def test_the_java_sdk_reads_runs_and_tasks_of_every_type_and_state(java, reply_folder):
    found = java_sdk.run_program(java[0], "Documents", REPLIES=str(reply_folder.path))

    assert {file: result for file, result in found.items() if result != WORKS} == {}
    assert len(found) > 700


def test_every_method_of_the_java_sdk_behaves_as_the_table_states(java, server, settings):
    if java[1] < java_sdk.NEWEST:
        pytest.skip(f"The newest Java SDK needs Java {java_sdk.NEWEST}; {java[1]} is installed.")
    settings.CONDUCTOR_API_ACCESS = "token"
    key, secret = create_key("admin")
    environment = {"CONDUCTOR_AUTH_KEY": key, "CONDUCTOR_AUTH_SECRET": secret}

    with running_model_server(settings):
        found = java_sdk.run_program(java[0], "EveryMethod", CONDUCTOR_SERVER_URL=f"{server}/api", **environment)

    if os.environ.get("SDK_TABLE") == "write":
        write(found)
    entries = sdk_table.read_results("java")["methods"]
    wrong = {method: result for method, result in found.items() if not fits(result, entries.get(method, MISSING))}
    assert wrong == {}
    assert entries.keys() == found.keys()


def fits(seen: str, entry: sdk_table.Entry) -> bool:
    """Return whether the result of a call matches the table's entry for its method."""
    if entry["note"].startswith(sdk_table.AI):
        return seen == NOT_CALLED
    if entry["note"].startswith(sdk_table.BROKEN):
        return seen != WORKS
    if entry["result"] == sdk_table.UNSUPPORTED:
        return seen.startswith(("404: ", "405: "))
    return seen == WORKS and entry != MISSING


def write(found: dict[str, str]) -> None:
    """Keep the notes that stand in the table; a result that is new gets the server's sentence as its note."""
    facts = sdk_table.read_results("java")
    for method, seen in found.items():
        known = facts["methods"].get(method)
        if known is None or not fits(seen, known):
            is_there = seen == WORKS
            result = sdk_table.WORKS if is_there else sdk_table.UNSUPPORTED
            facts["methods"][method] = {"result": result, "note": "" if is_there else seen}
    sdk_table.write_results("java", facts)
