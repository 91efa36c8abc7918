"""Servers of object storages: moto for S3, Microsoft's Azurite, and an emulator of Google Cloud Storage."""

import base64
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.clients import node
from tests.events import brokers
from tests.free_port import free_port

AZURITE = Path(__file__).parent / "payloads" / "azurite"
BUCKET = "conductor-tests"


@contextmanager
def s3(_: Path) -> Iterator[str]:
    import boto3

    with brokers.aws() as address, pytest.MonkeyPatch.context() as environment:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            environment.setenv(name, "any")
        boto3.client("s3", endpoint_url=address, region_name="us-east-1").create_bucket(Bucket=BUCKET)
        yield f"s3://{BUCKET}/conductor?endpoint_url={address}&region_name=us-east-1"


@contextmanager
def azure(folder: Path) -> Iterator[str]:
    program, port = node.node(), free_port()
    try:
        node.install(AZURITE)
    except (AssertionError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"Azurite cannot be installed: {error}")
    from azure.storage.blob import BlobServiceClient

    key = base64.b64encode(os.urandom(32)).decode()
    script = AZURITE / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    options = ("--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder), "--skipApiVersionCheck")
    command = [program, str(script), "--silent", "--disableTelemetry", *options]
    account = f"DefaultEndpointsProtocol=http;AccountName=tests;AccountKey={key}"
    connection = f"{account};BlobEndpoint=http://127.0.0.1:{port}/tests;"
    with (
        brokers.running_broker(command, port, AZURITE_ACCOUNTS=f"tests:{key}"),
        pytest.MonkeyPatch.context() as environment,
    ):
        environment.setenv("AZURE_STORAGE_CONNECTION_STRING", connection)
        BlobServiceClient.from_connection_string(connection).create_container(BUCKET)
        yield f"azure://{BUCKET}/conductor"


@contextmanager
def gs(folder: Path) -> Iterator[str]:
    if not importlib.util.find_spec("gcp_storage_emulator"):
        pytest.skip("gcp-storage-emulator is not installed: it is in requirements/test.lock")
    port = free_port()
    start = ("start", "-H", "127.0.0.1", "--port", str(port), "--default-bucket", BUCKET, "-q")
    command = [sys.executable, "-m", "gcp_storage_emulator", "--data-dir", str(folder), *start]
    with brokers.running_broker(command, port), pytest.MonkeyPatch.context() as environment:
        environment.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
        yield f"gs://{BUCKET}/conductor"


@pytest.fixture(scope="module", params=[s3, azure, gs], ids=lambda server: server.__name__)
def bucket(request, tmp_path_factory) -> Iterator[str]:
    """Yield the address of a bucket, in the form of PAYLOAD_STORAGE, for each kind of service."""
    with request.param(tmp_path_factory.mktemp("bucket")) as place:
        yield place
