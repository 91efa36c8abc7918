"""Invalid signatures of all kinds are rejected with the documented error and have no other effect."""

import base64
import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core.errors import Unauthenticated
from conductor_app.taskcluster.auth.signatures import HawkRequest, identify_caller, read_ext
from tests.hypothesis_profile import property_settings

pytestmark = pytest.mark.django_db
WHATEVER = property_settings(30)
NAMES = st.sampled_from(["id", "ts", "nonce", "mac", "ext", "hash", "x"])
VALUES = st.text(max_size=12) | st.sampled_from(["1800000000", "e30=", "abc"])
HEADERS = st.builds(
    lambda pairs: "Hawk " + ", ".join(f'{name}="{value}"' for name, value in pairs),
    st.lists(st.tuples(NAMES, VALUES), max_size=7),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
PARTS = st.sampled_from(["version", "scopes", "start", "expiry", "seed", "signature", "issuer"])


@WHATEVER
@given(HEADERS | st.text(min_size=1))
def test_a_header(header):
    with pytest.raises(Unauthenticated):
        identify_caller(HawkRequest("GET", "/a", "h", "80"), header)


@WHATEVER
@given(st.text(max_size=20) | st.binary(max_size=40).map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_a_bewit(bewit):
    with contextlib.suppress(Unauthenticated):
        assert identify_caller(HawkRequest("GET", f"/a?bewit={bewit}", "h", "80"), "").client_id == "anonymous"


@WHATEVER
@given(st.dictionaries(PARTS, JSON), JSON)
def test_an_ext(certificate, authorized):
    said = json.dumps({"certificate": certificate, "authorizedScopes": authorized})

    with contextlib.suppress(Unauthenticated):
        read, scopes = read_ext(base64.b64encode(said.encode()).decode())
        assert read is None or isinstance(read.scopes, tuple)
        assert scopes is None or all(isinstance(scope, str) for scope in scopes)
