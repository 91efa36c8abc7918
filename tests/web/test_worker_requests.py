"""Requests of workers pass by Django's handler: their replies are the same, and all others go through it."""

import re
from io import BytesIO
from typing import Any

import pytest
from django.core.wsgi import get_wsgi_application
from django.db import connection

from conductor_app.tasks.api.tasks import BatchPoll
from conductor_app.web.middleware import WorkerRequests, find_worker_view
from conductor_app.web.waiting_requests import ACCEPTS_WAITING_KEY
from tests.access.users import api_client_of, create_application

REPORT = b'{"workflowInstanceId": "none", "taskId": "none", "status": "COMPLETED"}'
JSON = {"CONTENT_TYPE": "application/json"}
POLL, BATCH, REPORTS, NEXT = "/api/tasks/poll/pay", "/api/tasks/poll/batch/pay", "/api/tasks", "/api/tasks/update-v2"


def environ(method: str, path: str, body: bytes = b"", **headers: str) -> dict[str, Any]:
    """Return the WSGI environment of a request. `path` may have a query."""
    path, _, query = path.partition("?")
    return {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "SERVER_NAME": "testserver",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "testserver",
        "HTTP_X_REQUEST_ID": "the-same",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.url_scheme": "http",
        "wsgi.input": BytesIO(body),
        **headers,
    }


def reply(application, given: dict[str, Any]) -> tuple[str, dict[str, str], bytes]:
    """Return the status line, the headers and the body of a reply."""
    heads: list[tuple[str, list[tuple[str, str]]]] = []
    response = application(given, lambda status, headers: heads.append((status, headers)))
    body = b"".join(response)
    response.close()
    [(status, headers)] = heads
    assert len({name.lower() for name, _ in headers}) == len(headers)
    return status, dict(headers), body


def not_for_workers(environ, start_response):
    raise AssertionError("The request went through Django's handler.")


@pytest.fixture
def django():
    return get_wsgi_application()


REQUESTS = [
    ("GET", f"{POLL}?workerid=ann"),
    ("GET", f"{BATCH}?workerid=ann&count=2&timeout=0"),
    ("GET", f"{BATCH}?count=0"),
    ("GET", f"{BATCH}?count=none"),
    ("GET", f"{BATCH}?timeout=6000"),
    ("HEAD", f"{BATCH}?timeout=0"),
    ("GET", "/api/tasks/poll/batch/\xc3\xa4?timeout=0"),
    ("GET", "/api/tasks/poll/batch/\xff?timeout=0"),
    ("GET", "/api/tasks/poll/batch/a\0b?timeout=0"),
    ("POST", POLL),
    ("OPTIONS", BATCH),
    ("TRACE", REPORTS),
    ("GET", NEXT),
    ("POST", REPORTS, REPORT, JSON),
    ("POST", NEXT, REPORT, JSON),
    ("POST", NEXT, b"", JSON),
    ("POST", NEXT, b"{", JSON),
    ("POST", NEXT, b"[]", JSON),
    ("POST", NEXT, b'{"status": "DONE"}', JSON),
    ("POST", NEXT, REPORT, {"CONTENT_TYPE": "application/json; charset=none"}),
    ("POST", NEXT, REPORT, {**JSON, "HTTP_CONTENT_ENCODING": "gzip"}),
    ("POST", NEXT, REPORT, {**JSON, "HTTP_CONTENT_ENCODING": "none"}),
    ("POST", NEXT, REPORT, {**JSON, "CONTENT_LENGTH": "none"}),
    ("POST", NEXT, REPORT, {**JSON, "CONTENT_LENGTH": "99999999999"}),
    ("POST", NEXT, REPORT, {**JSON, "CONTENT_LENGTH": "500"}),
    ("GET", POLL, b"", {"HTTP_HOST": "other.example"}),
    ("GET", POLL, b"", {"HTTP_ORIGIN": "https://other.example"}),
    ("GET", POLL, b"", {"HTTP_SEC_FETCH_SITE": "cross-site"}),
    ("GET", POLL, b"", {"HTTP_X_AUTHORIZATION": "none"}),
    ("GET", POLL, b"", {"HTTP_X_FORWARDED_PROTO": "https"}),
    ("GET", POLL, b"", {"HTTP_TRACEPARENT": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda each: " ".join(map(repr, each)))
@pytest.mark.parametrize("access", ["open", "token"])
def test_the_reply_is_that_of_django(transactional_db, clock, settings, django, request_, access):
    settings.CONDUCTOR_API_ACCESS = access
    *arguments, headers = request_ if isinstance(request_[-1], dict) else (*request_, {})

    expected = reply(django, environ(*arguments, **headers))

    assert reply(WorkerRequests(not_for_workers), environ(*arguments, **headers)) == expected
    assert expected[1]["X-Request-Id"] == "the-same"


@pytest.mark.parametrize("secure", ["http", "https"])
def test_the_headers_are_those_of_django_also_with_https(transactional_db, settings, secure):
    settings.SECURE_HSTS_SECONDS, settings.SECURE_SSL_REDIRECT = 100, True
    settings.SECURE_REDIRECT_EXEMPT = [r"^(?!admin(/|$))"]
    given = {"wsgi.url_scheme": secure}

    expected = reply(get_wsgi_application(), environ("GET", POLL, **given))

    assert reply(WorkerRequests(not_for_workers), environ("GET", POLL, **given)) == expected
    assert ("Strict-Transport-Security" in expected[1]) == (secure == "https")


def test_a_token_is_checked(transactional_db, settings, django):
    settings.CONDUCTOR_API_ACCESS = "token"
    given = {"HTTP_X_AUTHORIZATION": api_client_of(create_application("shop")).client.defaults["HTTP_X_AUTHORIZATION"]}

    expected = reply(django, environ("GET", POLL, **given))

    assert expected[0].startswith("403")
    assert reply(WorkerRequests(not_for_workers), environ("GET", POLL, **given)) == expected


def test_an_unexpected_error_gets_the_same_reply(transactional_db, django, monkeypatch):
    monkeypatch.setattr(BatchPoll, "get", lambda self, request, task_type: 1 / 0)

    expected = reply(django, environ("GET", BATCH))

    assert expected[0].startswith("500")
    assert reply(WorkerRequests(not_for_workers), environ("GET", BATCH)) == expected


def test_a_request_without_an_id_gets_one(transactional_db):
    _, headers, _ = reply(WorkerRequests(not_for_workers), environ("GET", POLL, HTTP_X_REQUEST_ID=""))

    assert re.fullmatch("[0-9a-f]{32}", headers["X-Request-Id"])


def test_a_poll_can_wait_without_a_thread(transactional_db):
    given = environ("GET", BATCH) | {ACCEPTS_WAITING_KEY: True}

    waiting = WorkerRequests(not_for_workers)(given, lambda status, headers: None)

    assert waiting.seconds > 0
    waiting.abandon()


@pytest.mark.parametrize(
    "given",
    [
        environ("GET", POLL, HTTP_COOKIE="a=b"),
        environ("GET", "/api/tasks/"),
        environ("GET", "/api/tasks/none"),
        environ("GET", "/api/tasks/poll/a/b"),
        environ("GET", "/api/tasks/queue/all"),
        environ("POST", "/api/workflow/order"),
        environ("GET", "/admin/"),
    ],
    ids=lambda given: given["PATH_INFO"],
)
def test_other_requests_go_through_django(given):
    assert find_worker_view(given) is None
    with pytest.raises(AssertionError, match="handler"):
        WorkerRequests(not_for_workers)(given, lambda status, headers: None)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="A broken connection is one to PostgreSQL.")
def test_a_broken_connection_is_replaced_after_the_reply(transactional_db):
    application, given = WorkerRequests(not_for_workers), environ("GET", f"{BATCH}?timeout=0")
    reply(application, given)
    connection.ensure_connection()
    connection.connection.close()
    connection.errors_occurred = True

    assert reply(application, environ("GET", f"{BATCH}?timeout=0"))[0] == "200 OK"
