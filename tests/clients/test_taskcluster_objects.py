"""Artifacts of the type object: the official client's own upload and download, through the Object service."""

import hashlib
import os

import pytest
import requests
import taskcluster
from taskcluster.download import downloadArtifactToBuf
from taskcluster.exceptions import TaskclusterRestFailure
from taskcluster.upload import uploadFromBuf
from taskcluster.utils import slugId

from .test_taskcluster_artifacts import LACKING, MISSING, later
from .test_taskcluster_auth import Fleet, fleet, refusal_of, root  # noqa: F401
from .test_taskcluster_queue import LINUX, WORKER, definition

NAME = "public/build/a b.bin"
CONFLICT, FAULTY = (409, "RequestConflict"), (400, "InputError")


class Job:
    """A claimed task on a server with authentication."""

    def __init__(self, fleet: Fleet, root: dict) -> None:  # noqa: F811
        self.fleet, self.id = fleet, slugId()
        queue = fleet.queue(root)
        queue.createTask(self.id, definition(expires=later(days=2)))
        [claim] = queue.claimWork(LINUX, WORKER)["tasks"]
        self.queue = fleet.queue(claim["credentials"])

    def create(self, **fields) -> dict:
        asked = {"storageType": "object", "contentType": "application/x-tar", "expires": later(hours=1), **fields}
        return self.queue.createArtifact(self.id, 0, NAME, asked)

    def objects(self, credentials=None) -> taskcluster.Object:
        given = {"credentials": dict(credentials)} if credentials else {}
        return taskcluster.Object({"rootUrl": self.fleet.server, "maxRetries": 0, **given})

    def upload(self, made: dict, data: bytes) -> None:
        uploadFromBuf(
            data=data, name=made["name"], projectId=made["projectId"], uploadId=made["uploadId"],
            contentType="application/x-tar", contentLength=len(data), expires=made["expires"],
            objectService=self.objects(made["credentials"]), maxRetries=0,
        )  # fmt: skip

    def finish(self, made: dict) -> None:
        self.queue.finishArtifact(self.id, 0, NAME, {"uploadId": made["uploadId"]})


@pytest.fixture
def job(fleet, root):  # noqa: F811
    return Job(fleet, root)


@pytest.mark.parametrize("size", [0, 5_000, 300_000])
def test_the_upload_and_download_of_the_client_succeed(job, size):
    data = os.urandom(size)
    made = job.create()
    job.upload(made, data)
    assert refusal_of(job.fleet.queue().artifact, job.id, 0, NAME) == MISSING

    job.finish(made)

    content, content_type = downloadArtifactToBuf(
        taskId=job.id, runId=0, name=NAME, queueService=job.fleet.queue(), maxRetries=0
    )
    assert (bytes(content), content_type) == (data, "application/x-tar")
    assert requests.get(job.fleet.queue().getArtifact(job.id, 0, NAME)["url"]).content == data


def test_an_object_is_returned_with_its_hashes_to_authorized_callers(job):
    made = job.create()
    job.upload(made, b"x" * 100)
    job.finish(made)
    reader = job.objects(job.fleet.queue().artifact(job.id, 0, NAME)["credentials"])

    hashes = reader.object(made["name"])["hashes"]

    assert hashes["sha256"] == hashlib.sha256(b"x" * 100).hexdigest()
    assert reader.startDownload(made["name"], {"acceptDownloadMethods": {"simple": True}})["method"] == "simple"
    assert refusal_of(reader.startDownload, made["name"], {"acceptDownloadMethods": {}}) == (406, "NoMatchingMethod")
    assert requests.get(reader.buildSignedUrl("download", made["name"])).content == b"x" * 100
    assert refusal_of(reader.object, f"{made['name']}x") == LACKING
    assert refusal_of(job.objects().object, made["name"]) == LACKING


def test_creating_the_same_artifact_again_returns_the_same_upload(job):
    made = job.create()

    assert job.create(expires=later(hours=2))["uploadId"] == made["uploadId"]


def test_an_object_is_there_when_its_upload_is_finished(job):
    made = job.create()
    listed = job.fleet.queue(job.fleet.credentials("*", id="all")).listArtifacts(job.id, 0)["artifacts"]
    assert [each["name"] for each in listed] == [NAME]

    assert refusal_of(job.finish, made) == FAULTY
    job.upload(made, b"x")
    assert refusal_of(job.finish, {"uploadId": slugId()}) == FAULTY
    job.finish(made)
    job.finish(made)

    upload = {"projectId": made["projectId"], "uploadId": made["uploadId"]}
    objects = job.objects(made["credentials"])
    assert objects.finishUpload(made["name"], upload) == {}
    assert refusal_of(objects.finishUpload, made["name"], {**upload, "hashes": {"sha256": "00"}}) == CONFLICT
    again = {**upload, "expires": made["expires"], "proposedUploadMethods": {}}
    assert refusal_of(objects.createUpload, made["name"], again) == CONFLICT


def test_an_upload_belongs_to_its_artifact(job):
    made = job.create()
    objects = job.objects(made["credentials"])
    asked = {"projectId": made["projectId"], "uploadId": made["uploadId"], "expires": made["expires"],
             "proposedUploadMethods": {}}  # fmt: skip

    assert objects.createUpload(made["name"], asked)["uploadMethod"] == {}
    assert refusal_of(objects.createUpload, made["name"], {**asked, "uploadId": slugId()}) == CONFLICT
    assert refusal_of(objects.createUpload, f"{made['name']}x", asked) == LACKING
    assert refusal_of(objects.createUpload, made["name"], {**asked, "projectId": "other"}) == LACKING
    inline = {"dataInline": {"contentType": "a/b", "objectData": "=!"}}
    assert refusal_of(objects.createUpload, made["name"], {**asked, "proposedUploadMethods": inline}) == FAULTY
    assert refusal_of(objects.finishUpload, made["name"], {"projectId": "none", "uploadId": made["uploadId"]}) == FAULTY
    with pytest.raises(TaskclusterRestFailure, match="no such object"):
        job.objects(job.fleet.credentials("*", id="all")).object("another")


def test_only_an_object_is_finished(job):
    job.queue.createArtifact(job.id, 0, NAME, {"storageType": "s3", "contentType": "a/b", "expires": later(hours=1)})

    assert refusal_of(job.finish, {"uploadId": slugId()}) == FAULTY
