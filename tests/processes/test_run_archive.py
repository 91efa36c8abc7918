"""The archive of ended runs: retention writes it first, and `restore_runs` reads it back."""

import gzip
import json
import os
from io import StringIO
from pathlib import Path

import pytest
from django.core.files.storage import FileSystemStorage
from django.core.management import CommandError, call_command

from conductor_app.access.models import AuditEntry
from conductor_app.payloads.models import StoredPayload
from conductor_app.processes import run_archive, sweeps
from conductor_app.runs.models import Attempt, HistoryEntry, Run, Task, TaskLog
from tests.builders import simple
from tests.page_text import page_text
from tests.scenario import run_commit_hooks

MUCH = "x" * 5_500_000
DAY = 86_400


@pytest.fixture
def archive(settings, tmp_path) -> Path:
    """Return the folder of the archive."""
    folder = tmp_path / "archive"
    options = {"location": str(folder), "file_permissions_mode": 0o600}
    settings.STORAGES = settings.STORAGES | {
        "run_archive": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": options}
    }
    settings.CONDUCTOR_RUN_ARCHIVE = "run_archive"
    settings.CONDUCTOR_RETENTION_DAYS = 30
    return folder


def lines_of(archive: Path) -> list[dict]:
    files = sorted(archive.rglob("*.jsonl.gz"))
    return [json.loads(line) for file in files for line in gzip.open(file).read().splitlines()]


def sweep() -> int:
    with run_commit_hooks():
        return sweeps.prune_finished(500)


def finish(api, **start) -> str:
    """Start a run, and let a worker write a log line and complete it. Returns its id."""
    workflow_id = api.start(**start)
    [task] = api.poll("pay")
    api.post(f"/tasks/{task['taskId']}/log", "paid by card")
    api.report(task, outputData={"total": 7, "exact": 2**70})
    assert api.workflow(workflow_id)["status"] == "COMPLETED"
    return workflow_id


def documents(api, *ids: str) -> list[dict]:
    return [api.workflow(id) for id in ids]


def restore(*arguments: str) -> str:
    printed = StringIO()
    call_command("restore_runs", *arguments, stdout=printed)
    return printed.getvalue()


def test_a_restored_run_is_the_run_that_was_removed(api, clock, archive):
    api.define(simple("pay"), maskedFields=["card"], outputParameters={"all": "${pay.output}"})
    workflow_id = finish(api, input={"card": "4111-1111", "text": MUCH, "n": 1.5}, correlationId="order 7")
    sealed = Run.objects.filter(pk=workflow_id).values("input_size", "output_size", "revision").get()
    counts = [model.objects.filter(run_id=workflow_id).count() for model in (Task, Attempt, HistoryEntry)]
    [before], log = (
        documents(api, workflow_id),
        api.get(f"/tasks/{api.workflow(workflow_id)['tasks'][0]['taskId']}/log"),
    )
    clock.advance(seconds=31 * DAY)

    assert (sweep(), api.get(f"/workflow/{workflow_id}").status_code, TaskLog.objects.count()) == (1, 404, 0)
    assert restore(workflow_id) == "Restored 1 runs.\n"

    [after] = documents(api, workflow_id)
    moved = "externalInputPayloadStoragePath"
    assert after.pop(moved) != before.pop(moved)
    assert {**after, "tasks": []} == {**before, "tasks": []}
    assert after["tasks"] == before["tasks"]
    assert Run.objects.filter(pk=workflow_id).values("input_size", "output_size", "revision").get() == sealed
    assert [model.objects.filter(run_id=workflow_id).count() for model in (Task, Attempt, HistoryEntry)] == counts
    assert api.get(f"/tasks/{after['tasks'][0]['taskId']}/log").json() == log.json()
    assert "4111-1111" not in json.dumps(lines_of(archive))
    payload = StoredPayload.objects.get(uses__run_id=workflow_id)
    assert payload.expires_at is None and payload.size > len(MUCH)


def test_a_line_says_which_run_it_has(api, clock, archive):
    api.define(simple("pay"))
    workflow_id = finish(api, input={"n": 1}, correlationId="order 7")
    ended = Run.objects.get(pk=workflow_id)
    clock.advance(seconds=31 * DAY)
    sweep()

    [line] = lines_of(archive)

    facts = {name: line[name] for name in ("format", "id", "name", "version", "status", "correlationId", "endedAt")}
    expected = {"format": 1, "id": workflow_id, "name": "order", "version": 1, "status": "COMPLETED"}
    assert facts == expected | {"correlationId": "order 7", "endedAt": ended.ended_at}
    assert (line["rows"]["run"][0]["input"], line["rows"]["attempts"][0]["output"]["total"]) == ({"n": 1}, 7)
    [file] = archive.rglob("*.*")
    assert (file.stat().st_mode & 0o777, file.name.endswith(".jsonl.gz")) == (0o600, True)


def test_without_an_archive_runs_are_only_removed(api, clock, settings):
    settings.CONDUCTOR_RETENTION_DAYS = 30
    api.define(simple("pay"))
    workflow_id = finish(api)
    clock.advance(seconds=31 * DAY)

    assert sweep() == 1
    assert AuditEntry.objects.get(object_id=workflow_id, action="remove").facts == {}
    with pytest.raises(CommandError, match="RUN_ARCHIVE"):
        restore(workflow_id)


def test_a_run_stays_while_its_file_cannot_be_written(api, clock, archive, monkeypatch):
    api.define(simple("pay"))
    workflow_id = finish(api)
    clock.advance(seconds=31 * DAY)

    with monkeypatch.context() as patch:
        patch.setattr(FileSystemStorage, "save", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
        with pytest.raises(OSError, match="No space left"):
            sweep()
    assert documents(api, workflow_id)

    assert sweep() == 1
    assert [line["id"] for line in lines_of(archive)] == [workflow_id]


def test_no_run_is_removed_before_its_file_is_on_the_disk(api, clock, archive, monkeypatch):
    """The order of system calls: the file is synchronized and named before the transaction of the removal."""
    api.define(simple("pay"))
    workflow_id = finish(api)
    clock.advance(seconds=31 * DAY)
    synchronized = []

    def observe(descriptor: int) -> None:
        assert Run.objects.filter(pk=workflow_id).exists()
        synchronized.append(os.readlink(f"/proc/self/fd/{descriptor}"))

    monkeypatch.setattr(os, "fsync", observe)
    sweep()

    [file] = archive.rglob("*.jsonl.gz")
    assert synchronized[0] == f"{file}.part" and synchronized[1:4] == [str(file.parents[i]) for i in range(3)]


def test_a_pass_that_ends_after_the_file_archives_the_run_again_and_it_is_read_once(api, clock, archive, monkeypatch):
    api.define(simple("pay"))
    workflow_id = finish(api)
    clock.advance(seconds=31 * DAY)
    with monkeypatch.context() as patch:
        patch.setattr(run_archive, "remove_run", lambda *_, **__: (_ for _ in ()).throw(SystemExit()))
        with pytest.raises(SystemExit):
            sweep()
    assert documents(api, workflow_id)
    clock.advance(seconds=1)
    sweep()

    assert [line["id"] for line in lines_of(archive)] == [workflow_id] * 2
    assert len(restore("--from", "2020-01-01", "--print").splitlines()) == 1
    AuditEntry.objects.all().delete()
    assert len(restore(workflow_id, "--print").splitlines()) == 1
    assert restore("--from", "2020-01-01") == "Restored 1 runs.\n"
    assert restore("--from", "2020-01-01") == "Restored 0 runs. 1 exist already.\n"


def test_a_run_that_is_continued_meanwhile_stays(api, clock, archive, monkeypatch):
    api.define(simple("pay"))
    workflow_id = finish(api)
    clock.advance(seconds=31 * DAY)
    write = run_archive._store_durably

    def continue_meanwhile(*arguments: object) -> None:
        write(*arguments)
        assert api.post(f"/workflow/{workflow_id}/restart").status_code == 204

    monkeypatch.setattr(run_archive, "_store_durably", continue_meanwhile)

    assert sweep() == 0
    assert api.workflow(workflow_id)["status"] == "RUNNING"


def test_runs_are_found_by_the_day_of_their_end_and_by_definition(api, clock, archive):
    api.define(simple("pay"))
    api.define(simple("pay"), name="refund")
    first = finish(api)
    clock.advance(seconds=2 * DAY)
    second, third = finish(api), finish(api, name="refund")
    day = run_archive._day(clock.now()).replace("/", "-")
    clock.advance(seconds=31 * DAY)
    assert sweep() == 3

    def found(*arguments: str) -> set[str]:
        return {json.loads(line)["id"] for line in restore(*arguments, "--print").splitlines()}

    assert found("--from", day) == {second, third}
    assert found("--from", day, "--name", "order") == {second}
    assert found("--to", day) == {first, second, third}
    assert found("--from", "2020-01-01", "--to", "2020-01-02") == set()
    assert not Run.objects.exists()


def test_a_restored_run_is_kept_for_the_days_of_the_command(api, clock, archive):
    api.define(simple("pay"))
    workflow_id = finish(api)
    clock.advance(seconds=31 * DAY)
    sweep()
    restore(workflow_id, "--days", "7")

    clock.advance(seconds=6 * DAY)
    assert sweep() == 0
    clock.advance(seconds=2 * DAY)
    assert sweep() == 1
    assert restore(workflow_id) == "Restored 1 runs.\n"


def test_a_restored_run_can_be_continued(api, clock, archive):
    api.define(simple("pay"))
    workflow_id = finish(api, idempotencyKey="once")
    clock.advance(seconds=31 * DAY)
    sweep()
    restore(workflow_id)

    assert api.post(f"/workflow/{workflow_id}/restart").status_code == 204
    api.report(api.poll("pay")[0])
    assert api.workflow(workflow_id)["status"] == "COMPLETED"
    assert api.start(idempotencyKey="once") != workflow_id


def test_sub_workflows_are_restored_with_their_parent(api, clock, archive):
    api.define(simple("pay"), name="child")
    sub = {"name": "s", "taskReferenceName": "s", "type": "SUB_WORKFLOW", "subWorkflowParam": {"name": "child"}}
    api.define(sub, name="parent")
    parent = api.start("parent")
    api.report(api.poll("pay")[0])
    child = Run.objects.get(parent_id=parent).id
    clock.advance(seconds=31 * DAY)
    assert sweep() == 2

    assert restore(parent) == "Restored 2 runs.\n"
    assert [each["status"] for each in documents(api, parent, child)] == ["COMPLETED"] * 2


def test_a_damaged_file_is_named_and_the_others_are_read(api, clock, archive):
    api.define(simple("pay"))
    first = finish(api)
    clock.advance(seconds=2 * DAY)
    finish(api)
    clock.advance(seconds=31 * DAY)
    sweep()
    damaged = sorted(archive.rglob("*.jsonl.gz"))[1]
    damaged.write_bytes(damaged.read_bytes()[:40])

    with pytest.raises(CommandError, match=damaged.name):
        restore("--from", "2020-01-01")
    assert [run.id for run in Run.objects.all()] == [first]
    with pytest.raises(CommandError, match="has no run nobody"):
        restore("nobody")


def test_the_page_of_an_archived_run_says_how_to_restore_it(api, clock, archive, operator):
    api.define(simple("pay"))
    workflow_id = finish(api)
    clock.advance(seconds=31 * DAY)
    sweep()

    gone = operator.get(f"/admin/conductor/run/{workflow_id}/change/")
    assert f"To restore it: conductor-app restore_runs {workflow_id}." in gone.content.decode()
    assert "Each run is archived first" in page_text(operator.get("/admin/retention/"))

    restore(workflow_id)
    assert "order" in page_text(operator.get(f"/admin/conductor/run/{workflow_id}/change/"))


@pytest.mark.parametrize("arguments", [(), ("id", "--from", "2020-01-01"), ("id", "--days", "0"), ("--from", "x")])
def test_arguments_that_select_nothing_are_refused(archive, db, arguments):
    with pytest.raises(CommandError):
        restore(*arguments)


def test_every_table_that_belongs_to_a_run_is_archived_or_left_out_on_purpose():
    """A new table with the id of a run has to be added here, or to the archive."""
    left_out = {"CachedResult", "Failure", "FileHandle", "PayloadReference", "BudgetHold"}
    # Tables that outlive the run.
    left_out |= {"BulkItem", "EventAction", "ScheduleExecution"}
    of_runs = {
        model.__name__
        for model in run_archive.Run._meta.apps.get_app_config("conductor").get_models()
        if any(field.attname == "run_id" for field in model._meta.concrete_fields)
    }
    assert of_runs - {model.__name__ for model, _ in run_archive.TABLES.values()} == left_out
