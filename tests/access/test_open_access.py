"""A server without authentication: local requests may do everything, pages of other sites nothing."""

import pytest
from django.test import Client

FOREIGN = {
    "another site": {"Origin": "https://evil.example"},
    "the same host on another port": {"Origin": "http://testserver:3000"},
    "a page without an origin": {"Origin": "null"},
    "what a browser calls cross-site": {"Sec-Fetch-Site": "cross-site"},
}


@pytest.mark.parametrize("case", FOREIGN)
def test_pages_of_other_sites_are_refused(db, case):
    reply = Client(headers=FOREIGN[case]).post("/api/workflow", {}, content_type="application/json")

    assert (reply.status_code, reply.json()["status"]) == (403, 403)


OWN = {
    "a client library": {},
    "our own page": {"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"},
    "an address typed in": {"Sec-Fetch-Site": "none"},
}


@pytest.mark.parametrize("case", OWN)
def test_without_keys_every_caller_is_accepted(db, case):
    assert Client(headers=OWN[case]).get("/api/metadata/taskdefs").status_code == 200


def test_no_tokens_are_issued_so_clients_continue_without_one(db):
    reply = Client().post("/api/token", {"keyId": "a", "keySecret": "b"}, content_type="application/json")

    assert (reply.status_code, reply.json()["status"]) == (404, 404)
