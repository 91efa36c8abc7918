"""Hostile requests in each run of the tests, others on each database. `make hostile` sends more of them."""

from urllib.parse import urlsplit

import pytest
from django.conf import settings as django_settings
from django.db import connection

from qa.hostile.attack import attack, find_failure
from qa.hostile.connections import Reply
from qa.hostile.endpoints import silent_warnings
from qa.hostile.hostile_request import Request
from qa.hostile.objects import SECRET_VALUE
from qa.hostile.verdicts import Report, violation_of
from tests.clients.live_server import running_server

SEEDS, REQUESTS, CONNECTIONS = {"sqlite": 2026, "postgresql": 2027}, 1_500, 4


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_hostile_requests_cause_no_internal_error(settings):
    settings.CONDUCTOR_API_ACCESS = "token"
    report = Report(server_secrets=[django_settings.SECRET_KEY.encode()])

    with silent_warnings(), running_server() as url:
        port = int(str(urlsplit(url).port))
        attack(port, SEEDS[connection.vendor], range(REQUESTS), CONNECTIONS, report, has_framings=False, form_share=6)
        failure = find_failure(port)

    assert [f"{what}\n{requests[0]}" for what, requests in report.violations.items()] == []
    assert failure is None
    assert sum(counter.total() for counter in report.counts.values()) == REQUESTS


def request(caller: str = "token ADMIN", template: str = "/api/workflow", **fields) -> Request:
    return Request(1, "Conductor API", template, caller, "GET", b"GET / HTTP/1.1\r\n\r\n", **fields)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(500), "status 500"),
        (Reply(503), "status 503"),
        (Reply(0), "no reply"),
        (Reply(-1), "closed without a reply"),
        (Reply(200, b'File "/x/site-packages/y.py"'), "site-packages"),
        (Reply(200, b"key-of-the-server"), "key-of-the-server"),
        (Reply(200, SECRET_VALUE.encode()), "the value of a secret"),
        (Reply(200, b"", "Location: /\nX-Injected: 1\n"), "written a header"),
    ],
)
def test_a_reply_that_must_not_be_is_a_violation(reply, words):
    assert words in str(violation_of(request(), reply, [b"key-of-the-server"]))


@pytest.mark.parametrize("reply", [Reply(200), Reply(404), Reply(503, b"", "Retry-After: 1\n")])
def test_other_replies_are_none(reply):
    assert violation_of(request(), reply, [b"key-of-the-server"]) is None


def test_a_poll_may_wait():
    assert violation_of(request(can_wait=True), Reply(0)) is None


def test_an_administrator_may_read_a_secret_where_secrets_are_read():
    reply = Reply(200, SECRET_VALUE.encode())

    assert violation_of(request(template="/api/secrets/<str:name>"), reply) is None
    assert violation_of(request("token USER", "/api/secrets/<str:name>"), reply) is not None
