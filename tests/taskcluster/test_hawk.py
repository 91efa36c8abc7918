"""Request signatures, compared with those of the official client and its library (taskcluster §6.1, §6.4)."""

import json

import mohawk
import pytest

from conductor_app.core.errors import Unauthenticated
from conductor_app.taskcluster.auth import signatures as hawk
from conductor_app.taskcluster.auth.signatures import (
    HawkRequest,
    parse_authorization,
    parse_bewit,
    verify_payload,
    verify_signature,
)

KEY = "n1kRt0kenForVectorsOnly000"
CLAIM = HawkRequest("POST", "/api/queue/v1/claim-work/proj%2Flinux", "localhost", "8000")
NOW = 1_800_000_000_000
BARE = "r0/iizVEyWTNC4uLqKU6Dj+/Do+S9IYIZ8FNOUgn0zY="
WITH_BODY = "HnnfqcTP/VFDw+Q6tPnC/rv/mGfeBWQn0oOvGyAMG5M="
HASH = "98z+6IqK0iGUHMbZGZplxoMHFRAheEs9QOjEWkgOais="
BEWIT = "ZGVtb1wxODAwMDAwOTAwXEtja0RNSHBMTW5UUDFJZVc0aXd3L2Yza3REd05sYUtVNXkxN3RiNGxMaVU9XA"  # fmt: skip
ARTIFACTS = "/api/queue/v1/task/x/artifacts/public%2Fa"


def header(mac=BARE, ts=NOW // 1000, **others):
    said = {"id": "demo", "ts": str(ts), "nonce": "abc123", **others, "mac": mac}
    return parse_authorization("Hawk " + ", ".join(f'{name}="{value}"' for name, value in said.items()))


def test_a_request_that_was_signed_is_verified():
    verify_signature(header(), CLAIM, KEY, NOW)
    verify_signature(header(WITH_BODY, hash=HASH, ext="e30="), CLAIM, KEY, NOW)


OTHERS = {
    "another method": (HawkRequest("PUT", CLAIM.resource, "localhost", "8000"), KEY),
    "a decoded address": (HawkRequest("POST", "/api/queue/v1/claim-work/proj/linux", "localhost", "8000"), KEY),
    "another host": (HawkRequest("POST", CLAIM.resource, "example.org", "8000"), KEY),
    "another port": (HawkRequest("POST", CLAIM.resource, "localhost", "443"), KEY),
    "another key": (CLAIM, KEY + "x"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_the_signature_of_one_request_is_not_good_for(case):
    with pytest.raises(Unauthenticated):
        verify_signature(header(), *OTHERS[case], NOW)


@pytest.mark.parametrize("minutes", [-14, 14])
def test_clocks_may_differ_by_a_quarter_of_an_hour(minutes):
    verify_signature(header(), CLAIM, KEY, NOW + minutes * 60_000)


@pytest.mark.parametrize("minutes", [-16, 16])
def test_clocks_may_not_differ_by_more(minutes):
    with pytest.raises(Unauthenticated, match="clock"):
        verify_signature(header(), CLAIM, KEY, NOW + minutes * 60_000)


def test_a_body_that_was_signed_may_not_be_another():
    signed = header(WITH_BODY, hash=HASH, ext="e30=")

    verify_payload(signed, "application/json; charset=utf-8", b'{"tasks":1}')
    for content_type, body in (("application/json", b'{"tasks":2}'), ("text/plain", b'{"tasks":1}')):
        with pytest.raises(Unauthenticated):
            verify_payload(signed, content_type, body)


def test_a_body_that_was_not_signed_is_accepted():
    verify_payload(header(), "application/json", b"anything")


def test_an_empty_body_has_the_hash_that_clients_send():
    assert hawk.payload_hash("", b"") == "B0weSUXsMcb5UhL41FZbrUJCAotzSI3HawE1NPLRUz8="


def test_a_request_that_the_clients_library_signs_is_verified():
    body = json.dumps({"tasks": 4, "workerId": "é"}).encode()
    url = "https://tc.example.org/api/queue/v1/claim-work/a%2Fb?x=%20y&z"
    credentials = {"id": "me/you@x|y", "key": KEY, "algorithm": "sha256"}
    sender = mohawk.Sender(credentials, url, "POST", content=body, content_type="application/json", ext="e30=")
    asked = HawkRequest("post", "/api/queue/v1/claim-work/a%2Fb?x=%20y&z", "TC.example.org", "443")

    signed = parse_authorization(sender.request_header)

    verify_signature(signed, asked, KEY, int(signed.ts) * 1000)
    verify_payload(signed, "application/json", body)
    assert (signed.id, signed.ext) == ("me/you@x|y", "e30=")


UNREADABLE = {
    "another scheme": 'Bearer id="a", ts="1", nonce="n", mac="m"',
    "nothing": "Hawk",
    "no mac": 'Hawk id="a", ts="1", nonce="n"',
    "an empty id": 'Hawk id="", ts="1", nonce="n", mac="m"',
    "a quote in a value": 'Hawk id="a"b", ts="1", nonce="n", mac="m"',
    "one twice": 'Hawk id="a", id="b", ts="1", nonce="n", mac="m"',
    "one that nobody knows": 'Hawk id="a", ts="1", nonce="n", mac="m", key="k"',
    "a value without quotes": "Hawk id=a, ts=1, nonce=n, mac=m",
    "a line break": 'Hawk id="a\nb", ts="1", nonce="n", mac="m"',
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_header_is_not_understood(case):
    with pytest.raises(Unauthenticated):
        parse_authorization(UNREADABLE[case])


@pytest.mark.parametrize("ts", ["", "-1", "1e9", "９", "1" * 400])
def test_the_timestamp_of_a_signature_is_in_seconds(ts):
    with pytest.raises(Unauthenticated):
        signed = header(ts=ts)
        verify_signature(header(hawk.compute_mac(signed, CLAIM, KEY), ts=ts), CLAIM, KEY, NOW)


PLACES = {
    "last": f"{ARTIFACTS}?limit=3&bewit={BEWIT}",
    "first": f"{ARTIFACTS}?bewit={BEWIT}&limit=3",
    "with padding": f"{ARTIFACTS}?limit=3&bewit={BEWIT}==",
}


@pytest.mark.parametrize("case", PLACES)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_an_address_that_was_signed_is_verified_with_its_bewit(case, method):
    signed, bare = parse_bewit(PLACES[case])

    assert bare == f"{ARTIFACTS}?limit=3"
    verify_signature(signed, HawkRequest(method, bare, "localhost", "8000"), KEY, NOW)


def test_a_signed_address_is_good_for_no_other():
    signed, _ = parse_bewit(PLACES["last"])

    with pytest.raises(Unauthenticated):
        verify_signature(signed, HawkRequest("GET", f"{ARTIFACTS}?limit=4", "localhost", "8000"), KEY, NOW)


def test_a_signed_url_expires_on_time():
    signed, bare = parse_bewit(PLACES["last"])
    asked = HawkRequest("GET", bare, "localhost", "8000")

    verify_signature(signed, asked, KEY, 1_800_000_899_999)
    with pytest.raises(Unauthenticated, match="expired"):
        verify_signature(signed, asked, KEY, 1_800_000_900_000)


def test_an_address_without_a_bewit_has_none():
    assert parse_bewit("/api/queue/v1/bewit=x") is None
    assert parse_bewit("/api/queue/v1/ping?notbewit=x") is None


def test_a_bewit_as_the_only_parameter_leaves_an_empty_query():
    assert parse_bewit(f"/a?bewit={BEWIT}")[1] == "/a"


@pytest.mark.parametrize("bewit", ["", "x", "====", "YQ", "%5C%5C%5C", "a\\b\\c\\d", "_____w"])
def test_an_invalid_bewit_is_rejected(bewit):
    with pytest.raises(Unauthenticated):
        parse_bewit(f"/a?bewit={bewit}")
