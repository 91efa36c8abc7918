"""Browser sessions at the API: no link of another site changes anything with the cookies of a user."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, get_resolver

from conductor_app.web.api.view import ConductorView
from tests.builders import definition, step
from tests.scenario import register_definitions

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
CHANGING_GETS = (
    "/api/tasks/poll/a?workerid=w",
    "/api/tasks/poll/batch/a?workerid=w",
    "/api/workflow/execute/order",
    "/api/scheduler/admin/pause",
    "/api/scheduler/admin/resume",
    "/api/scheduler/admin/requeue",
    "/api/scheduler/schedules/nightly/pause",
    "/api/scheduler/schedules/nightly/resume",
    "/api/secrets/clearLocalCache",
    "/api/workflow/externalstoragelocation?path=a&operation=WRITE&payloadType=WORKFLOW_INPUT",
)


@pytest.fixture(autouse=True)
def token_access(settings):
    settings.CONDUCTOR_API_ACCESS = "token"


@pytest.fixture
def browser() -> Client:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(User.objects.create_superuser("ann"))
    return browser


def get_addresses(patterns: Any, prefix: str = "") -> Iterator[str]:
    """Yield the path pattern of each GET operation of the Conductor API."""
    for pattern in patterns:
        if not isinstance(pattern, URLPattern):
            yield from get_addresses(pattern.url_patterns, prefix + str(pattern.pattern))
            continue
        view = getattr(pattern.callback, "cls", None)
        if view and issubclass(view, ConductorView) and hasattr(view, "get"):
            yield "/" + prefix + str(pattern.pattern)


@pytest.mark.parametrize("address", CHANGING_GETS)
def test_a_get_that_changes_state_requires_a_csrf_token(browser, address):
    with CaptureQueriesContext(connection) as queries:
        reply = browser.get(address)

    assert (reply.status_code, reply.json()["message"][:12]) == (403, "CSRF Failed:")
    assert not [each["sql"] for each in queries if re.match("INSERT|UPDATE|DELETE", each["sql"])]


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "null", "x"])
def test_an_origin_that_is_no_address_counts_as_another_site(browser, origin):
    reply = browser.post("/api/workflow/order", headers={"Origin": origin})

    assert (reply.status_code, "other sites" in reply.json()["message"]) == (403, True)


@pytest.mark.parametrize(
    "content_type",
    ["multipart/form-data", "multipart/form-data; boundary=é", "application/x-www-form-urlencoded; charset=latin-1"],
)
def test_a_form_that_cannot_be_read_is_refused(browser, content_type):
    """The check of the CSRF token reads forms."""
    browser.get("/admin/password_change/")

    reply = browser.generic("POST", "/api/workflow/order", b"a=b", content_type=content_type)

    assert reply.status_code == 400


def test_a_page_of_this_site_may_send_it_with_its_token(browser):
    register_definitions(definition(step("a"), name="order"))
    browser.get("/admin/password_change/")
    headers = {"X-CSRFToken": browser.cookies["csrftoken"].value, "Sec-Fetch-Site": "same-origin"}

    assert browser.get("/api/scheduler/admin/pause", headers=headers).status_code == 200
    assert browser.get("/api/scheduler/admin/resume", headers=headers).status_code == 200


@pytest.mark.parametrize("address", sorted(set(get_addresses(get_resolver().url_patterns))))
def test_no_other_get_with_a_cookie_writes_to_the_database(browser, address):
    path = re.sub(r"<(?:\w+:)?(\w+)>", "x", address)

    with CaptureQueriesContext(connection) as queries:
        browser.get(path)

    assert not [each["sql"] for each in queries if re.match("INSERT|UPDATE|DELETE", each["sql"])]


def test_a_link_of_another_site_reads_nothing(browser):
    reply = browser.get("/api/metadata/taskdefs", headers={"Sec-Fetch-Site": "cross-site"})

    assert (reply.status_code, reply.json()["message"]) == (403, "Requests from pages of other sites are not allowed.")


@pytest.mark.parametrize("address", ["/api/docs", "/admin/", "/admin/login/", "/health", "/api/docs.js"])
def test_pages_answer_a_client_without_cookies(live_server, address):
    import requests

    reply = requests.get(live_server.url + address, timeout=10)

    assert reply.status_code == 200
