"""Storage of payloads that are too large for rows."""

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.files.base import ContentFile
from django.utils.module_loading import import_string

from conductor_app.settings import services


def storage_at(place: str):
    described = services.payload_storage("PAYLOAD_STORAGE", place)
    return import_string(described["BACKEND"])(**described["OPTIONS"])


def test_a_folder_that_only_its_owner_reads(tmp_path):
    storage = storage_at(str(tmp_path / "payloads"))

    storage.save("task/output/a.json", ContentFile(b"{}"))

    kept = tmp_path / "payloads/task/output/a.json"
    assert (kept.read_bytes(), kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (b"{}", 0o600, 0o700)


def test_a_bucket_with_a_prefix_and_an_endpoint():
    storage = storage_at("s3://orders/conductor/payloads?endpoint_url=http://minio:9000&region_name=eu-west-1")

    assert (storage.bucket_name, storage.location) == ("orders", "conductor/payloads")
    assert (storage.endpoint_url, storage.region_name) == ("http://minio:9000", "eu-west-1")


@pytest.mark.parametrize("place", ["s3://", "s3:///prefix"])
def test_an_address_without_a_bucket_is_refused_by_name(place):
    with pytest.raises(ImproperlyConfigured, match="PAYLOAD_STORAGE"):
        services.payload_storage("PAYLOAD_STORAGE", place)
