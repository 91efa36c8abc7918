"""Files of runs, sent and fetched as clients do (api §1.12)."""

import hashlib
from urllib.parse import urlsplit

import pytest
from django.core.files.storage import storages

from conductor_app.payloads.models import FileHandle, StoredPayload
from conductor_app.processes import sweeps
from conductor_app.runs.models import Run
from conductor_app.settings import conf
from tests.access.users import api_client_of, create_application, grant_access
from tests.builders import simple, step_of

DAY = 86_400
SCHEME = "conductor://file/"


@pytest.fixture
def run(api, clock) -> str:
    """Return the id of a run that waits for a worker."""
    api.define(simple("pay"))
    return api.start()


@pytest.fixture(autouse=True)
def empty_storage(db):
    for name in stored_files():
        storages[conf.payload_storage].delete(f"files/{name}")


def stored_files() -> list[str]:
    """Return the contents of all stored files."""
    storage = storages[conf.payload_storage]
    return storage.listdir("files")[1] if storage.exists("files") else []


def begin(api, run: str, **fields) -> dict:
    reply = api.post("/files", {"workflowId": run, "fileName": "a b.pdf", "contentType": "application/pdf", **fields})
    assert reply.status_code == 201, reply.content
    return reply.json()


def id_of(document: dict) -> str:
    assert document["fileHandleId"].startswith(SCHEME)
    return document["fileHandleId"].removeprefix(SCHEME)


def path_of(address: str) -> str:
    """Return a download URL as the path that the client requests."""
    parts = urlsplit(address)
    return f"{parts.path.removeprefix('/api')}?{parts.query}"


def send(api, run: str, content: bytes = b"%PDF", **fields) -> str:
    """Send a file; its id."""
    made = begin(api, run, **fields)
    assert api.send("PUT", path_of(made["uploadUrl"]), content).status_code == 204
    assert api.post(f"/files/{run}/{id_of(made)}/upload-complete").status_code == 200
    return id_of(made)


def content(reply) -> bytes:
    return b"".join(reply.streaming_content)


def test_a_file_is_started_sent_finished_and_fetched(api, run, clock):
    made = begin(api, run)
    file = id_of(made)
    assert (made["storageType"], made["uploadStatus"], made["createdAt"]) == ("CONDUCTOR", "UPLOADING", clock.now())
    assert made["uploadUrlExpiresAt"] > clock.now()

    sent = api.send("PUT", path_of(made["uploadUrl"]), b"%PDF")
    assert (sent.status_code, sent.content) == (204, b"")
    done = api.post(f"/files/{run}/{file}/upload-complete").json()

    digest = hashlib.sha256(b"%PDF").hexdigest()
    assert done == {"fileHandleId": SCHEME + file, "uploadStatus": "UPLOADED", "contentHash": digest}
    described = api.get(f"/files/{run}/{file}").json()
    assert described == {
        "fileHandleId": SCHEME + file,
        "fileName": "a b.pdf",
        "contentType": "application/pdf",
        "fileSize": 4,
        "contentHash": digest,
        "storageType": "CONDUCTOR",
        "uploadStatus": "UPLOADED",
        "workflowId": run,
        "createdAt": clock.now(),
        "updatedAt": clock.now(),
    }
    address = api.get(f"/files/{run}/{file}/download-url").json()["downloadUrl"]
    fetched = api.get(path_of(address))
    assert (content(fetched), fetched["Content-Length"]) == (b"%PDF", "4")
    assert fetched["Content-Type"] == "application/pdf"
    assert fetched["Content-Disposition"] == "attachment; filename*=UTF-8''a%20b.pdf"
    assert "sandbox" in fetched["Content-Security-Policy"]


def test_a_file_is_uploaded_in_parts_in_any_order_and_repeatedly(api, run):
    file = id_of(begin(api, run))
    upload = api.post(f"/files/{run}/{file}/multipart").json()["uploadId"]
    tags = {}
    for number, part in ((2, b"two"), (1, b"?"), (1, b"one,"), (10, b"!")):
        address = api.get(f"/files/{run}/{file}/multipart/{upload}/part/{number}").json()["uploadUrl"]
        tags[number] = api.send("PUT", path_of(address), part)["ETag"]

    wrong = api.post(f"/files/{run}/{file}/multipart/{upload}/complete", {"partETags": [tags[2], tags[1]]})
    done = api.post(f"/files/{run}/{file}/multipart/{upload}/complete", {"partETags": [tags[1], tags[2], tags[10]]})

    assert (wrong.status_code, done.status_code) == (400, 200)
    assert done.json()["contentHash"] == hashlib.sha256(b"one,two!").hexdigest()
    assert content(api.get(f"/files/content/{run}/{file}")) == b"one,two!"
    sweeps.prune_finished(10)
    assert len(stored_files()) == 1


def test_parts_of_an_aborted_upload_are_deleted(api, run, clock):
    file = id_of(begin(api, run))
    upload = api.post(f"/files/{run}/{file}/multipart").json()["uploadId"]
    assert api.send("PUT", f"/files/content/{run}/{file}?part={upload}/1", b"x").status_code == 204

    assert api.delete(f"/files/{run}/{file}/multipart/{upload}").status_code == 204

    assert api.send("PUT", f"/files/content/{run}/{file}?part={upload}/1", b"x").status_code == 404
    assert api.post(f"/files/{run}/{file}/multipart/{upload}/complete", {"partETags": []}).status_code == 404
    clock.advance(seconds=1)
    sweeps.prune_finished(10)
    assert stored_files() == []


def test_an_incomplete_file_cannot_be_fetched_and_a_complete_one_accepts_no_parts(api, run):
    made = begin(api, run)
    file = id_of(made)
    assert api.post(f"/files/{run}/{file}/upload-complete").status_code == 400
    assert api.get(f"/files/{run}/{file}/download-url").status_code == 400
    assert api.get(f"/files/content/{run}/{file}").status_code == 400
    for attempt in (b"first", b"second"):
        assert api.send("PUT", f"/files/content/{run}/{file}", attempt).status_code == 204

    assert api.post(f"/files/{run}/{file}/upload-complete").status_code == 200

    assert content(api.get(f"/files/content/{run}/{file}")) == b"second"
    assert api.post(f"/files/{run}/{file}/upload-complete").status_code == 409
    assert api.send("PUT", path_of(made["uploadUrl"]), b"third").status_code == 409
    assert api.get(f"/files/{run}/{file}/upload-url").status_code == 409
    assert api.post(f"/files/{run}/{file}/multipart").status_code == 409


def test_the_family_of_a_run_reads_its_files_and_strangers_do_not(api, clock):
    child = {"name": "child", "tasks": [simple("pay")], "schemaVersion": 2}
    api.define(step_of("SUB_WORKFLOW", "sub", subWorkflowParam={"name": "child", "workflowDefinition": child}))
    parent, stranger = api.start(), api.start()
    below = api.workflow(parent)["tasks"][0]["subWorkflowId"]
    file = send(api, below)

    assert content(api.get(f"/files/content/{parent}/{file}")) == b"%PDF"
    assert api.get(f"/files/{parent}/{file}").json()["workflowId"] == below
    assert api.get(f"/files/{stranger}/{file}").status_code == 403
    assert api.get(f"/files/content/{stranger}/{file}").status_code == 403
    assert api.post(f"/files/{parent}/{id_of(begin(api, below))}/upload-complete").status_code == 403


def test_an_address_is_good_for_one_file_one_purpose_and_a_while(api, run, clock):
    made, other = begin(api, run), begin(api, run)
    address = path_of(made["uploadUrl"])

    assert api.send("PUT", address.replace(id_of(made), id_of(other)), b"x").status_code == 403
    assert api.get(address).status_code == 403
    assert api.send("PUT", address.replace("sig=", "sig=x"), b"x").status_code == 403
    assert api.send("PUT", f"{address}&part=u/1", b"x").status_code == 403
    clock.advance(seconds=DAY)
    assert api.send("PUT", address, b"x").status_code == 403


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"workflowId": ""}, 400),
        ({"workflowId": "none"}, 404),
        ({"workflowId": ["x"]}, 400),
        ({"workflowId": "RUN", "taskId": "none"}, 404),
        ({"workflowId": "RUN", "fileName": "x" * 256}, 400),
        ({"workflowId": "RUN", "contentType": "a\r\nSet-Cookie: b"}, 400),
        ([], 400),
    ],
)
def test_a_file_that_cannot_be_is_refused(api, run, body, status):
    if isinstance(body, dict) and body.get("workflowId") == "RUN":
        body = {**body, "workflowId": run}

    assert api.post("/files", body).status_code == status


def test_the_reply_to_a_file_without_a_run_names_the_field_that_is_missing(api):
    reply = api.post("/files", {"fileName": "a.pdf"})

    assert reply.json()["message"].startswith("workflowId is missing")


def test_a_file_above_the_limit_is_rejected_and_leaves_nothing(api, run, settings):
    settings.CONDUCTOR_FILE_MAX_BYTES = 10
    file = id_of(begin(api, run))
    upload = api.post(f"/files/{run}/{file}/multipart").json()["uploadId"]

    assert api.send("PUT", f"/files/content/{run}/{file}", b"x" * 11).status_code == 413
    assert api.send("PUT", f"/files/content/{run}/{file}?part={upload}/1", b"x" * 9).status_code == 204
    assert api.send("PUT", f"/files/content/{run}/{file}?part={upload}/2", b"x" * 9).status_code == 413
    assert api.send("PUT", f"/files/content/{run}/{file}?part={upload}/0", b"x").status_code == 400
    assert api.send("PUT", f"/files/content/{run}/{file}?part={upload}/x", b"x").status_code == 400

    api.delete(f"/files/{run}/{file}/multipart/{upload}")
    sweeps.prune_finished(10)
    assert stored_files() == []


def test_files_are_deleted_with_their_run(api, run):
    send(api, run)
    api.delete(f"/workflow/{run}")

    assert api.delete(f"/workflow/{run}/remove").status_code == 200
    sweeps.prune_finished(10)

    assert (stored_files(), FileHandle.objects.count(), StoredPayload.objects.count()) == ([], 0, 0)


def test_an_unfinished_upload_is_deleted_after_a_day(api, run, clock):
    made = begin(api, run)
    api.send("PUT", path_of(made["uploadUrl"]), b"half")
    whole = send(api, run)

    clock.advance(seconds=DAY)
    sweeps.prune_finished(10)

    assert [row.id for row in FileHandle.objects.all()] == [whole]
    assert (len(stored_files()), content(api.get(f"/files/content/{run}/{whole}"))) == (1, b"%PDF")


def test_a_server_without_a_place_for_payloads_has_no_files(api, run, settings):
    settings.CONDUCTOR_PAYLOAD_STORAGE = ""

    assert api.post("/files", {"workflowId": run}).status_code == 404


def test_the_number_of_files_of_a_run_is_limited(api, run, monkeypatch):
    monkeypatch.setattr("conductor_app.payloads.files.MAX_FILES_PER_RUN", 1)
    begin(api, run)

    assert api.post("/files", {"workflowId": run}).status_code == 400


def test_workers_of_an_open_task_can_upload_and_fetch_files(api, run, settings):
    settings.CONDUCTOR_API_ACCESS = "token"
    worker, stranger, reader = (
        create_application("worker"),
        create_application("stranger"),
        create_application("reader"),
    )
    grant_access(worker, "TASK_DEF", "pay", "EXECUTE")
    grant_access(stranger, "TASK_DEF", "ship", "EXECUTE")
    grant_access(reader, "WORKFLOW_DEF", "order", "READ")

    file = send(api_client_of(worker), run)

    assert content(api_client_of(worker).get(f"/files/content/{run}/{file}")) == b"%PDF"
    assert content(api_client_of(reader).get(f"/files/content/{run}/{file}")) == b"%PDF"
    assert api_client_of(reader).post("/files", {"workflowId": run}).status_code == 403
    assert api_client_of(stranger).post("/files", {"workflowId": run}).status_code == 403
    assert api_client_of(stranger).get(f"/files/{run}/{file}").status_code == 403
    assert api.get(f"/files/{run}/{file}").status_code == 401


def test_a_name_with_a_nul_opens_no_door(api, run, settings):
    settings.CONDUCTOR_API_ACCESS = "token"
    stranger = create_application("stranger")

    assert api_client_of(stranger).post("/files", {"workflowId": f"{run}\0"}).status_code == 403


def test_a_deleted_run_has_no_files(api, clock):
    child = {"name": "child", "tasks": [simple("pay")], "schemaVersion": 2}
    api.define(step_of("SUB_WORKFLOW", "sub", subWorkflowParam={"name": "child", "workflowDefinition": child}))
    parent = api.start()
    file = send(api, api.workflow(parent)["tasks"][0]["subWorkflowId"])

    Run.objects.filter(pk=parent).delete()

    assert api.get(f"/files/{parent}/{file}").status_code == 403
