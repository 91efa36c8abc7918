"""`conductor-app test`: the tests of a folder, executed by a process without a server and without its database."""

import json
import os
from xml.etree import ElementTree

import pytest

from tests.forked_interpreter import run_forked

pytestmark = pytest.mark.slow

FOLDER = {
    "charge.yaml": "name: charge\nretryCount: 1\nretryDelaySeconds: 60\n",
    "order.yaml": """\
name: order
schemaVersion: 2
tasks:
  - {name: charge, taskReferenceName: charge, type: SIMPLE, inputParameters: {amount: "${workflow.input.amount}"}}
  - name: total
    taskReferenceName: total
    type: INLINE
    inputParameters:
      evaluatorType: javascript
      expression: "function total() { let t = 0; for (const n of [1, 2]) { t += n * $.fee; } return t; } total();"
      fee: ${charge.output.fee}
  - {name: pack, taskReferenceName: pack, type: SUB_WORKFLOW, subWorkflowParam: {name: packing}}
outputParameters: {total: "${total.output.result}", parcel: "${pack.output.parcel}"}
""",
    "packing.json": json.dumps(
        {
            "name": "packing",
            "schemaVersion": 2,
            "tasks": [{"name": "wrap", "taskReferenceName": "wrap", "type": "SIMPLE"}],
            "outputParameters": {"parcel": "${wrap.output.parcel}"},
        }
    ),
}
PASSING = """\
name: a refused charge is repeated
workflow: order
input: {amount: 12}
mocks:
  charge: [{status: FAILED}, {output: {fee: 4}}]
subWorkflows:
  pack: {mocks: {wrap: {output: {parcel: p-7}}}}
expected:
  status: COMPLETED
  path: [charge, total, pack]
  output: {total: 12, parcel: p-7}
"""
FAILING = """\
name: the charge fails
workflow: order
mocks: {charge: {status: FAILED}}
expected: {status: COMPLETED, output: {total: 1}}
"""


@pytest.fixture
def folder(tmp_path):
    for name, text in FOLDER.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def execute(folder, *options, expected=0):
    code = "from conductor_app.processes.command_line import main; main()"
    unset = ("DJANGO_SETTINGS_MODULE", "SECRET_KEY")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    # No database is there, and none is created.
    environment |= {"DATABASE_URL": "postgres://nobody@127.0.0.1:1/none", "VAR_DIR": str(folder / ".var")}
    done = run_forked("-c", code, "test", "-f", str(folder), *options, env=environment)
    assert done.returncode == expected, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def test_a_test_executes_retries_scripts_and_sub_workflows_without_a_server(folder):
    (folder / "order.test.yaml").write_text(PASSING)

    assert "✓ order: a refused charge is repeated" in execute(folder)
    assert not list(folder.rglob("*.sqlite3"))


def test_a_failed_test_is_reported_with_its_differences_and_as_junit_xml(folder):
    (folder / "order.test.yaml").write_text(f"{PASSING}---\n{FAILING}")

    output = execute(folder, "--junit", str(folder / "results.xml"), expected=1)

    assert "order.test.yaml:13: status: expected COMPLETED, got FAILED" in output
    assert "1 passed, 1 failed." in output
    [suite] = ElementTree.parse(folder / "results.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    assert suite[1].find("failure").get("message") == "status: expected COMPLETED, got FAILED"


def test_a_test_with_an_unknown_field_or_an_unknown_workflow_is_an_error(folder):
    (folder / "order.test.yaml").write_text("name: a\nworkflow: order\nmock: {}\nexpected: {status: COMPLETED}\n")
    assert "The field 'mock' is unknown" in execute(folder, expected=1)

    (folder / "order.test.yaml").write_text("name: a\nworkflow: other\nexpected: {status: COMPLETED}\n")
    assert "No such workflow found by name: other" in execute(folder, expected=1)


def test_an_invalid_definition_is_reported_with_its_file_and_line(folder):
    (folder / "order.test.yaml").write_text(PASSING)
    (folder / "charge.yaml").write_text("name: charge\nretryCount: many\n")

    assert f"{folder}/charge.yaml:2: retryCount:" in execute(folder, expected=1)


def test_a_folder_without_tests_is_an_error(folder):
    assert "contains no tests" in execute(folder, expected=1)
