"""Temporary credentials, compared with those of the official client (taskcluster §6.3)."""

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from taskcluster.client import createTemporaryCredentials

from conductor_app.core.errors import Unauthenticated
from conductor_app.taskcluster.auth.signatures import (
    Certificate,
    issue_credentials,
    read_ext,
    sign_certificate,
    temporary_key,
    verify_certificate,
)

KEY = "n1kRt0kenForVectorsOnly000"
START = 1_800_000_000_000
VECTOR = Certificate(
    scopes=("queue:resolve-task:AAAAAAAAQAKAAAAAAAAAAA/0", "demo:*"),
    start=START,
    expiry=START + 1_200_000,
    seed="ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop01",
    signature="6pFYjLN/b7hOkCyckbnqcpbWgdB4UoUntDRAsPnnrRY=",
    issuer="static/queue",
)
NAME = "task-client/demo"
MINUTE = 60_000


def ext(value) -> str:
    return base64.b64encode(json.dumps(value).encode()).decode()


def test_named_and_unnamed_certificates_are_signed_as_others_sign_them():
    unnamed = replace(VECTOR, issuer=None)

    assert sign_certificate(VECTOR, NAME, KEY) == VECTOR.signature
    assert sign_certificate(unnamed, NAME, KEY) == "1BB8Ga3m54jd0W/zcsRwxys6YkjVwede2CpxgM9hzHQ="
    assert temporary_key(VECTOR, KEY) == "if-mj7WYDM4UPf7kRp0M_picnxVHOSOi1OwEatwjJh8"


@pytest.mark.parametrize("name", [None, "task/1"])
def test_credentials_that_the_official_client_makes_are_verified(name):
    start = datetime.fromtimestamp(START / 1000, UTC)
    made = createTemporaryCredentials("me", KEY, start, start + timedelta(hours=1), ["a", "b:*"], name)

    certificate, authorized = read_ext(ext({"certificate": json.loads(made["certificate"])}))

    verify_certificate(certificate, name or "me", [KEY], START)
    assert temporary_key(certificate, KEY) == made["accessToken"].decode()
    assert (certificate.scopes, certificate.issuer, authorized) == (("a", "b:*"), "me" if name else None, None)


def test_credentials_issued_here_are_verified_here():
    made = issue_credentials("static/queue", KEY, NAME, ["a", "b:*"], start=START, expiry=START + MINUTE)

    certificate, _ = read_ext(ext({"certificate": json.loads(made["certificate"])}))

    verify_certificate(certificate, made["clientId"], [KEY], START)
    assert (made["clientId"], made["accessToken"]) == (NAME, temporary_key(certificate, KEY))


def test_a_certificate_is_valid_from_start_to_expiry_with_five_minutes_tolerance():
    verify_certificate(VECTOR, NAME, [KEY], START - 5 * MINUTE)
    verify_certificate(VECTOR, NAME, [KEY], VECTOR.expiry + 5 * MINUTE)
    for moment in (START - 5 * MINUTE - 1, VECTOR.expiry + 5 * MINUTE + 1):
        with pytest.raises(Unauthenticated):
            verify_certificate(VECTOR, NAME, [KEY], moment)


def test_no_certificate_is_valid_for_more_than_31_days():
    long = replace(VECTOR, expiry=START + 31 * 24 * 60 * MINUTE)
    verify_certificate(replace(long, signature=sign_certificate(long, NAME, KEY)), NAME, [KEY], START)

    too_long = replace(long, expiry=long.expiry + 1)
    with pytest.raises(Unauthenticated, match="31 days"):
        verify_certificate(replace(too_long, signature=sign_certificate(too_long, NAME, KEY)), NAME, [KEY], START)


FORGED = {
    "more scopes": ({"scopes": (*VECTOR.scopes, "*")}, NAME),
    "a later expiry": ({"expiry": VECTOR.expiry + 1}, NAME),
    "an earlier start": ({"start": START - 1}, NAME),
    "another seed": ({"seed": VECTOR.seed[::-1]}, NAME),
    "another issuer": ({"issuer": "static/root"}, NAME),
    "no issuer": ({"issuer": None}, NAME),
    "another name": ({}, "task-client/another"),
    "another signature": ({"signature": "x" + VECTOR.signature[1:]}, NAME),
    "no signature": ({"signature": ""}, NAME),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_certificate_is_not_signed_for(case):
    changes, name = FORGED[case]

    with pytest.raises(Unauthenticated):
        verify_certificate(replace(VECTOR, **changes), name, [KEY], START)


def test_a_client_cannot_issue_named_credentials_with_its_own_name():
    own = replace(VECTOR, issuer=NAME)

    with pytest.raises(Unauthenticated, match="issuer"):
        verify_certificate(replace(own, signature=sign_certificate(own, NAME, KEY)), NAME, [KEY], START)


WHOLE = {"version": 1, "scopes": ["a"], "start": 1, "expiry": 2, "seed": VECTOR.seed, "signature": "s", "issuer": "i"}
UNREADABLE = {
    "no base64": "!",
    "no JSON": base64.b64encode(b"{").decode(),
    "no text": base64.b64encode(b"\xff").decode(),
    "a list": ext([]),
    "a great depth": base64.b64encode(b"[" * 200_000).decode(),
    "authorized scopes that are no list": ext({"authorizedScopes": "a"}),
    "an authorized scope that is no text": ext({"authorizedScopes": [1]}),
    "an authorized scope with a line break": ext({"authorizedScopes": ["a\nb"]}),
    "a certificate that is a text": ext({"certificate": json.dumps(WHOLE)}),
    "a certificate of version 2": ext({"certificate": {**WHOLE, "version": 2}}),
    "a certificate with a key too much": ext({"certificate": {**WHOLE, "x": 1}}),
    "a certificate without a seed": ext({"certificate": {k: v for k, v in WHOLE.items() if k != "seed"}}),
    "a short seed": ext({"certificate": {**WHOLE, "seed": "abc"}}),
    "a moment with a fraction": ext({"certificate": {**WHOLE, "start": 1.5}}),
    "a moment that is a truth": ext({"certificate": {**WHOLE, "start": True}}),
    "a moment beyond all": ext({"certificate": {**WHOLE, "expiry": 10**400}}),
    "an issuer that is empty": ext({"certificate": {**WHOLE, "issuer": ""}}),
    "a scope with a line break": ext({"certificate": {**WHOLE, "scopes": ["a\nb"]}}),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_an_ext_is_not_understood(case):
    with pytest.raises(Unauthenticated):
        read_ext(UNREADABLE[case])


def test_an_ext_may_be_empty_or_in_either_alphabet():
    scopes = {"authorizedScopes": ["a>>>???"]}
    urlsafe = base64.urlsafe_b64encode(json.dumps(scopes).encode()).decode().rstrip("=")

    assert read_ext("") == (None, None)
    assert read_ext("e30=") == read_ext("e30") == (None, None)
    assert read_ext(urlsafe) == read_ext(ext(scopes)) == (None, ("a>>>???",))
    assert read_ext(ext({"authorizedScopes": []})) == (None, ())
