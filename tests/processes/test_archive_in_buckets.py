"""The archive of ended runs in buckets of S3, Azure and Google Cloud."""

import gzip
import json

import pytest
from django.core.files.storage import storages

from conductor_app.settings import services
from tests.builders import simple
from tests.object_storages import bucket  # noqa: F401

from .test_run_archive import DAY, documents, finish, restore, sweep


@pytest.fixture(autouse=True)
def archive(bucket: str, settings, tmp_path) -> None:  # noqa: F811
    place, _, options = bucket.partition("?")
    prefix = f"{place}/{tmp_path.name}?{options}"
    settings.STORAGES = settings.STORAGES | {"run_archive": services.payload_storage("RUN_ARCHIVE", prefix)}
    settings.CONDUCTOR_RUN_ARCHIVE = "run_archive"
    settings.CONDUCTOR_RETENTION_DAYS = 30


def archived_lines() -> list[dict]:
    """Return the lines of all files, as another program reads them."""
    storage, folders, lines = storages["run_archive"], [""], []
    while folders:
        folder = folders.pop()
        inner, names = storage.listdir(folder)
        folders += [f"{folder}/{name}".lstrip("/") for name in inner]
        for name in names:
            with storage.open(f"{folder}/{name}", "rb") as file:
                lines += [json.loads(line) for line in gzip.decompress(file.read()).splitlines()]
    return lines


def test_runs_are_archived_before_they_are_removed_and_restored_by_id(api, clock):
    api.define(simple("pay"))
    ids = [finish(api, input={"n": n}) for n in range(3)]
    before = documents(api, *ids)
    clock.advance(seconds=31 * DAY)

    assert sweep() == 3
    assert [api.get(f"/workflow/{id}").status_code for id in ids] == [404] * 3
    assert {line["id"] for line in archived_lines()} == set(ids)
    assert restore(*ids) == "Restored 3 runs.\n"

    assert documents(api, *ids) == before


def test_runs_are_restored_by_the_day_of_their_end(api, clock):
    api.define(simple("pay"))
    workflow_id = finish(api)
    clock.advance(seconds=31 * DAY)
    sweep()

    assert restore("--from", "2000-01-01", "--to", "2100-01-01") == "Restored 1 runs.\n"
    assert api.workflow(workflow_id)["status"] == "COMPLETED"


def test_a_run_stays_while_the_bucket_is_away(api, clock, settings):
    api.define(simple("pay"))
    workflow_id = finish(api)
    clock.advance(seconds=31 * DAY)
    options = settings.STORAGES["run_archive"]["OPTIONS"]
    container = "azure_container" if "azure_container" in options else "bucket_name"
    away = {**settings.STORAGES["run_archive"], "OPTIONS": {**options, container: "missing-bucket"}}
    settings.STORAGES = settings.STORAGES | {"run_archive": away}

    with pytest.raises(Exception, match=r"(?i)404|not ?found|no ?such|not exist"):
        sweep()

    assert api.workflow(workflow_id)["status"] == "COMPLETED"
