"""Events on the pages: why one did, or did not, start something."""

import pytest

from conductor_app.events.commands import handlers as event_handlers
from conductor_app.events.commands import intake as event_intake
from conductor_app.events.models import EventAction, EventDelivery, HandlerEvaluation
from conductor_app.runs.models import Run
from tests.access.users import client_with
from tests.builders import definition, step
from tests.page_text import html, page_text
from tests.scenario import register_definitions, run_commit_hooks

pytestmark = pytest.mark.django_db
EVENTS = "/admin/events/"
PAID = "conductor:orders:paid"


def handler(name: str = "start", **fields) -> None:
    start = {"action": "start_workflow", "start_workflow": {"name": "ship", "input": {"order": "${order}"}}}
    event_handlers.create_handlers([{"name": name, "event": PAID, "active": True, "actions": [start], **fields}], "ann")


def receive_event(id: str = "m1", event: str = PAID, **payload) -> EventDelivery:
    with run_commit_hooks():
        event_intake.receive_event(event, id, payload, "api")
    return EventDelivery.objects.get(event=event, message_id=id)


def page(event: EventDelivery) -> str:
    return f"{EVENTS}{event.pk}/"


@pytest.fixture(autouse=True)
def ship(clock):
    register_definitions(definition(step("pack"), name="ship"))


def test_an_empty_page_explains_how_to_send_an_event(viewer):
    shown = page_text(viewer.get(EVENTS))

    assert "No events" in shown
    assert "curl -X POST http://testserver/api/event/handleIncomingEvent" in shown


def test_an_event_leads_to_the_run_that_it_started(viewer):
    handler()

    event = receive_event(order=7)

    run = Run.objects.get(name="ship")
    for address in (EVENTS, page(event)):
        answer = viewer.get(address)
        assert f"started run …{run.pk[-4:]}" in page_text(answer)
        assert f"/admin/conductor/run/{run.pk}/change/" in html(answer)


def test_an_event_without_effect_lists_the_compared_values(viewer):
    handler(condition="$.total > 100 && $.customer.vip")

    event = receive_event(total=12, customer={"vip": True})

    assert "start condition false $.total = 12; $.customer.vip = true" in page_text(viewer.get(EVENTS))
    assert "$.total 12 $.customer.vip true" in page_text(viewer.get(page(event)))
    assert "evaluated to false" in page_text(viewer.get(page(event)))


def test_a_condition_that_raises_displays_its_error(viewer):
    handler(condition="$.customer.vip.since > 3")

    event = receive_event(total=12)

    assert "condition failed" in page_text(viewer.get(EVENTS))
    assert "TypeError" in page_text(viewer.get(page(event)))


def test_an_input_that_violates_its_schema_is_reported_with_its_path(viewer):
    schema = {"type": "JSON", "name": "ship", "data": {"type": "object", "properties": {"order": {"type": "string"}}}}
    register_definitions(
        {**definition(step("pack"), name="ship", version=2), "inputSchema": schema, "enforceSchema": True}
    )
    handler()

    receive_event(order=7)

    assert EventAction.objects.get().status == "FAILED"
    assert "invalid input input.order" in page_text(viewer.get(EVENTS))


def test_unhandled_and_duplicate_events_are_marked(viewer):
    receive_event("m1", event="a:b")
    event = receive_event("m1", event="a:b")

    shown = page_text(viewer.get(EVENTS))
    assert "no handler" in shown and "duplicate" in shown
    assert "The same message received once more, ignored as duplicate" in page_text(viewer.get(page(event)))


def listed(client, **asked: str) -> set[str]:
    answer = client.get(EVENTS, asked)
    return {id for id in EventDelivery.objects.values_list("message_id", flat=True) if f">{id}</code>" in html(answer)}


def test_events_are_found_by_name_handler_outcome_and_source(viewer, clock):
    handler("big", condition="$.total > 100")
    handler("all", event="a:b", condition="$.nothing.there")
    receive_event("small", total=1)
    receive_event("large", total=500)
    receive_event("broken", event="a:b")
    receive_event("unheard", event="c:d")
    receive_event("unheard", event="c:d")

    assert listed(viewer) == {"small", "large", "broken", "unheard"}
    assert listed(viewer, event=PAID) == {"small", "large"}
    assert listed(viewer, handler="big") == {"small", "large"}
    assert listed(viewer, handler="big", outcome="NOT_MATCHED") == {"small"}
    assert listed(viewer, outcome="MATCHED") == {"large"}
    assert listed(viewer, outcome="MATCHED", event="a:b") == set()
    assert listed(viewer, outcome="FAILED") == {"broken"}
    assert listed(viewer, outcome="UNHEARD") == {"unheard"}
    assert listed(viewer, outcome="DUPLICATE") == {"unheard"}
    assert listed(viewer, source="webhook") == set()
    assert "AMQP queue AMQP exchange" in page_text(viewer.get(EVENTS))
    assert listed(viewer, source="api", until="1990-01-01") == set()
    assert "No results" in page_text(viewer.get(EVENTS, {"event": "none"}))


def test_events_whose_action_failed_are_found(viewer):
    handler("gone", actions=[{"action": "start_workflow", "start_workflow": {"name": "none"}}])
    receive_event("failed")
    receive_event("other", event="a:b")

    assert listed(viewer, outcome="ACTION_FAILED") == {"failed"}
    assert listed(viewer, outcome="ACTION_FAILED", handler="else") == set()
    assert "action failed" in page_text(viewer.get(EVENTS))


def test_pages_continue_after_the_previous_one(viewer, clock):
    for number in range(55):
        EventDelivery.objects.create(event="a:b", message_id=f"n{number:02}", received_at=clock.now() + number)

    first = viewer.get(EVENTS)
    older = first.context["older"]
    second = viewer.get(f"{EVENTS}{older}")

    assert ">n54</code>" in html(first) and ">n05</code>" in html(first) and ">n04</code>" not in html(first)
    assert ">n04</code>" in html(second) and ">n00</code>" in html(second) and ">n05</code>" not in html(second)
    assert ">n54</code>" in html(viewer.get(f"{EVENTS}{second.context['newer']}"))


def test_a_question_that_no_index_answers_is_answered_in_steps(viewer, clock, monkeypatch):
    monkeypatch.setattr("conductor_app.events.queries.SEARCHED_ROWS", 2)
    for number, source in enumerate(("nats", "api", "api", "api", "api")):
        EventDelivery.objects.create(
            event="a:b", message_id=f"n{number}", source=source, received_at=clock.now() + number
        )

    first = viewer.get(EVENTS, {"source": "nats"})
    assert "Search earlier events" in page_text(first) and ">n0</code>" not in html(first)

    second = viewer.get(f"{EVENTS}{first.context['older']}")
    third = viewer.get(f"{EVENTS}{second.context['older']}")
    assert ">n0</code>" in html(third)


def test_new_events_are_announced(viewer, clock):
    receive_event("m1", event="a:b")
    query = viewer.get(EVENTS).context["news_query"]
    clock.advance(seconds=1)
    receive_event("m2", event="a:b")
    receive_event("m3", event="a:c")

    assert "Show 2 new" in page_text(viewer.get(f"{EVENTS}news/?{query}"))
    assert "Show 1 new" in page_text(viewer.get(f"{EVENTS}news/?{query}&event=a:c"))


def test_large_payloads_are_files(viewer, clock):
    event = receive_event("m1", event="a:b", text="x" * 70_000)

    assert "too large for a page" in page_text(viewer.get(page(event)))
    assert viewer.get(f"{page(event)}payload/").json() == {"text": "x" * 70_000}


def test_hostile_addresses_are_pages(viewer):
    for query in [
        {"after": "x.1"},
        {"after": "9" * 30 + ".1"},
        {"before": "1.abc"},
        {"since": "soon"},
        {"event": "\0", "outcome": "ODD", "source": "'"},
    ]:
        assert viewer.get(EVENTS, query).status_code == 200, query
        assert viewer.get(f"{EVENTS}news/", query | {"than": "1"}).status_code == 200, query


def test_a_user_without_permission_for_handlers_sees_no_events(db):
    client = client_with()

    assert client.get(EVENTS).status_code == 403
    assert client.get(f"{EVENTS}1/").status_code == 403


def test_a_deleted_event_is_not_found(viewer):
    assert viewer.get(f"{EVENTS}4711/").status_code == 404
    assert viewer.get(f"{EVENTS}{2**70}/payload/").status_code == 404


def test_pages_of_events_take_few_queries(viewer, clock, django_assert_max_num_queries):
    for number in range(5):
        handler(f"h{number}")
    event = receive_event(order=1)
    viewer.get(EVENTS)

    for address in (EVENTS, f"{EVENTS}?handler=h1&source=api", page(event)):
        with django_assert_max_num_queries(15):
            assert viewer.get(address).status_code == 200
    assert HandlerEvaluation.objects.count() == 5
