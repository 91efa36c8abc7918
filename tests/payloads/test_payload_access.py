"""Payloads are for those who use them: an upload needs a right, a download follows from runs, and both count."""

from urllib.parse import urlsplit

import pytest

from conductor_app.access.models import Application
from conductor_app.access.quotas import save_quotas
from conductor_app.payloads.models import StoredPayload
from conductor_app.processes.sweeps import prune_finished
from conductor_app.runs.commands import control
from conductor_app.runs.models import Run
from tests.access.users import api_client_of, create_application, grant_access
from tests.api_fixtures import Api
from tests.builders import simple

pytestmark = pytest.mark.usefixtures("with_logins")
MIB = 1024 * 1024


def application(name, *grants):
    made = create_application(name)
    for target_type, target_id, access in grants:
        grant_access(made, target_type, target_id, access)
    return api_client_of(made)


@pytest.fixture
def admin(clock):
    made = api_client_of(create_application("admin", "ADMIN"))
    made.define(simple("pay", inputParameters={"text": "${workflow.input.text}"}))
    return made


@pytest.fixture
def starter(admin):
    """Return an application that may start the workflow, and read nothing."""
    return application("starter", ("WORKFLOW_DEF", "order", "EXECUTE"))


@pytest.fixture
def worker(admin):
    return application("worker", ("TASK_DEF", "pay", "EXECUTE"))


@pytest.fixture
def other_api(admin):
    """Return an application with rights on other objects only."""
    return application("other", ("WORKFLOW_DEF", "else", "EXECUTE"), ("WORKFLOW_DEF", "else", "READ"))


def location(api, operation="WRITE", path="", kind="WORKFLOW_INPUT"):
    query = {"path": path, "operation": operation, "payloadType": kind}
    return api.client.get("/api/workflow/externalstoragelocation", query)


def put(api, uri, content):
    parts = urlsplit(uri)
    return api.put(f"{parts.path.removeprefix('/api')}?{parts.query}", content)


def upload(api, content=b'{"text": "a"}'):
    found = location(api).json()
    assert put(api, found["uri"], content).status_code == 200
    return found["path"]


def start(api, path):
    return api.post("/workflow", {"name": "order", "externalInputPayloadStoragePath": path})


def can_read(api, path):
    return location(api, "READ", path).status_code == 200


def test_a_token_without_a_right_gets_no_address_for_an_upload(admin):
    reply = location(application("nothing"))

    assert reply.status_code == 403
    assert not StoredPayload.objects.exists()


def test_a_starter_a_worker_and_a_worker_of_a_domain_may_upload(starter, worker):
    domain = application("mobile", ("DOMAIN", "mobile", "EXECUTE"))

    assert [location(api).status_code for api in (starter, worker, domain)] == [200, 200, 200]


def test_an_unattached_upload_is_readable_for_its_uploader_and_administrators_only(admin, starter, worker, other_api):
    path = upload(starter)

    assert [can_read(api, path) for api in (starter, admin, worker, other_api)] == [True, True, False, False]


def test_the_payload_of_a_run_is_readable_for_its_readers_and_workers(admin, starter, worker, other_api, settings):
    settings.CONDUCTOR_TASK_PAYLOAD_SOFT_BYTES = 100
    reader = application("reader", ("WORKFLOW_DEF", "ord*", "READ"))
    path = upload(starter, b'{"text": "%s"}' % (b"x" * 500))
    assert start(starter, path).status_code == 200
    [task] = worker.poll("pay")

    assert [can_read(api, path) for api in (reader, starter, worker, other_api)] == [True, False, False, False]
    task_input = task["externalInputPayloadStoragePath"]
    assert [can_read(api, task_input) for api in (reader, starter, worker, other_api)] == [True, False, True, False]
    worker.report(task)
    assert not can_read(worker, task_input)


def test_an_unknown_path_is_refused_like_that_of_another_caller(other_api):
    path = "workflow/input/5a9c2c26-76b6-4bd9-8a6c-5a6b4dd9f2d5.json"

    reply = location(other_api, "READ", path)

    assert (reply.status_code, reply.json()["message"]) == (403, f"other has no access to the payload '{path}'.")


def test_a_run_does_not_start_with_the_upload_of_another_caller(admin, starter, other_api):
    grant_access_to_start()
    path = upload(starter)

    reply = start(other_api, path)

    assert (reply.status_code, Run.objects.count()) == (403, 0)
    assert start(starter, path).status_code == 200
    # Now a run uses it, which the other application cannot read.
    assert start(other_api, path).status_code == 403
    assert start(starter, path).status_code == 200


def grant_access_to_start():
    grant_access(Application.objects.get(name="other"), "WORKFLOW_DEF", "order", "EXECUTE")


def test_a_worker_reports_its_own_upload_and_not_that_of_another_caller(starter, worker):
    theirs, own = upload(starter), upload(worker)
    starter.start()
    [task] = worker.poll("pay")

    refused = worker.report(task, outputData=None, externalOutputPayloadStoragePath=theirs)

    assert refused.status_code == 403
    assert worker.report(task, outputData=None, externalOutputPayloadStoragePath=own).status_code == 200


def test_unattached_uploads_of_a_caller_are_limited_without_any_quota(starter, worker, settings):
    settings.CONDUCTOR_UNATTACHED_UPLOAD_MAX_BYTES = 3 * MIB
    settings.CONDUCTOR_WORKFLOW_PAYLOAD_MAX_BYTES = MIB
    large = b'{"text": "%s"}' % (b"x" * (MIB - 100))
    paths = [upload(starter, large) for _ in range(3)]
    upload(starter)

    refused = location(starter)

    assert (refused.status_code, refused["Retry-After"], refused.json()["retryable"]) == (429, "60", True)
    assert location(worker).status_code == 200
    # An attached payload is no longer counted.
    assert start(starter, paths[0]).status_code == 200
    assert location(starter).status_code == 200


def test_an_address_counts_as_a_payload_of_the_maximum_size_until_it_is_used_or_expires(starter, clock, settings):
    settings.CONDUCTOR_UNATTACHED_UPLOAD_MAX_BYTES = 3 * MIB
    settings.CONDUCTOR_WORKFLOW_PAYLOAD_MAX_BYTES = MIB
    assert [location(starter).status_code for _ in range(4)] == [200, 200, 200, 429]

    clock.advance(seconds=21 * 60)
    prune_finished(10)

    assert location(starter).status_code == 200


def test_an_upload_that_began_in_time_is_kept_for_a_day(starter, clock):
    path = upload(starter)

    clock.advance(seconds=23 * 3_600)
    prune_finished(10)
    assert StoredPayload.objects.filter(pk=path).exists()
    clock.advance(seconds=2 * 3_600)
    prune_finished(10)
    assert not StoredPayload.objects.exists()


def test_many_small_uploads_count_as_their_rows_do(starter, settings):
    settings.CONDUCTOR_UNATTACHED_UPLOAD_MAX_BYTES = 3 * 64 * 1024

    for _ in range(3):
        upload(starter)

    assert location(starter).status_code == 429


def test_stored_bytes_count_payloads_of_runs_too(starter, admin):
    save_quotas("application", "starter", {"stored_bytes": 1_000}, "olga")
    path = upload(starter, b'{"text": "%s"}' % (b"x" * 1_000))
    run_id = start(starter, path).content.decode()
    assert location(starter).status_code == 429
    assert location(admin).status_code == 200

    control.remove_run(run_id, "olga", archive=False)
    prune_finished(10)

    assert location(starter).status_code == 200


def test_files_of_runs_count_for_the_caller_who_created_them(starter):
    save_quotas("application", "starter", {"stored_bytes": 10}, "olga")
    run_id = starter.start()
    handle = starter.post("/files", {"workflowId": run_id, "fileName": "a.txt"}).json()
    assert put(starter, handle["uploadUrl"], b"x" * 11).status_code == 204

    refused = starter.post("/files", {"workflowId": run_id, "fileName": "b.txt"})

    assert refused.status_code == 429
    assert refused.json()["message"] == "The caller's quota of 10 stored bytes is used up."


def test_a_payload_and_its_path_are_free_on_a_server_without_logins(clock, settings):
    settings.CONDUCTOR_API_ACCESS = "open"
    api = Api()
    api.define(simple("pay"))

    path = upload(api)

    assert can_read(api, path) and start(api, path).status_code == 200
