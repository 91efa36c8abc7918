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


def test_buckets_of_azure_and_google(monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=shop;AccountKey=a2V5;EndpointSuffix=example.org")

    azure, google = storage_at("azure://orders/payloads"), storage_at("gs://orders/payloads?project_id=shop")

    assert (azure.azure_container, azure.location, azure.account_name) == ("orders", "payloads", "shop")
    assert (google.bucket_name, google.location, google.project_id) == ("orders", "payloads", "shop")


def test_azure_requires_its_connection_string():
    with pytest.raises(ImproperlyConfigured, match="AZURE_STORAGE_CONNECTION_STRING is not set"):
        services.payload_storage("PAYLOAD_STORAGE", "azure://orders")


@pytest.mark.parametrize(
    ("place", "module", "extra"),
    [
        ("s3://orders", "boto3", "s3"),
        ("azure://orders", "azure.storage.blob", "azure"),
        ("gs://orders", "google.cloud.storage", "gcs"),
        ("gs://orders", "storages", "gcs"),
    ],
)
def test_a_bucket_whose_extra_is_not_installed_is_refused_with_its_name(monkeypatch, place, module, extra):
    find = services.find_spec
    monkeypatch.setattr(services, "find_spec", lambda name: None if name == module else find(name))

    with pytest.raises(ImproperlyConfigured, match=f"RUN_ARCHIVE is refused: .*extra `{extra}`"):
        services.payload_storage("RUN_ARCHIVE", place)


def test_an_unknown_service_is_no_folder():
    with pytest.raises(ImproperlyConfigured, match=r"s3://, azure:// or gs://"):
        services.payload_storage("PAYLOAD_STORAGE", "gcs://orders")


@pytest.mark.parametrize("place", ["s3://", "s3:///prefix"])
def test_an_address_without_a_bucket_is_refused_by_name(place):
    with pytest.raises(ImproperlyConfigured, match="PAYLOAD_STORAGE"):
        services.payload_storage("PAYLOAD_STORAGE", place)
