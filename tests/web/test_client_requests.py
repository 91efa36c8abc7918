"""Requests of API clients skip the middleware for pages, with the same checks and headers."""

import pytest
from django.test import Client, RequestFactory

from conductor_app.tasks.api.tasks import Poll
from conductor_app.web.middleware import find_client_view

SECURITY_HEADERS = ("X-Content-Type-Options", "Referrer-Policy", "Cross-Origin-Opener-Policy", "X-Frame-Options")


@pytest.fixture
def browser(db):
    client = Client()
    client.cookies["theme"] = "dark"
    return client


@pytest.mark.parametrize("path", ["/api/tasks/poll/pay", "/api/queue/v1/ping", "/api/no/such/address"])
def test_responses_to_clients_and_to_browsers_have_the_same_security_headers(client, browser, path):
    answers = [each.get(path) for each in (client, browser)]

    assert answers[0].status_code == answers[1].status_code
    for name in SECURITY_HEADERS:
        assert answers[0].headers[name] == answers[1].headers[name]
    assert "frame-ancestors 'none'" in answers[0].headers["Content-Security-Policy"]
    assert answers[0].headers["X-Request-Id"]


def test_a_client_request_to_an_unknown_host_is_refused(client, db, settings):
    settings.ALLOWED_HOSTS = ["conductor.example.org"]

    answer = client.get("/api/tasks/poll/pay", headers={"host": "other.example.org"})

    assert answer.status_code == 400
    assert "ALLOWED_HOSTS" in answer.json()["message"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_views_of_both_apis_serve_clients_and_pages_do_not():
    def view_of(path):
        match = find_client_view(RequestFactory().get(path))
        return match and match.func.view_class

    assert view_of("/api/tasks/poll/pay") is Poll
    assert view_of("/api/queue/v1/ping") is not None
    assert view_of("/api/docs") is None
    assert view_of("/admin/") is None


def test_an_unexpected_error_of_a_view_has_security_headers(client, db, monkeypatch):
    def fail(*_args, **_kwargs):
        raise RuntimeError("broken")

    monkeypatch.setattr(Poll, "get", fail)
    client.raise_request_exception = False

    answer = client.get("/api/tasks/poll/pay")

    assert answer.status_code == 500
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
