"""The audit log: changes, owners of applications, and the export."""

import json

import pytest
from django.contrib.auth.models import User
from django.db import connection  # noqa: F401  # The condition of a mark reads it.

from conductor_app.access.authentication import actor_of_user
from conductor_app.access.models import Application, AuditEntry
from conductor_app.access.pages.audit import OBJECT_LABELS
from conductor_app.access.visibility import visible_to
from conductor_app.runs.commands import retention
from tests.access.users import create_application, grant_access
from tests.builders import simple
from tests.page_text import html, page_text
from tests.scenario import define_workflow, start_run

pytestmark = pytest.mark.django_db
AUDIT = "/admin/conductor/auditentry/"


def create_entry(clock, **more) -> AuditEntry:
    line = {"actor": "ann", "action": "retry", "object_type": "run", "object_id": "r-1", "reason": "it is back"}
    return AuditEntry.objects.create(at=clock.now(), **(line | more))


def text(response) -> str:
    return b"".join(response.streaming_content).decode()


def test_an_entry_displays_the_previous_values(operator, clock):
    retention.save_policy("order", 30, 90, 0, "ann")
    retention.save_policy("order", 7, 90, 0, "ann")

    page = page_text(operator.get(AUDIT))

    assert "days 30 → 7" in page and "failed_days 90" not in page
    detail = page_text(operator.get(f"{AUDIT}{AuditEntry.objects.latest('id').pk}/change/"))
    assert "days 30 → 7" in detail


def test_an_application_is_listed_with_its_owner(operator, clock):
    user = User.objects.create_user("app-1")
    Application.objects.create(id="app-1", name="nightly", user=user, created_at=clock.now(), created_by="olga")
    create_entry(clock, actor="nightly")

    assert "nightly application of olga" in page_text(operator.get(AUDIT))


def test_every_object_is_linked_as_far_as_it_has_a_page(operator, clock):
    for kind in [*OBJECT_LABELS, "odd kind"]:
        create_entry(clock, object_type=kind, object_id="12")

    assert operator.get(AUDIT).status_code == 200


def test_entries_link_to_their_events_handlers_and_webhooks(operator, clock):
    for kind, id in (("event", "12"), ("event_handler", "on paid"), ("webhook", "0198-aa"), ("event", "not a number")):
        create_entry(clock, object_type=kind, object_id=id)

    shown = html(operator.get(AUDIT))

    assert '<a href="/admin/events/12/">12</a>' in shown
    assert '<a href="/admin/conductor/eventhandler/?q=on+paid">on paid</a>' in shown
    assert '<a href="/admin/webhooks/0198-aa/">0198-aa</a>' in shown
    assert "not a number" in shown


def test_the_audit_log_is_exported_with_the_filter_of_the_list(operator, viewer, clock, monkeypatch):
    monkeypatch.setattr("conductor_app.access.pages.audit.BATCH", 2)
    for number in range(5):
        create_entry(clock, object_id=f"r-{number}", reason="=1+1")
    clock.advance(seconds=7_200)
    create_entry(clock, object_type="secret", object_id="key", facts={"from": "a", "to": "b"})

    rows = json.loads(text(operator.get(f"{AUDIT}export.json")))
    rows = [row for row in rows if row["object_type"] != "user"]
    assert [row["object_id"] for row in rows] == ["key", "r-4", "r-3", "r-2", "r-1", "r-0"]
    assert rows[0]["facts"] == {"from": "a", "to": "b"}
    assert text(operator.get(f"{AUDIT}export.csv", {"object_type": "run", "q": "r-3"})).count("\n") == 2
    assert "'=1+1" in text(operator.get(f"{AUDIT}export.csv"))
    assert len(json.loads(text(operator.get(f"{AUDIT}export.json", {"since": "hour", "object_type": "secret"})))) == 1


@pytest.mark.parametrize("query", [{"p": "99"}, {"actor__x": "1"}, {"p": "x"}, {"q": "\0"}])
def test_an_invalid_filter_exports_nothing_without_an_error(operator, clock, query):
    create_entry(clock)

    assert operator.get(f"{AUDIT}export.csv", query).status_code in (200, 302, 400)


def test_the_entries_about_a_run_are_found_by_its_correlation_id(operator, clock):
    define_workflow("order", simple("pay"))
    run = start_run("order", correlation_id="order 4711")
    create_entry(clock, object_id=run.pk, reason="this one")
    create_entry(clock, object_id="r-2", reason="another one")

    shown = page_text(operator.get(AUDIT, {"q": "order 4711"}))

    assert "this one" in shown and "another one" not in shown


def test_the_entries_about_a_run_are_found_by_the_name_that_the_list_shows(operator, clock):
    define_workflow("order", simple("pay"))
    run = start_run("order", input={"order_id": 9001})
    create_entry(clock, object_id=run.pk, reason="this one")
    create_entry(clock, object_id=start_run("order", input={"order_id": 9002}).pk, reason="another one")
    assert "order_id 9001" in page_text(operator.get(AUDIT))

    shown = page_text(operator.get(AUDIT, {"q": "order_id 9001"}))

    assert "this one" in shown and "another one" not in shown


def test_the_list_shows_the_details_of_an_entry_without_changed_values(operator, clock):
    create_entry(clock, facts={"to": "charge", "note": "x" * 200})

    shown = page_text(operator.get(AUDIT))

    assert "to charge" in shown and "x" * 120 + "…" in shown


def test_the_list_takes_few_queries(operator, clock, django_assert_max_num_queries):
    for _ in range(20):
        create_entry(clock)
    operator.get(AUDIT)

    with django_assert_max_num_queries(10):
        operator.get(AUDIT)


def test_an_entry_names_its_request_and_links_to_all_its_entries(operator, clock):
    submitted = {"do": "save", "definition": "order", "days": "30", "failed_days": "90"}
    operator.post("/admin/retention/", submitted, headers={"X-Request-Id": "req-4711"})
    other = create_entry(clock, object_id="of no request")

    assert "Request id –" in page_text(operator.get(f"{AUDIT}{other.pk}/change/"))
    row = AuditEntry.objects.get(request_id="req-4711")
    detail = html(operator.get(f"{AUDIT}{row.pk}/change/"))
    assert f'<a href="{AUDIT}?request_id=req-4711"><code class="id">req-4711</code></a>' in detail
    for asked in ({"request_id": "req-4711"}, {"q": "req-4711"}):
        shown = page_text(operator.get(AUDIT, asked))
        assert "retention policy order" in shown and "of no request" not in shown
    assert "req-4711" in text(operator.get(f"{AUDIT}export.csv", {"q": "req-4711"}))


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="reads the plan in the format of SQLite")
def test_entries_about_runs_read_the_runs_by_their_keys():
    team = create_application("team")
    grant_access(team, "WORKFLOW_DEF", "ship", "READ")
    grant_access(team, "WORKFLOW_DEF", "shop*", "READ")
    entries = visible_to(actor_of_user(team.user_id), AuditEntry.objects.all())

    plan = entries.explain()

    assert "sqlite_autoindex_conductor_run_1 (id=?)" in plan
    assert "run_by_definition" not in plan
