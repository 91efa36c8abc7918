"""The SDK compatibility table agrees with the results of the tests."""

import json
import re
import subprocess

import pytest

from . import node, sdk_table

INTERNAL = {
    "TaskHandler": {"checkWorkerHealth", "registerTaskDefinitions", "startHealthMonitor", "stopHealthMonitor"},
    "SchedulerClient": {"authHeaders", "client", "pauseResumeWithVerbFallback", "raw"},
}
"""Methods that the JavaScript SDK declares private."""


def test_the_page_matches_the_files():
    assert sdk_table.PAGE.read_text(encoding="utf-8") == sdk_table.render_page(), (
        "run python -m tests.clients.sdk_table"
    )


@pytest.mark.parametrize("sdk", sdk_table.known_sdks())
def test_each_method_has_a_result_and_a_note_where_it_does_not_just_work(sdk):
    facts = sdk_table.read_results(sdk)

    assert list(facts["methods"]) == sorted(facts["methods"])
    for name, entry in facts["methods"].items():
        assert entry["result"] in sdk_table.RESULTS, name
        assert bool(entry["note"]) == (entry["result"] != sdk_table.WORKS), name


@pytest.fixture(scope="module")
def javascript() -> set[str]:
    """Return every public method of the clients that the installed SDK exports."""
    node.node()
    node.install()
    done = subprocess.run([node.node(), "methods.mjs"], cwd=node.FOLDER, capture_output=True, text=True, check=True)
    return {
        f"{client}.{name}"
        for client, names in json.loads(done.stdout).items()
        for name in names
        if name not in INTERNAL.get(client, ())
    }


@pytest.mark.one_database
def test_every_method_of_the_javascript_sdk_has_a_result(javascript):
    assert set(sdk_table.read_results("javascript")["methods"]) == javascript


def test_every_method_of_the_javascript_sdk_but_those_of_ai_is_called_by_a_script():
    scripts = "".join(path.read_text(encoding="utf-8") for path in node.FOLDER.glob("*.mjs"))
    called = set(re.findall(r"\.(\w+)\(", scripts))
    wanted = [
        *sdk_table.methods_of("javascript", sdk_table.WORKS, sdk_table.DIFFERS),
        *sdk_table.refused_methods("javascript"),
    ]

    assert [name for name in wanted if name.partition(".")[2] not in called] == []


def test_the_table_describes_the_tested_version():
    tested = json.loads((node.FOLDER / "package.json").read_text(encoding="utf-8"))["dependencies"]
    facts = sdk_table.read_results("javascript")

    assert tested[facts["package"]] == facts["version"]
