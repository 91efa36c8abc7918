"""Payloads in buckets of S3, Azure and Google Cloud."""

from collections.abc import Iterator

import pytest
from django.core.files.base import ContentFile

from conductor_app.core.errors import StorageFileMissing
from conductor_app.payloads import store as payload_store
from conductor_app.settings import services
from tests.builders import simple
from tests.object_storages import bucket  # noqa: F401


@pytest.fixture(autouse=True)
def storage(bucket: str, settings) -> Iterator[None]:  # noqa: F811
    """Store payloads in the bucket."""
    settings.STORAGES = settings.STORAGES | {"payloads": services.payload_storage("PAYLOAD_STORAGE", bucket)}
    payload_store._storage.cache_clear()
    yield
    payload_store._storage.cache_clear()


def test_a_payload_is_stored_read_in_parts_and_deleted():
    content = bytes(range(256)) * 1_000

    assert payload_store.put_payload("task/output/a.json", content)

    assert payload_store.has_payload("task/output/a.json")
    assert payload_store.fetch_payload("task/output/a.json") == content
    assert b"".join(payload_store.stream_payload("task/output/a.json")) == content
    assert b"".join(payload_store.stream_payload("task/output/a.json", range(1_000, 200_000))) == content[1_000:200_000]
    assert payload_store.read_payload_range("task/output/a.json", 255, 3) == b"\xff\x00\x01"
    payload_store.delete_payload("task/output/a.json")
    payload_store.delete_payload("task/output/a.json")
    assert not payload_store.has_payload("task/output/a.json")


def test_content_larger_than_the_memory_is_stored_under_its_path():
    content = b"0123456789" * 1_000_000

    assert payload_store.put_payload("large.json", ContentFile(content))

    assert b"".join(payload_store.stream_payload("large.json")) == content


def test_a_payload_is_replaced():
    payload_store.put_payload("b.json", b"1")

    assert payload_store.put_payload("b.json", b"2")

    assert payload_store.fetch_payload("b.json") == b"2"


@pytest.mark.parametrize("read", [payload_store.fetch_payload, payload_store.stream_payload], ids=["fetch", "stream"])
def test_a_missing_payload_is_reported_as_missing(read):
    with pytest.raises(StorageFileMissing):
        read("task/output/none.json")


def test_the_large_payloads_of_a_run_are_in_the_bucket(api):
    api.define(simple("pay"), outputParameters={"all": "${pay.output.text}"})
    workflow_id = api.start(input={"text": "i" * 6_000_000})
    [task] = api.poll("pay")

    api.report(task, outputData={"text": "o" * 4_000_000})

    run = api.workflow(workflow_id)
    assert run["status"] == "COMPLETED"
    for path in (run["externalInputPayloadStoragePath"], run["tasks"][0]["externalOutputPayloadStoragePath"]):
        assert payload_store.has_payload(path)
