"""Definitions in a folder: `conductor-app plan`, `apply`, `drift` and `export`, against a live server over HTTP."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from conductor_app.access.models import AuditEntry
from conductor_app.definitions.models import AppliedDefinition, TaskDefinition, WorkflowDefinition
from conductor_app.events.models import EventHandler
from conductor_app.schedules.models import Schedule
from conductor_app.tools.remote.folders import REMOTE_COMMANDS
from tests.api_fixtures import Api
from tests.builders import simple
from tests.clients.live_server import running_server

ORDER = """\
name: order
schemaVersion: 2
tasks:
  - {name: charge, taskReferenceName: charge, type: SIMPLE}
"""
CHARGE = """\
# The task of the payment service.
name: charge
retryCount: 3
"""
REST = """\
kind: event-handler
name: paid
event: conductor:paid
active: true
actions:
  - action: start_workflow
    start_workflow: {name: order}
---
name: nightly
cronExpression: 0 0 4 * * *
startWorkflowRequest: {name: order}
"""


@pytest.fixture
def server(transactional_db, monkeypatch) -> Iterator[str]:
    """Yield the address of a live server, which is also that of the environment."""
    names = ("CONDUCTOR_AUTH_KEY", "CONDUCTOR_AUTH_SECRET", "CONDUCTOR_AUTH_TOKEN", "GITHUB_SHA", "CI_COMMIT_SHA")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CONDUCTOR_SOURCE_LABEL", "shop")
    with running_server() as url:
        monkeypatch.setenv("CONDUCTOR_SERVER_URL", f"{url}/api")
        yield url


@pytest.fixture
def folder(tmp_path, server) -> Path:
    """Return a folder with a workflow, a task definition, an event handler and a schedule."""
    write(tmp_path, **{"workflows/order.yaml": ORDER, "charge.yaml": CHARGE, "rest.yml": REST})
    return tmp_path


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def execute(name: str, *arguments: str, expected: int = 0, input: str = "") -> Result:
    result = CliRunner().invoke(REMOTE_COMMANDS[name], [str(each) for each in arguments], input=input)
    assert result.exit_code == expected, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def apply(folder: Path, *options: str, expected: int = 0) -> str:
    return execute("apply", "-f", folder, "--yes", *options, expected=expected).output


def plan(folder: Path, *options: str, expected: int) -> str:
    return execute("plan", "-f", folder, *options, expected=expected).output


def edit_task(name: str = "charge", **fields) -> None:
    reply = Api().put("/metadata/taskdefs", {"name": name, **fields})
    assert reply.status_code == 200, reply.content


def test_a_plan_lists_new_definitions_with_status_2_and_saves_nothing(folder):
    planned = plan(folder, expected=2)

    assert "+ workflow order, version 1 will be created" in planned
    assert "+ schedule nightly will be created" in planned
    assert "Plan: 4 create." in planned
    assert not WorkflowDefinition.objects.exists()
    assert not AppliedDefinition.objects.exists()


def test_apply_creates_all_kinds_and_a_second_plan_has_no_changes(folder):
    assert "Applied 4 definitions, 0 failed." in apply(folder, "--commit", "4711abc")

    assert plan(folder, expected=0) == "Plan: 4 unchanged.\n"
    assert EventHandler.objects.get(name="paid").is_active
    assert not Schedule.objects.get(name="nightly").is_paused
    entry = AuditEntry.objects.get(object_type="workflow_definition", object_id="order:1")
    assert entry.reason == "Applied from shop, commit 4711abc"


def test_apply_asks_first_and_saves_nothing_without_a_confirmation(folder):
    execute("apply", "-f", folder, input="n\n", expected=1)

    assert not WorkflowDefinition.objects.exists()


def test_a_changed_workflow_without_a_version_becomes_a_new_version_in_the_words_of_the_change_summary(folder):
    apply(folder)
    write(folder, **{"workflows/order.yaml": ORDER + "  - {name: ship, taskReferenceName: ship, type: SIMPLE}\n"})

    planned = plan(folder, expected=2)
    apply(folder)

    assert "~ workflow order, version 2 will get a new version" in planned
    assert "step `ship` added: Worker task, after `charge`" in planned
    assert list(WorkflowDefinition.objects.values_list("name", "version")) == [("order", 2), ("order", 1)]


def test_a_workflow_with_a_version_replaces_exactly_that_version(folder):
    for version in (1, 2):
        Api().define(simple("charge"), version=version)
    write(folder, **{"workflows/order.yaml": f"version: 1\ndescription: From Git\n{ORDER}"})

    apply(folder)

    described = dict(WorkflowDefinition.objects.values_list("version", "description"))
    assert described == {1: "From Git", 2: ""}


def test_an_equal_definition_of_the_server_is_adopted_and_not_saved_again(folder):
    edit_task(retryCount=3)
    revision = TaskDefinition.objects.get().revision

    assert "= task charge is as wanted" in plan(folder, expected=2)
    apply(folder)

    assert TaskDefinition.objects.get().revision == revision
    assert plan(folder, expected=0) == "Plan: 4 unchanged.\n"


def test_drift_reports_who_has_edited_what_on_the_server(folder):
    apply(folder, "--commit", "4711abc")
    assert "4 definitions are as they were applied" in execute("drift").output
    edit_task(retryCount=7)
    Api().delete("/event/paid")

    shown = execute("drift", expected=2).output

    assert "task charge was edited by anonymous" in shown
    assert "retries 3 to 7" in shown
    assert "event-handler paid was deleted by anonymous" in shown
    assert "applied from commit 4711abc by anonymous" in shown


def test_apply_does_not_undo_an_edit_of_the_server_unless_it_is_requested(folder):
    apply(folder)
    edit_task(retryCount=7)

    refused = apply(folder, expected=1)
    assert "anonymous has edited it on the server" in refused
    assert TaskDefinition.objects.get().document["retryCount"] == 7

    apply(folder, "--overwrite")
    assert TaskDefinition.objects.get().document["retryCount"] == 3
    execute("drift")


def test_export_writes_the_edits_of_the_server_into_the_files(folder):
    apply(folder)
    edit_task(retryCount=7)
    Api().define(simple("charge"), simple("ship"), version=2)

    execute("export", "-f", folder)

    assert yaml.safe_load((folder / "charge.yaml").read_text())["retryCount"] == 7
    order = yaml.safe_load((folder / "workflows/order.yaml").read_text())
    assert [step["name"] for step in order["tasks"]] == ["charge", "ship"]
    assert "version" not in order
    assert (folder / "rest.yml").read_text() == REST
    apply(folder)
    execute("drift")


def test_export_overwrites_no_file_of_another_definition(folder):
    names = ("pick/item", "pick:item", "pick_item")
    for name in names:
        write(folder, **{"tasks/all.yaml": f"name: {name}\n"})
        apply(folder, "--label", "tasks")
    write(folder, **{"tasks/all.yaml": "name: other\n", "tasks/pick_item.task.yaml": "name: kept\n"})
    for name in names:
        edit_task(name, retryCount=7)

    execute("export", "-f", folder / "tasks", "--label", "tasks")

    written = sorted((folder / "tasks").glob("pick_item*"))
    assert [yaml.safe_load(path.read_text())["name"] for path in written] == [*names, "kept"]


def test_prune_deletes_only_what_the_same_source_has_applied(folder):
    Api().define(simple("charge"), name="by_hand")
    apply(folder)
    write(folder / "other", **{"pack.yaml": "name: pack\nretryCount: 1\n"})
    apply(folder / "other", "--label", "packing")
    (folder / "other/pack.yaml").unlink()
    (folder / "rest.yml").unlink()

    assert "stays. --prune deletes it" in plan(folder, expected=0)
    apply(folder, "--prune")

    assert not Schedule.objects.exists()
    assert not EventHandler.objects.exists()
    assert set(WorkflowDefinition.objects.values_list("name", flat=True)) == {"by_hand", "order"}
    assert set(TaskDefinition.objects.values_list("name", flat=True)) == {"charge", "pack"}


def test_prune_deletes_only_the_versions_that_the_source_has_saved(folder):
    apply(folder)
    Api().define(simple("ship"), version=7)
    Api().define(simple("charge"), version=8)
    (folder / "workflows/order.yaml").unlink()

    apply(folder, "--prune")

    assert set(WorkflowDefinition.objects.values_list("version", flat=True)) == {7, 8}


def test_prune_keeps_what_was_edited_on_the_server(folder):
    apply(folder)
    edit_task(retryCount=7)
    (folder / "charge.yaml").unlink()

    assert "Export the edits, or overwrite them to delete it." in apply(folder, "--prune", expected=1)

    assert TaskDefinition.objects.exists()


def test_an_empty_folder_prunes_nothing(folder):
    apply(folder)
    for path in folder.rglob("*.y*ml"):
        path.unlink()

    assert "Pruning would delete all definitions of shop" in apply(folder, "--prune", expected=1)

    assert TaskDefinition.objects.exists()


def test_a_definition_of_another_source_is_changed_only_if_it_is_taken_over(folder):
    apply(folder)
    write(folder / "copy", **{"charge.yaml": "name: charge\nretryCount: 9\n"})

    refused = apply(folder / "copy", "--label", "other", expected=1)
    assert "It belongs to the source shop" in refused

    apply(folder / "copy", "--label", "other", "--take-over")
    assert TaskDefinition.objects.get().document["retryCount"] == 9


def test_an_invalid_definition_is_reported_with_its_file_and_line_and_nothing_is_applied(folder):
    broken = ORDER + "  - name: ship\n    taskReferenceName: ship\n    startDelay: -1\n"
    write(folder, **{"workflows/order.yaml": broken})

    refused = apply(folder, expected=1)

    assert f"{folder}/workflows/order.yaml:7: tasks[1].startDelay: must be greater than or equal to 0" in refused
    assert not TaskDefinition.objects.exists()


def test_a_document_of_an_unclear_kind_is_reported_with_the_known_kinds(folder):
    write(folder, **{"odd.yaml": "name: odd\ncolor: red\n"})

    assert f"{folder}/odd.yaml:1: The kind of the document is unclear. State one of them" in plan(folder, expected=1)


def test_the_same_definition_in_two_files_is_refused(folder):
    write(folder, **{"again.yaml": CHARGE})

    assert "The folder contains the task definition charge twice." in plan(folder, expected=1)


def test_a_plan_that_is_no_longer_true_is_not_applied(folder):
    documents = [yaml.safe_load(CHARGE)]
    request = {"label": "shop", "documents": documents}
    planned = Api().post("/definitions/plan", request).json()
    edit_task(retryCount=7)

    reply = Api().post("/definitions/apply", {**request, "planDigest": planned["planDigest"]})

    assert reply.status_code == 409
    assert "Plan again" in reply.json()["message"]
    assert TaskDefinition.objects.get().document["retryCount"] == 7


def test_a_plan_as_json_has_the_file_and_line_of_each_item(folder):
    planned = json.loads(plan(folder, "-o", "json", expected=2))

    sources = {item["name"]: item["source"] for item in planned["items"]}
    assert sources["order"] == f"{folder}/workflows/order.yaml:1"
    assert sources["nightly"] == f"{folder}/rest.yml:9"


def test_dry_run_shows_the_plan_and_saves_nothing(folder):
    assert "Plan: 4 create." in apply(folder, "--dry-run", expected=2)

    assert not AppliedDefinition.objects.exists()
