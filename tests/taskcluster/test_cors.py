"""Cross-origin requests: pages may send signed requests to a server with authentication, and none to an open server."""

import pytest

from .conftest import new_id

ELSEWHERE = {"Origin": "https://ui.example.org"}


@pytest.fixture
def asking(queue, settings):
    """Return a server with authentication."""
    settings.CONDUCTOR_API_ACCESS = "token"
    return queue.client


def test_a_cors_preflight_is_accepted(asking):
    reply = asking.options("/api/queue/v1/tasks", headers=ELSEWHERE)

    assert reply.status_code == 204
    assert reply["Access-Control-Allow-Origin"] == "*"
    assert "Authorization" in reply["Access-Control-Allow-Headers"]
    assert reply["Access-Control-Max-Age"] == "900"


def test_a_page_reads_replies_and_refusals(asking):
    for path, status in (("/ping", 200), (f"/task/{new_id()}", 403), ("/nowhere", 404)):
        reply = asking.get(f"/api/queue/v1{path}", headers=ELSEWHERE)
        assert (reply.status_code, reply["Access-Control-Allow-Origin"]) == (status, "*")


def test_an_open_server_lets_no_other_page(queue):
    reply = queue.client.get(f"/api/queue/v1/task/{new_id()}", headers=ELSEWHERE)

    assert reply.status_code == 403
    assert "Access-Control-Allow-Origin" not in reply
