"""Artifacts through the official Python client: created, sent, found and fetched (taskcluster §4)."""

import gzip
from datetime import UTC, datetime, timedelta

import pytest
import requests
import taskcluster
from taskcluster.download import downloadArtifactToBuf
from taskcluster.exceptions import TaskclusterRestFailure
from taskcluster.utils import slugId

from .test_taskcluster_auth import LACKING, Fleet, fleet, refusal_of, root  # noqa: F401
from .test_taskcluster_queue import LINUX, WORKER, definition

LOG = "public/logs/live.log"
BYTES = b"hello, world\n" * 1000


def later(**span: float) -> str:
    return (datetime.now(UTC) + timedelta(**span)).isoformat().replace("+00:00", "Z")


class Job:
    """A task that a worker holds."""

    def __init__(self, server: str) -> None:
        self.server, self.queue, self.id = server, taskcluster.Queue({"rootUrl": server, "maxRetries": 0}), slugId()
        self.queue.createTask(self.id, definition(expires=later(days=2)))
        self.queue.claimWork(LINUX, WORKER)

    def create(self, name: str, storage="s3", run=0, **fields):
        """Create an artifact."""
        asked = {"storageType": storage, "expires": later(days=1), **fields}
        if storage in ("s3", "reference"):
            asked.setdefault("contentType", "text/plain")
        return self.queue.createArtifact(self.id, run, name, asked)

    def send(self, name: str, content=BYTES, headers=None, **fields) -> requests.Response:
        """Create an artifact and send its content."""
        return requests.put(self.create(name, **fields)["putUrl"], content, headers=headers or {})

    def fetch(self, name: str, **headers) -> requests.Response:
        """Fetch the content of an artifact and follow the redirect."""
        return requests.get(f"{self.server}/api/queue/v1/task/{self.id}/artifacts/{name}", headers=headers)


@pytest.fixture
def job(server):
    return Job(server)


def test_an_artifact_is_fetched_unchanged(job):
    made = job.create("public/a b/u?.txt", contentType="text/plain; charset=utf-8", contentLength=7)
    name = "public/a b/u?.txt"

    sent = requests.put(made["putUrl"], BYTES, headers={"Content-Type": "text/plain; charset=utf-8"})

    assert (made["storageType"], made["contentType"], sent.status_code) == ("s3", "text/plain; charset=utf-8", 200)
    found = job.queue.getArtifact(job.id, 0, name)
    assert found == {"storageType": "s3", "url": found["url"]}
    fetched = requests.get(found["url"])
    assert (fetched.content, fetched.headers["Content-Type"]) == (BYTES, "text/plain; charset=utf-8")
    assert "sandbox" in fetched.headers["Content-Security-Policy"]
    assert requests.head(found["url"]).headers["Content-Length"] == str(len(BYTES))
    for how in (
        job.queue.artifact(job.id, 0, name),
        job.queue.latestArtifact(job.id, name),
        job.queue.getLatestArtifact(job.id, name),
    ):
        assert how["storageType"] == "s3"
        assert requests.get(how["url"]).content == BYTES


def test_a_content_encoding_is_preserved_for_every_client(job):
    job.send(LOG, gzip.compress(BYTES), {"Content-Encoding": "gzip", "Content-Type": "text/plain"})

    fetched = job.fetch(LOG, **{"Accept-Encoding": "identity"})

    assert (fetched.headers["Content-Encoding"], fetched.content) == ("gzip", BYTES)


def test_a_part_of_a_content_is_fetched_as_long_as_it_is_the_same(job):
    job.send("public/a")
    whole = job.fetch("public/a")

    part = job.fetch("public/a", Range="bytes=1-3", **{"If-Range": whole.headers["ETag"]})
    assert (part.status_code, part.content) == (206, BYTES[1:4])
    assert part.headers["Content-Range"] == f"bytes 1-3/{len(BYTES)}"
    behind = job.fetch("public/a", Range=f"bytes={len(BYTES)}-")
    assert (behind.status_code, behind.headers["Content-Range"]) == (416, f"bytes */{len(BYTES)}")

    job.send("public/a", b"another")
    assert job.fetch("public/a", Range="bytes=1-3", **{"If-Range": whole.headers["ETag"]}).content == b"another"


def test_the_clients_own_download_finds_it(job):
    job.send("public/a.bin", contentType="application/octet-stream")

    content, content_type = downloadArtifactToBuf(taskId=job.id, runId=0, name="public/a.bin", queueService=job.queue)

    assert (bytes(content), content_type) == (BYTES, "application/octet-stream")


def test_a_body_of_unknown_length_and_an_empty_one_are_stored(job):
    address = job.create("public/a")["putUrl"]
    assert requests.put(address, (BYTES for _ in range(3))).status_code == 200
    assert job.fetch("public/a").content == BYTES * 3

    assert requests.put(address, b"").status_code == 200
    assert job.fetch("public/a").content == b""


def test_a_repeated_upload_replaces_the_earlier_one(job):
    address = job.create("public/a")["putUrl"]
    requests.put(address, b"first", headers={"Content-Encoding": "x-first"})
    requests.put(address, b"second")

    fetched = job.fetch("public/a")

    assert fetched.content == b"second"
    assert "Content-Encoding" not in fetched.headers


def test_an_upload_url_is_valid_only_for_its_purpose_and_artifact(job):
    put = job.create("public/a")["putUrl"]
    job.create("public/b")
    requests.put(put, BYTES)
    get = job.queue.artifact(job.id, 0, "public/a")["url"]

    assert requests.get(put).status_code == 403
    assert requests.put(get, b"forged").status_code == 403
    assert requests.put(put.replace("public/a", "public/b"), b"forged").status_code == 403
    assert requests.get(get.partition("?")[0]).status_code == 403
    assert requests.get(get.replace("expires=1", "expires=2")).status_code == 403
    assert job.fetch("public/a").content == BYTES


def test_an_artifact_without_content_is_not_found(job):
    job.create("public/a")

    assert job.fetch("public/a").status_code == 404


def test_a_log_streams_and_is_then_stored(job):
    job.create(LOG, "reference", url="http://worker.example.org:1234/log", contentType="text/plain; charset=utf-8")
    found = job.queue.getLatestArtifact(job.id, LOG)
    assert found == {"storageType": "reference", "url": "http://worker.example.org:1234/log"}

    job.send("public/logs/live_backing.log")
    assert job.create(LOG, "link", artifact="public/logs/live_backing.log") == {"storageType": "link"}

    assert job.fetch(LOG).content == BYTES
    listed = job.queue.listArtifacts(job.id, 0)["artifacts"]
    assert [(each["name"], each["storageType"], each["contentType"]) for each in listed] == [
        (LOG, "link", "text/plain; charset=utf-8"),
        ("public/logs/live_backing.log", "s3", "text/plain"),
    ]


def test_a_redirect_artifact_returns_its_target(job):
    job.send("public/a")

    url = job.queue.buildUrl("getArtifact", job.id, 0, "public/a")
    reply = requests.get(url, allow_redirects=False)

    assert (reply.status_code, reply.headers["x-taskcluster-artifact-storage-type"]) == (303, "s3")
    assert reply.headers["Location"].partition("?")[0] == reply.json()["url"].partition("?")[0]


def test_an_error_artifact_returns_its_reason(job):
    fault = {"reason": "file-missing-on-worker", "message": "It is not there."}
    assert job.create("public/a", "error", **fault) == {"storageType": "error"}

    assert job.queue.artifact(job.id, 0, "public/a") == {"storageType": "error", **fault}
    url = job.queue.buildUrl("getArtifact", job.id, 0, "public/a")
    assert (requests.get(url).status_code, requests.get(url).json()) == (424, fault)


def test_artifacts_are_listed_in_pages_and_described_one_by_one(job):
    names = [f"public/{number}" for number in range(5)]
    for name in reversed(names):
        job.create(name, contentLength=3)

    pages: list[dict] = []
    job.queue.listLatestArtifacts(job.id, query={"limit": 2}, paginationHandler=pages.append)

    assert [each["name"] for page in pages for each in page["artifacts"]] == names
    info = job.queue.artifactInfo(job.id, 0, "public/1")
    assert info == job.queue.latestArtifactInfo(job.id, "public/1") == pages[0]["artifacts"][1]
    assert info.keys() == {"storageType", "name", "expires", "contentType", "contentLength"}


MISSING = (404, "ResourceNotFound")


def test_an_unknown_artifact_is_not_found(job):
    other = slugId()

    assert refusal_of(job.queue.getArtifact, job.id, 0, "a") == MISSING
    assert refusal_of(job.queue.getLatestArtifact, other, "a") == MISSING
    assert refusal_of(job.queue.artifactInfo, job.id, 1, "a") == MISSING
    assert refusal_of(job.queue.listArtifacts, job.id, 1) == MISSING
    assert refusal_of(job.queue.listArtifacts, other, 0) == MISSING
    assert refusal_of(job.queue.listLatestArtifacts, other) == MISSING


def test_an_ended_attempt_accepts_no_artifacts_and_serves_existing_ones(job):
    job.send("public/a")
    job.queue.reportCompleted(job.id, 0)

    assert refusal_of(job.create, "public/b") == (409, "RequestConflict")
    assert job.fetch("public/a").content == BYTES


def test_an_upload_that_is_too_large_is_refused(job, settings):
    settings.CONDUCTOR_ARTIFACT_MAX_BYTES = 100
    address = job.create("public/a")["putUrl"]

    assert requests.put(address, b"x" * 101).json()["code"] == "InputTooLarge"
    assert requests.put(address, (b"x" for _ in range(101))).json()["code"] == "InputTooLarge"
    assert requests.put(address, b"x" * 100).status_code == 200


class TestWithScopes:
    @pytest.fixture
    def claim(self, fleet: Fleet, root):  # noqa: F811
        """Return the credentials of a claimed task on a server with authentication."""
        queue, id = fleet.queue(root), slugId()
        queue.createTask(id, definition(expires=later(days=2)))
        [claim] = queue.claimWork(LINUX, WORKER)["tasks"]
        return id, fleet.queue(claim["credentials"])

    def create(self, queue, id, name, run=0, **fields):
        asked = {"storageType": "s3", "contentType": "text/plain", "expires": later(hours=1), **fields}
        return queue.createArtifact(id, run, name, asked)

    def test_a_worker_adds_artifacts_to_its_own_run_and_to_no_other(self, claim, fleet):  # noqa: F811
        id, worker = claim

        assert requests.put(self.create(worker, id, "public/a")["putUrl"], BYTES).status_code == 200
        assert refusal_of(self.create, worker, id, "public/a", 1) == LACKING
        assert refusal_of(self.create, worker, slugId(), "public/a") == LACKING
        assert refusal_of(self.create, fleet.queue(), id, "public/b") == LACKING

    def test_public_artifacts_are_readable_by_anyone_and_others_by_scope(self, claim, fleet):  # noqa: F811
        id, worker = claim
        for name in ("public/a", "private/a"):
            requests.put(self.create(worker, id, name)["putUrl"], BYTES)
        reader = fleet.queue(fleet.credentials("queue:get-artifact:private/*", id="reader"))

        assert requests.get(fleet.queue().getArtifact(id, 0, "public/a")["url"]).content == BYTES
        assert refusal_of(fleet.queue().getArtifact, id, 0, "private/a") == LACKING
        assert requests.get(reader.buildSignedUrl("getArtifact", id, 0, "private/a")).content == BYTES
        assert requests.get(worker.buildUrl("getLatestArtifact", id, "private/a")).status_code == 403
        assert refusal_of(reader.listArtifacts, id, 0) == LACKING

    def test_every_link_of_a_chain_requires_its_scope(self, claim, fleet):  # noqa: F811
        id, worker = claim
        asked = {"storageType": "link", "expires": later(hours=1), "artifact": "private/a"}
        worker.createArtifact(id, 0, "public/a", asked)
        requests.put(self.create(worker, id, "private/a")["putUrl"], BYTES)

        with pytest.raises(TaskclusterRestFailure) as failure:
            fleet.queue().getArtifact(id, 0, "public/a")

        assert failure.value.body["code"] == "InsufficientScopes"
        assert "queue:get-artifact:public/a" in str(failure.value)
        assert "queue:get-artifact:private/a" in str(failure.value)
