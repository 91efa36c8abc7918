"""Authentication and authorization of Taskcluster callers (taskcluster §6)."""

import pytest
from django.test import RequestFactory

from conductor_app.access.models import Client
from conductor_app.core.errors import Forbidden, Invalid, Unauthenticated
from conductor_app.taskcluster.auth import scopes as clients
from conductor_app.taskcluster.auth import signatures as temporary_credentials
from conductor_app.taskcluster.auth.commands import (
    ClientSettings,
    create_client,
    create_role,
    delete_client,
    record_client_use,
    reset_token,
    set_disabled,
    update_role,
)
from conductor_app.taskcluster.auth.signatures import (
    OPEN_ACCESS_CALLER,
    HawkRequest,
    authenticate,
    identify_caller,
    signed_request_of,
)
from conductor_app.utils import clock as product_clock
from tests.runs.test_statements import Counted

from .signing import PING, credentials, identified_caller, issue_temporary, sign_bewit, sign_request

pytestmark = pytest.mark.django_db
DAY_MS = 86_400_000
PUBLIC = "queue:get-artifact:public/*"


@pytest.fixture(autouse=True)
def needs_a_signature(settings, clock):
    settings.CONDUCTOR_API_ACCESS = "token"


@pytest.fixture
def fleet(clock):
    """Return a Taskcluster client and its credentials."""
    return new_credentials("fleet/1", "queue:claim-work:proj/*", "assume:reader", "auth:create-client:fleet/1/*")


def new_credentials(id, *scopes, days=1):
    _, token = create_client(id, ClientSettings(scopes, product_clock.now() + days * DAY_MS), "olga")
    return credentials(id, token)


def pair(given):
    return given["clientId"], given["accessToken"]


def test_an_unsigned_request_has_the_anonymous_scopes():
    nobody = identify_caller(HawkRequest("GET", PING, "tc.example.org", "8000"), "")

    assert (nobody.client_id, nobody.scope_list) == ("anonymous", ("assume:anonymous", PUBLIC))


def test_a_client_has_its_own_scopes_those_of_its_roles_and_the_anonymous_ones(fleet):
    create_role("reader", ["queue:status:*"], "", "olga")

    found = identified_caller(fleet)

    assert found.client_id == "fleet/1"
    assert "queue:claim-work:proj/linux" in found.scopes
    assert "queue:status:abc" in found.scopes
    assert "queue:get-artifact:public/a" in found.scopes
    assert "queue:get-artifact:private/a" not in found.scopes


def test_a_changed_role_affects_its_clients_at_once(fleet):
    create_role("reader", ["queue:status:*"], "", "olga")
    identified_caller(fleet)

    update_role("reader", ["queue:get-task:*"], "", "olga")

    assert "queue:status:abc" not in identified_caller(fleet).scopes


def test_a_wrong_token_is_rejected_like_an_unknown_client(fleet):
    with pytest.raises(Unauthenticated):
        identified_caller(credentials("fleet/1", "x" * 44))
    with pytest.raises(Unauthenticated, match="Unknown client"):
        identified_caller(credentials("fleet/2", fleet["accessToken"]))


def test_a_disabled_expired_reset_or_deleted_client_is_rejected(fleet, clock):
    set_disabled("fleet/1", True, "olga")
    with pytest.raises(Unauthenticated, match="disabled"):
        identified_caller(fleet)

    set_disabled("fleet/1", False, "olga")
    assert identified_caller(fleet).client_id == "fleet/1"

    _, token = reset_token("fleet/1", "olga")
    with pytest.raises(Unauthenticated):
        identified_caller(fleet)

    again = credentials("fleet/1", token)
    clock.advance(seconds=DAY_MS / 1000)
    with pytest.raises(Unauthenticated, match="expired"):
        identified_caller(again)

    delete_client("fleet/1", "olga")
    with pytest.raises(Unauthenticated, match="Unknown client"):
        identified_caller(again)


def test_named_temporary_credentials_have_their_own_scopes(fleet):
    given = issue_temporary(pair(fleet), ["queue:claim-work:proj/linux"], "fleet/1/a")

    found = identified_caller(given)

    assert found.client_id == "fleet/1/a"
    assert "queue:claim-work:proj/linux" in found.scopes
    assert "queue:claim-work:proj/windows" not in found.scopes
    assert "queue:get-artifact:public/a" in found.scopes


def test_unnamed_temporary_credentials_are_their_issuers(fleet):
    found = identified_caller(issue_temporary(pair(fleet), ["queue:claim-work:proj/linux"]))

    assert found.client_id == "fleet/1"
    assert "queue:claim-work:proj/windows" not in found.scopes


BEYOND = {
    "a scope that their issuer does not hold": (["queue:claim-work:other/linux"], "fleet/1/a"),
    "a name that their issuer may not give": (["queue:claim-work:proj/linux"], "fleet/2"),
    "a wider scope": (["queue:claim-work:*"], None),
}


@pytest.mark.parametrize("case", BEYOND)
def test_temporary_credentials_cannot_have(case, fleet):
    with pytest.raises(Unauthenticated, match="issuer"):
        identified_caller(issue_temporary(pair(fleet), *BEYOND[case]))


def test_temporary_credentials_end_with_their_certificate_and_their_issuer(fleet, clock):
    given = issue_temporary(pair(fleet), [], "fleet/1/a", minutes=30)
    assert identified_caller(given).expires_at == clock.now() + 30 * 60_000

    clock.advance(seconds=36 * 60)
    with pytest.raises(Unauthenticated, match="expired"):
        identified_caller(given)

    given = issue_temporary(pair(fleet), [], "fleet/1/a")
    set_disabled("fleet/1", True, "olga")
    with pytest.raises(Unauthenticated, match="disabled"):
        identified_caller(given)


def test_temporary_credentials_issue_no_others(fleet):
    given = issue_temporary(pair(fleet), ["auth:create-client:fleet/1/*"], "fleet/1/a")

    with pytest.raises(Unauthenticated):
        identified_caller(issue_temporary(pair(given), [], "fleet/1/b"))


def test_authorized_scopes_narrow_what_a_client_may_do(fleet):
    found = identified_caller(fleet, ["queue:claim-work:proj/linux", PUBLIC])

    assert set(found.scope_list) == {"assume:anonymous", "queue:claim-work:proj/linux", PUBLIC}
    assert identified_caller(fleet, []).scope_list == ("assume:anonymous", PUBLIC)
    with pytest.raises(Unauthenticated, match="authorized"):
        identified_caller(fleet, ["queue:claim-work:*"])


def test_authorized_scopes_narrow_temporary_credentials_too(fleet):
    given = issue_temporary(pair(fleet), ["queue:claim-work:proj/*"], "fleet/1/a")

    assert "queue:claim-work:proj/windows" not in identified_caller(given, ["queue:claim-work:proj/linux"]).scopes
    with pytest.raises(Unauthenticated, match="authorized"):
        identified_caller(given, ["assume:reader"])


def test_credentials_issued_for_a_task_are_valid_only_for_that_task(clock):
    now = clock.now()
    given = dict(
        temporary_credentials.issue_credentials(
            clients.ISSUER_CLIENT_ID,
            clients.issuing_keys()[0],
            "task-client/x",
            ["queue:resolve-task:x/0"],
            start=now,
            expiry=now + 1000,
        )
    )

    assert set(identified_caller(given).scope_list) == {"assume:anonymous", PUBLIC, "queue:resolve-task:x/0"}
    with pytest.raises(Unauthenticated):
        identified_caller(credentials(clients.ISSUER_CLIENT_ID, clients.issuing_keys()[0]))


def test_a_client_cannot_have_the_name_of_the_issuer():
    with pytest.raises(Invalid, match="client id"):
        new_credentials(clients.ISSUER_CLIENT_ID, "*")


def test_a_signed_address_is_good_for_reading(fleet):
    path = sign_bewit(fleet, "/api/queue/v1/task/x/artifacts/private%2Fa?limit=2")

    assert identify_caller(HawkRequest("HEAD", path, "tc.example.org", "8000"), "").client_id == "fleet/1"
    with pytest.raises(Unauthenticated, match="reading"):
        identify_caller(HawkRequest("POST", path, "tc.example.org", "8000"), "")
    with pytest.raises(Unauthenticated, match="two signatures"):
        identify_caller(HawkRequest("GET", path, "tc.example.org", "8000"), sign_request(fleet, path=path))


def request(**meta):
    made = RequestFactory().get("/api/queue/v1/task-queues/a%2Fb", SERVER_NAME="10.0.0.3", SERVER_PORT="8000")
    made.META |= {"HTTP_HOST": "tc.example.org", **meta}
    return made


RAW = "/api/queue/v1/task-queues/a%2Fb?x=%41"
BULK_ACTION_SUBJECT = {
    "gunicorn": ({"RAW_URI": RAW}, (RAW, "80")),
    "waitress": ({"REQUEST_URI": RAW}, (RAW, "80")),
    "a host with a port": ({"RAW_URI": RAW, "HTTP_HOST": "tc.example.org:8080"}, (RAW, "8080")),
    "a port that there is not": ({"RAW_URI": RAW, "HTTP_HOST": "tc.example.org:99999999"}, (RAW, "99999999")),
    "HTTPS before a proxy": ({"RAW_URI": RAW, "HTTP_X_FORWARDED_PROTO": "https"}, (RAW, "443")),
    "a port before a proxy": ({"RAW_URI": RAW, "HTTP_X_FORWARDED_PORT": "8443, 80"}, (RAW, "8443")),
    "no number before a proxy": ({"RAW_URI": RAW, "HTTP_X_FORWARDED_PORT": "x"}, (RAW, "80")),
}


@pytest.mark.parametrize("case", BULK_ACTION_SUBJECT)
def test_the_path_is_read_behind_a_proxy(case):
    meta, (resource, port) = BULK_ACTION_SUBJECT[case]

    assert signed_request_of(request(**meta)) == HawkRequest("GET", resource, "tc.example.org", port)


def test_the_path_is_read_under_asgi():
    made = request()
    made.scope = {"raw_path": b"/api/queue/v1/task-queues/a%2Fb", "query_string": b"x=%41"}

    assert signed_request_of(made).resource == RAW


def test_a_body_that_was_not_signed_so_is_refused(fleet):
    header = sign_request(fleet, method="POST").replace('hash="', 'hash="x')
    with pytest.raises(Unauthenticated):
        authenticate(request(RAW_URI=PING, HTTP_AUTHORIZATION=header), bytes)


def test_a_request_is_processed_with_its_signed_body(fleet):
    meta = {"RAW_URI": PING, "HTTP_HOST": "tc.example.org:8000", "HTTP_AUTHORIZATION": sign_request(fleet)}

    assert authenticate(request(**meta, CONTENT_TYPE=""), bytes).client_id == "fleet/1"
    with pytest.raises(Unauthenticated, match="body"):
        authenticate(request(**meta, CONTENT_TYPE=""), lambda: b"{}")


def test_a_cached_caller_takes_no_statement(fleet, clock):
    identified_caller(fleet)

    with Counted() as counted:
        identified_caller(fleet)
        identified_caller(issue_temporary(pair(fleet), ["queue:claim-work:proj/linux"], "fleet/1/a"))

    assert counted.count == 0, counted.statements


def test_the_use_of_a_client_is_noted_now_and_then(fleet, clock):
    record_client_use("fleet/1")
    first = Client.objects.get().used_at
    clock.advance(seconds=60)
    with Counted() as counted:
        record_client_use("fleet/1")
    assert first == clock.now() - 60_000
    assert not [sql for sql in counted.statements if "UPDATE" in sql]

    clock.advance(seconds=3600)
    record_client_use("fleet/1")
    assert Client.objects.get().used_at == clock.now()


class TestOnLoopback:
    @pytest.fixture(autouse=True)
    def open_to_all(self, settings):
        settings.CONDUCTOR_API_ACCESS = "open"

    def test_without_clients_every_scope_is_granted(self):
        stranger = {"RAW_URI": PING, "HTTP_AUTHORIZATION": 'Hawk id="me", ts="1", nonce="n", mac="m"'}
        assert authenticate(request(**stranger), bytes) is OPEN_ACCESS_CALLER
        assert "whatever:there/is" in OPEN_ACCESS_CALLER.scopes

        new_credentials("fleet/1", "*")

        with pytest.raises(Unauthenticated):
            authenticate(request(**stranger), bytes)
        assert authenticate(request(RAW_URI=PING), bytes).scope_list == ("assume:anonymous", PUBLIC)

    def test_a_page_of_another_site_may_not(self):
        with pytest.raises(Forbidden):
            authenticate(request(HTTP_ORIGIN="https://evil.example.org"), bytes)


def test_no_log_line_and_no_value_contains_a_key(fleet):
    assert fleet["accessToken"] not in repr(clients.find_client_key("fleet/1"))
    assert fleet["accessToken"] not in str(Client.objects.values().get())
