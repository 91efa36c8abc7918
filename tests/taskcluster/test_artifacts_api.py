"""Artifact requests: rejected and successful ones (taskcluster §4.1)."""

from urllib.parse import quote, urljoin, urlsplit

import pytest

from .conftest import HOUR, new_id, refusal_code

CONFLICT, SCHEMA, INPUT = (409, "RequestConflict"), (400, "InputValidationError"), (400, "InputError")


class Job:
    """A task that a worker holds."""

    def __init__(self, queue) -> None:
        self.queue, self.id = queue, queue.create(expires=queue.at(2 * HOUR))
        queue.claim_specific_task(self.id)

    def asks(self, name="public/a", run=0, hours=1.0, **fields):
        """Create an artifact, whatever comes of it."""
        asked = {"storageType": "s3", "expires": self.queue.at(hours * HOUR), **fields}
        if asked["storageType"] in ("s3", "reference", "object"):
            asked.setdefault("contentType", "text/plain")
        return self.queue.post(f"/task/{self.id}/runs/{run}/artifacts/{name}", asked)

    def get(self, name, run=0):
        return self.queue.get(f"/task/{self.id}/runs/{run}/artifacts/{name}")


@pytest.fixture
def job(queue):
    return Job(queue)


FAULTY = {
    "a type that there is not": ({"storageType": "azure"}, SCHEMA),
    "a field that there is not": ({"size": 1}, SCHEMA),
    "a reference to nowhere": ({"storageType": "reference"}, SCHEMA),
    "a reference that is no address": ({"storageType": "reference", "url": "over there"}, SCHEMA),
    "a line break in its type": ({"contentType": "a\nb: c"}, SCHEMA),
    "a length below nothing": ({"contentLength": -1}, SCHEMA),
    "an end after its task's": ({"hours": 3}, INPUT),
    "an end before its beginning": ({"hours": -1}, INPUT),
    "a run that there is not": ({"run": 1}, INPUT),
    "a name of more than 1024 characters": ({"name": "a" * 1025}, (400, "InvalidRequestArguments")),
}


@pytest.mark.parametrize("case", FAULTY)
def test_an_artifact_is_refused_with(job, case):
    fields, expected = FAULTY[case]

    assert refusal_code(job.asks(**fields)) == expected


def test_an_artifact_can_be_created_again_only_unchanged(job):
    assert job.asks().status_code == 200

    assert job.asks(hours=2).status_code == 200

    assert refusal_code(job.asks(hours=1)) == CONFLICT
    assert refusal_code(job.asks(hours=2, contentType="text/html")) == CONFLICT
    assert refusal_code(job.asks(hours=2, storageType="object")) == CONFLICT


def test_links_are_followed_and_those_that_lead_in_a_circle_lead_nowhere(job):
    for number in range(30):
        job.asks(f"{number}", storageType="link", artifact=f"{number + 1}")
    job.asks("30", storageType="reference", url="https://example.org/x")
    for name, to in (("a", "b"), ("b", "c"), ("c", "a")):
        job.asks(name, storageType="link", artifact=to)

    assert job.get("0").json() == {"storageType": "reference", "url": "https://example.org/x"}
    assert refusal_code(job.get("a")) == INPUT


def test_an_expired_artifact_is_deleted_and_still_listed(job):
    job.asks(storageType="reference", url="https://example.org/x")
    job.queue.clock.advance(seconds=HOUR + 1)

    assert refusal_code(job.get("public/a")) == (410, "ResourceExpired")
    listed = job.queue.get(f"/task/{job.id}/artifacts").json()["artifacts"]
    assert [each["name"] for each in listed] == ["public/a"]


def test_the_latest_run_is_the_one_with_the_highest_number(job):
    job.asks(storageType="reference", url="https://example.org/0")
    job.queue.report(job.id, 0, "worker-shutdown")
    job.queue.claim_specific_task(job.id)
    job.asks(run=1, storageType="reference", url="https://example.org/1")

    assert job.queue.get(f"/task/{job.id}/artifacts/public/a").json()["url"] == "https://example.org/1"
    assert job.get("public/a").json()["url"] == "https://example.org/0"


def test_a_worker_that_lost_its_run_may_bring_its_log_for_a_while(job):
    job.queue.report(job.id, 0, "worker-shutdown")
    job.queue.clock.advance(seconds=25 * 60)
    assert job.asks().status_code == 200

    job.queue.clock.advance(seconds=1)
    assert refusal_code(job.asks()) == CONFLICT


def test_a_task_without_runs_has_no_latest_artifacts(queue):
    id = new_id()
    queue.create(id, dependencies=[id])

    assert refusal_code(queue.get(f"/task/{id}/artifacts")) == (404, "ResourceNotFound")
    assert refusal_code(queue.get(f"/task/{id}/artifacts/a")) == (404, "ResourceNotFound")


@pytest.mark.parametrize(
    "name",
    ["public/logs/../../../../../foo.log", "public/../../admin/", "public/a/../b.txt", "public/./x", "public/.."],
)
def test_a_name_with_dot_segments_is_stored_and_read_exactly(job, name):
    """Clients remove the segments `.` and `..` from an address before they send it, also percent-encoded ones."""
    encoded = quote(name, safe="")
    upload = urlsplit(job.asks(encoded).json()["putUrl"])
    stored = job.queue.client.put(f"{upload.path}?{upload.query}", name.encode(), content_type="text/plain")
    reply = job.get(encoded)
    download = urlsplit(reply.json()["url"])

    for address in (upload, download):
        segments = {segment.lower() for segment in address.path.split("/")}
        assert not segments & {".", "..", "%2e", "%2e%2e"}
        assert urljoin("http://host.example.org/a/", address.path) == f"http://host.example.org{address.path}"
    assert (stored.status_code, reply.status_code) == (200, 303)
    content = job.queue.client.get(f"{download.path}?{download.query}")
    assert b"".join(content.streaming_content if content.streaming else [content.content]) == name.encode()


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_no_address_can_contain_is_refused(job, name):
    reply = job.asks(name)

    assert refusal_code(reply) == (400, "InvalidRequestArguments")
    assert f"'{name}'" in reply.json()["message"]
