"""Event handlers on the pages: created, tested against received events, enabled and disabled."""

import json

import pytest
from django.test import Client

from conductor_app.access.models import AuditEntry
from conductor_app.events.commands import handlers as event_handlers
from conductor_app.events.commands import intake as event_intake
from conductor_app.events.models import EventAction, EventHandler
from conductor_app.runs.models import Run
from tests.access.users import author_who_starts, client_with
from tests.builders import definition, step
from tests.page_text import html, page_text
from tests.scenario import register_definitions, run_commit_hooks

pytestmark = pytest.mark.django_db
LIST = "/admin/conductor/eventhandler/"
PAID = "conductor:orders:paid"
START = {"action": "start_workflow", "start_workflow": {"name": "ship", "input": {"order": "${order}"}}}
WRITTEN = {"name": "start", "event": PAID, "condition": "$.total > 100", "actions": [START], "active": True}


def save_on_page(client: Client, document, address: str = f"{LIST}add/", **more: str):
    return client.post(address, {"document": json.dumps(document), "reason": "as agreed", **more})


def receive(id: str, **payload) -> None:
    with run_commit_hooks():
        event_intake.receive_event(PAID, id, payload, "api")


@pytest.fixture(autouse=True)
def ship(clock):
    register_definitions(definition(step("pack"), name="ship"))


@pytest.fixture
def row() -> EventHandler:
    event_handlers.create_handlers([WRITTEN], "ann")
    return EventHandler.objects.get()


def test_an_author_creates_a_handler_and_a_viewer_cannot(clock):
    author, onlooker = author_who_starts("*"), client_with(role="USER_READ_ONLY")

    save_on_page(author, WRITTEN)

    row = EventHandler.objects.get()
    assert (row.event, row.is_active, row.created_by) == (PAID, True, "ann")
    assert AuditEntry.objects.get(object_type="event_handler").reason == "as agreed"
    assert "start" in page_text(onlooker.get(LIST)) and PAID in page_text(onlooker.get(LIST))
    assert onlooker.get(f"{LIST}{row.pk}/change/").status_code == 200
    assert onlooker.get(f"{LIST}{row.pk}/edit/").status_code == 403
    assert save_on_page(onlooker, {**WRITTEN, "name": "other"}).status_code == 403


def test_a_changed_handler_is_reviewed_and_saved(operator, row):
    changed = {**WRITTEN, "condition": "$.total > 50"}
    address = f"{LIST}{row.pk}/edit/"

    review = page_text(save_on_page(operator, changed, address, step="review"))
    assert "$.total > 50" in review and "Changes in meaning" in review
    save_on_page(operator, changed, address)

    row.refresh_from_db()
    assert (row.document["condition"], row.revision) == ("$.total > 50", 2)
    assert "cannot be changed" in page_text(save_on_page(operator, {**changed, "name": "other"}, address))


def test_errors_are_marked_at_their_lines(operator):
    shop = '{"action": "start_workflow", "start_workflow": {"name": "shop"}}'
    document = f'{{\n "name": "x",\n "event": "kafka:orders",\n "actions": [\n  {shop}]\n}}'

    said = operator.post(f"{LIST}check/", {"document": document}).json()

    lines = {finding["line"]: finding["message"] for finding in said["findings"]}
    assert "EVENT_QUEUES_KAFKA_SERVERS" in lines[3]
    assert lines[5] == "Workflow shop does not exist. Did you mean ship?"
    assert "name" in said["known"]["fields"]["workflow"]
    assert "Missing event handler name" in str(operator.post(f"{LIST}check/", {"document": "{}"}).json()["findings"])
    assert "in this definition." in page_text(save_on_page(operator, {"name": "x"}))


def test_an_invalid_python_condition_is_marked(operator):
    def said(condition):
        document = {**WRITTEN, "evaluatorType": "python", "condition": condition}
        found = operator.post(f"{LIST}check/", {"document": json.dumps(document)}).json()["findings"]
        return [finding["message"] for finding in found if "Python" in finding["message"]]

    assert said("return total > 100") == []
    assert said("total > 100") == [
        "The condition has no return, so it is never true. In Python, its value is the returned value."
    ]
    refused, marked = said("return $.total > 100")
    assert refused.startswith("Expression is not well formatted: SyntaxError") and "(line 1, column 8)" in refused
    assert marked == "In Python, the fields of the payload are variables: write name instead of $.name."


def test_a_python_condition_is_tested_on_past_events(operator, row):
    receive("small", total=20)
    receive("large", total=500)
    document = {**WRITTEN, "evaluatorType": "python", "condition": "return total > 100"}

    shown = page_text(save_on_page(operator, document, f"{LIST}{row.pk}/edit/", step="try"))

    assert "matched 1" in shown and "condition false 1" in shown


def test_an_edited_handler_is_tested_on_past_events_without_effect(operator, row):
    receive("small", total=20, order=1)
    receive("large", total=500, order=2)
    before = (Run.objects.count(), EventAction.objects.count())

    shown = page_text(
        save_on_page(operator, {**WRITTEN, "condition": "$.total > 10"}, f"{LIST}{row.pk}/edit/", step="try")
    )

    assert "Tested on 2 past events, without effects matched 2" in shown
    assert "1 has a different result than at its arrival" in shown
    assert '{"name":"ship","input":{"order":1}}' in shown
    assert (Run.objects.count(), EventAction.objects.count()) == before
    row.refresh_from_db()
    assert row.document["condition"] == "$.total > 100"


def test_a_test_reports_actions_that_would_fail(operator, row):
    receive("m1", total=500)
    document = {**WRITTEN, "actions": [{"action": "start_workflow", "start_workflow": {"name": "${to}"}}]}

    shown = page_text(save_on_page(operator, document, f"{LIST}{row.pk}/edit/", step="try"))

    assert "There is no workflow null." in shown


def test_a_test_of_a_failing_condition_displays_its_error(operator, row):
    receive("m1", total=500)

    shown = page_text(save_on_page(operator, {**WRITTEN, "condition": "$.a.b.c"}, f"{LIST}{row.pk}/edit/", step="try"))

    assert "condition failed 1" in shown and "TypeError" in shown


def test_a_handler_is_deactivated_activated_and_deleted(operator, viewer, row):
    def does(act: str, client=operator):
        return client.post(f"{LIST}{row.pk}/do/{act}/")

    does("rest")
    row.refresh_from_db()
    assert not row.is_active and row.document["active"] is False
    assert "disabled" in page_text(viewer.get(LIST))
    assert does("listen", viewer).status_code == 403
    does("listen")
    row.refresh_from_db()
    assert row.is_active
    assert does("explode").status_code == 404
    does("delete")
    assert not EventHandler.objects.exists()
    entries = AuditEntry.objects.filter(object_type="event_handler", actor="olga")
    assert set(entries.values_list("action", flat=True)) == {"overwrite", "delete"}


def test_the_page_of_a_handler_displays_its_recent_events(viewer, row):
    receive("m1", total=5)

    shown = viewer.get(f"{LIST}{row.pk}/change/")

    assert "condition false $.total = 5" in page_text(shown)
    assert f"/admin/events/?handler={row.name}" in html(shown)


def test_pages_of_handlers_take_few_queries(operator, row, django_assert_max_num_queries):
    receive("m1", total=500)
    operator.get(LIST)
    for address in (LIST, f"{LIST}{row.pk}/change/", f"{LIST}{row.pk}/edit/"):
        with django_assert_max_num_queries(15):
            assert operator.get(address).status_code == 200


def test_the_list_shows_the_error_of_the_last_action(operator, row):
    row.document["actions"][0]["start_workflow"]["name"] = "gone"
    event_handlers.update_handler(row.document, "ann")

    receive("m-1", total=500)

    assert "No such workflow" in page_text(operator.get(LIST))
