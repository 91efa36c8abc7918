"""Error pages: not found, forbidden, and server errors."""

import io
import logging

import pytest
from django.db import OperationalError
from django.test import Client

from conductor_app.access.permissions import USED_PERMISSIONS, permission_words, smallest_role_with
from conductor_app.settings.logs import logging_config
from conductor_app.site.error_pages import server_error
from conductor_app.telemetry import log_context
from tests.access.two_teams import ALPHA, create_teams
from tests.access.users import client_with, logged_in_client

SIDEBAR = 'id="nav-sidebar"'
NOWHERE = "/admin/conductor/run/no-such-run/change/"


def page(response, status: int) -> str:
    assert response.status_code == status
    return response.content.decode()


def test_an_unknown_page_offers_navigation(operator):
    shown = page(operator.get(NOWHERE), 404)

    assert SIDEBAR in shown
    assert "No such run: no-such-run." in shown


@pytest.mark.parametrize("address", ["/admin/no/such/page/", "/nonsense"])
def test_an_unknown_address_is_named_as_such_without_texts_of_the_framework_or_of_retention(operator, address):
    shown = page(operator.get(address), 404)

    assert "No page has this address." in shown
    assert "Resolver404" not in shown and "RETENTION_DAYS" not in shown


@pytest.fixture
def log_lines(monkeypatch):
    """Return a function that returns the lines which the server has written to its log."""
    (handler,) = (each for each in logging.getLogger().handlers if each.get_name() == "stderr")
    stream = io.StringIO()
    # The stream of an earlier test may be closed, so it is not flushed.
    monkeypatch.setattr(handler, "stream", stream)
    return lambda: stream.getvalue().splitlines()


@pytest.mark.parametrize(
    ("host", "reason"), [("testserver", "Permission denied"), ("evil.example", "Invalid HTTP_HOST")]
)
def test_a_refused_request_is_logged_in_one_line_without_a_traceback(db, log_lines, settings, host, reason):
    client = client_with(name="viewer")
    settings.ALLOWED_HOSTS = ["testserver"]
    sign_in_lines = log_lines()

    client.get("/admin/queues/", headers={"host": host})

    [line] = log_lines()[len(sign_in_lines) :]
    assert reason in line


def test_a_request_with_too_many_fields_is_logged_without_a_traceback(client):
    """Any caller can send one, so that tracebacks of such requests could fill the log."""
    config = logging_config("INFO", "json")
    record_filter = config["filters"]["refused"]["()"]()
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append
    logging.getLogger("django.security").addHandler(handler)
    try:
        reply = client.post("/admin/login/", "a=1&" * 2_000, content_type="application/x-www-form-urlencoded")
    finally:
        logging.getLogger("django.security").removeHandler(handler)

    assert reply.status_code == 400
    assert "refused" in config["handlers"]["stderr"]["filters"]
    assert [(record_filter.filter(record), record.exc_info) for record in records] == [(True, None)]


def test_a_forbidden_page_says_in_words_what_is_missing_and_who_has_it(db):
    shown = page(client_with().get("/admin/queues/"), 403)

    assert SIDEBAR in shown
    text = " ".join(shown.split())
    assert "You need the permission to view tasks. Viewers have it. Ask an administrator, who gives access on" in text


def test_each_permission_has_words_and_a_role_that_has_it():
    for permission in sorted(USED_PERMISSIONS):
        words = permission_words(permission)
        assert words.isascii() and "_" not in words and words.count(" ") >= 1, permission
        assert smallest_role_with(permission) in ("Viewers", "Operators", "Authors", "Administrators")
    assert permission_words("conductor.change_run") == "change runs"
    assert smallest_role_with("conductor.change_run") == "Operators"
    assert permission_words("Nothing can be changed while you see the pages as bob.") == ""


@pytest.mark.django_db
def test_a_page_about_everything_says_that_a_permission_on_some_objects_is_not_enough():
    viewer = create_teams()[ALPHA].viewer

    shown = page(logged_in_client(viewer).get("/admin/retention/"), 403)

    text = " ".join(shown.split())
    assert "but only those that were granted to you. This requires it for all of them." in text
    assert "You need the permission" not in text


@pytest.mark.parametrize("headers", [{}, {"X-Requested-With": "fetch"}], ids=["outside the pages", "a part of a page"])
def test_only_full_pages_have_the_site_frame(operator, headers):
    shown = page(operator.get("/favicon.ico" if not headers else NOWHERE, headers=headers), 404)

    assert SIDEBAR not in shown


def test_a_failed_page_displays_the_request_id_of_the_log(operator):
    request = operator.get("/admin/status-bar/").wsgi_request

    with log_context.log_context("look", request_id="asked-1"):
        shown = page(server_error(request), 500)

    assert SIDEBAR in shown
    assert "<pre>asked-1</pre>" in shown


def test_a_plain_page_is_displayed_if_the_site_frame_fails(operator):
    request = operator.get("/admin/status-bar/").wsgi_request
    del request.session  # whose table can be read as little as the others

    shown = page(server_error(request), 500)

    assert SIDEBAR not in shown
    assert "This page failed to load" in shown


def test_an_expired_form_states_that_no_change_was_made(operator):
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = operator.cookies

    shown = page(strict.post("/admin/preferences/"), 403)

    assert SIDEBAR in shown
    assert "No change was made." in shown


def test_a_name_that_the_server_does_not_answer_to_is_named(client, settings):
    settings.ALLOWED_HOSTS = ["conductor.example.org"]

    answer = client.get("/admin/", headers={"host": "elsewhere.example.org"})

    assert answer.status_code == 400
    assert "The host name elsewhere.example.org is not allowed" in answer.content.decode()


@pytest.mark.django_db
def test_a_page_whose_database_does_not_respond_can_be_requested_again(rf):
    try:
        raise OperationalError("the server closed the connection unexpectedly")
    except OperationalError:
        reply = server_error(rf.get("/admin/"))

    shown = page(reply, 503)
    assert "The database did not respond." in shown and "closed the connection" not in shown
    assert reply.headers["Retry-After"] == "1"
