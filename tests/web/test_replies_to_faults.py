"""Replies to requests that meet a fault of the moment: both APIs, the pages and the agent tools say what to repeat."""

import logging

import psycopg
import pytest
from django.db import OperationalError
from django.test import Client

from conductor_app.db.transient_errors import describe_transient, is_transient
from tests.taskcluster.conftest import Queue, new_id

MESSAGES = {
    "OperationalError": "The database did not respond.",
    "InterfaceError": "The database did not respond.",
    "InternalError": "The database accepts no changes at present: it is read-only.",
    "OSError": "The disk of the server is full.",
    "MemoryError": "The server is out of memory.",
    "StorageUnavailable": "The storage of payloads did not respond.",
    "ScriptsUnavailable": "No helper process could evaluate a script.",
}
"""The beginning of the message for each kind of error."""


@pytest.fixture
def web() -> Client:
    return Client(raise_request_exception=False)


@pytest.mark.parametrize(("kind", "message"), MESSAGES.items())
def test_a_request_of_conductors_api_is_retryable_and_says_what_failed(faults, web, kind, message):
    for fault in faults.at_each_call(kind, is_anywhere=True):
        with fault:
            reply = web.get("/api/metadata/workflow/none")
        if fault.site:
            assert (reply.status_code, reply.headers["Retry-After"]) == (503, "1"), str(fault)
            assert reply.json()["retryable"] is True
            assert reply.json()["message"] == f"{message} Send the request again."

    assert reply.status_code == 404


@pytest.mark.parametrize(("kind", "message"), MESSAGES.items())
def test_a_method_of_taskcluster_is_retryable_and_says_what_failed(faults, clock, kind, message):
    queue, id = Queue(clock), new_id()
    for fault in faults.at_each_call(kind, is_anywhere=True):
        with fault:
            reply = queue.get(f"/task/{id}")
        if fault.site:
            assert (reply.status_code, reply.headers["Retry-After"]) == (503, "1"), str(fault)
            assert reply.json()["message"].startswith(f"{message} Send the request again.")

    assert reply.status_code == 404


@pytest.mark.parametrize("kind", MESSAGES)
def test_a_page_can_be_requested_again(faults, web, admin_user, kind):
    web.force_login(admin_user)
    fault = next(faults.at_each_call(kind, is_anywhere=True))

    with fault:
        reply = web.get("/admin/")

    assert (reply.status_code, reply.headers["Retry-After"]) == (503, "1")
    assert web.get("/admin/").status_code == 200


def test_a_call_of_the_agent_tools_can_be_sent_again(faults, web, settings):
    settings.CONDUCTOR_API_ACCESS = "token"
    fault = next(faults.at_each_call("OperationalError"))

    with fault:
        reply = web.post("/mcp", b"{}", content_type="application/json", headers={"authorization": "Basic YTpi"})

    assert (reply.status_code, reply.headers["Retry-After"]) == (503, "1")
    assert reply.content == b"The database did not respond. Send the request again."


def test_an_outage_is_logged_once(faults, web, caplog, monkeypatch):
    # Each configuration of the logs adds a filter.
    for repetitions in logging.getLogger("conductor_app.web.client_views").filters:
        monkeypatch.setattr(repetitions, "_logged_at", {})
    for fault in (next(faults.at_each_call("OperationalError")) for _ in range(3)):
        with fault, caplog.at_level(logging.ERROR):
            assert web.get("/api/metadata/workflow/none").status_code == 503

    lines = [line for line in caplog.records if line.name == "conductor_app.web.client_views"]
    assert [line.getMessage() for line in lines] == [
        "Requests fail: The database did not respond. OperationalError: canceling statement due to statement timeout"
    ]


def test_a_full_disk_of_postgresql_is_named():
    error = OperationalError("could not extend file")
    error.__cause__ = psycopg.errors.DiskFull("could not extend file")

    assert is_transient(error)
    assert describe_transient(error) == "The disk of the database is full."
