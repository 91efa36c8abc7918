"""Artifacts as commands: content that comes in pieces, and that goes with its artifact."""

import tracemalloc

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import storages

from conductor_app.core.errors import Busy, Conflict, Invalid, NotFound
from conductor_app.payloads.models import StoredPayload
from conductor_app.processes.sweeps import prune_finished
from conductor_app.runs.models import PulseMessage
from conductor_app.settings import conf
from conductor_app.taskcluster.api.base import RequestBodyStream, RequestUpload
from conductor_app.taskcluster.commands import artifacts
from conductor_app.taskcluster.commands import artifacts as artifact_contents
from conductor_app.taskcluster.commands import tasks as claims
from conductor_app.taskcluster.commands import tasks as task_commands
from conductor_app.taskcluster.core.decisions import ArtifactValue
from conductor_app.taskcluster.models import Artifact as Row

pytestmark = pytest.mark.django_db(transaction=True)
HOUR_MS = 3_600_000
TASK = "AAAAAAAAQAKAAAAAAAAAAA"


@pytest.fixture
def job(clock):
    """Return the id of a claimed task."""
    now = clock.now()
    task_commands.create_task(
        task_commands.NewTask(
            id=TASK, group_id=TASK, scheduler_id="-", project_id="none", queue="p/w", priority=1, retries=0,
            deadline_at=now + HOUR_MS, expires_at=now + 2 * HOUR_MS, requires=(), accepts_failure=False,
            tags={"kind": "build"}, routes=["a.b"], name="build", definition={"scopes": []},
        )
    )  # fmt: skip
    claims.claim_one(TASK, 0, "here", "w1")
    return TASK


@pytest.fixture
def create(job, clock):
    def create(name="public/a", kind="s3", hours=1, **details):
        return artifacts.create(job, 0, name, ArtifactValue(kind, "text/plain", clock.now() + hours * HOUR_MS, details))

    return create


def list_stored_files() -> list[str]:
    """Return the files of stored artifacts."""
    storage = storages[conf.payload_storage]
    return storage.listdir("artifacts")[1] if storage.exists("artifacts") else []


@pytest.fixture(autouse=True)
def empty_storage(db):
    for name in list_stored_files():
        storages[conf.payload_storage].delete(f"artifacts/{name}")


def read(name="public/a") -> bytes:
    return b"".join(artifact_contents.stream_content(artifact_contents.find_present(TASK, 0, name)))


def test_content_is_deleted_with_its_artifact(create, clock):
    create()
    artifact_contents.store_content(TASK, 0, "public/a", ContentFile(b"x"))

    clock.advance(seconds=3599 + conf.taskcluster_expiration_delay)
    prune_finished(10)
    assert (read(), len(list_stored_files())) == (b"x", 1)
    clock.advance(seconds=1)
    prune_finished(10)

    assert not Row.objects.exists()
    assert not StoredPayload.objects.exists()
    assert list_stored_files() == []


def test_content_is_kept_until_the_extended_expiry_of_its_artifact(create, clock):
    create()
    artifact_contents.store_content(TASK, 0, "public/a", ContentFile(b"x"))
    create(hours=2)

    clock.advance(seconds=3601 + conf.taskcluster_expiration_delay)
    prune_finished(10)

    assert read() == b"x"


def test_one_call_deletes_more_than_one_pass(create, clock):
    for number in range(5):
        create(f"public/{number}")
        artifact_contents.store_content(TASK, 0, f"public/{number}", ContentFile(b"x"))
    clock.advance(seconds=3601 + conf.taskcluster_expiration_delay)

    prune_finished(2)

    assert not Row.objects.exists()
    assert list_stored_files() == []


def test_replaced_content_is_deleted_by_the_next_pass(create):
    create()
    artifact_contents.store_content(TASK, 0, "public/a", ContentFile(b"old"))
    artifact_contents.store_content(TASK, 0, "public/a", ContentFile(b"new"))

    prune_finished(10)

    assert (read(), len(list_stored_files())) == (b"new", 1)


def test_an_interrupted_upload_stores_nothing(create):
    create()
    pieces = [b"half"]
    upload = RequestUpload(RequestBodyStream(lambda size: pieces.pop() if pieces else b"", 8, 100))

    with pytest.raises(Busy):
        artifact_contents.store_content(TASK, 0, "public/a", upload)

    assert isinstance(upload.body.read_error, Invalid)
    assert list_stored_files() == []
    with pytest.raises(NotFound):
        read()


def test_a_large_artifact_is_streamed(create):
    create()
    size, piece = 32 * 1024 * 1024, bytes(64 * 1024)
    tracemalloc.start()
    try:
        artifact_contents.store_content(
            TASK, 0, "public/a", RequestUpload(RequestBodyStream(lambda count: piece[:count], size, size))
        )
        received = sum(
            len(chunk)
            for chunk in artifact_contents.stream_content(artifact_contents.find_present(TASK, 0, "public/a"))
        )
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert received == size
    assert most < 4 * 1024 * 1024


def test_artifacts_without_files_are_published(create):
    create("public/log", "reference", url="http://a")
    create("public/log", "link", artifact="public/a")
    create("public/a")

    messages = PulseMessage.objects.filter(name="artifact-created").order_by("id")
    assert [each.payload["artifact"]["storageType"] for each in messages] == ["reference", "link"]
    first = messages[0]
    assert (first.payload["runId"], first.payload["workerGroup"], first.payload["workerId"]) == (0, "here", "w1")
    assert first.payload["status"]["taskId"] == TASK
    assert (first.routes, first.key.split(".")[:3]) == (["route.a.b"], ["primary", TASK, "0"])


def test_a_server_without_payload_storage_refuses_artifacts(create, settings):
    settings.CONDUCTOR_PAYLOAD_STORAGE = ""

    with pytest.raises(Invalid, match="PAYLOAD_STORAGE"):
        create()
    assert create("public/log", "reference", url="http://a").kind == "reference"


def test_an_unknown_task_accepts_no_artifact(create, clock):
    with pytest.raises(Invalid, match="does not exist"):
        artifacts.create("B" * 22, 0, "a", ArtifactValue("s3", "text/plain", clock.now()))


def test_a_resolved_attempt_accepts_no_artifact(create, job):
    task_commands.report_task(job, 0, "completed")

    with pytest.raises(Conflict):
        create()
