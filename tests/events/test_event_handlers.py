"""Event handlers over the wire (api §1.6, §3.12)."""

import pytest

from conductor_app.events.models import EventAction, EventDelivery
from tests.builders import simple

START = {"action": "start_workflow", "start_workflow": {"name": "order", "input": {"n": "${n}"}}}
HANDLER = {"name": "h", "event": "kafka:a/b", "actions": [START], "active": True}


def test_a_handler_is_returned_as_given_with_its_defaults(api):
    reply = api.post("/event", {**HANDLER, "colour": "red", "condition": "$.n > 1"})

    assert (reply.status_code, reply.content, reply.has_header("Content-Type")) == (200, b"", False)
    [shown] = api.get("/event").json()
    assert shown == {
        "name": "h",
        "event": "kafka:a/b",
        "condition": "$.n > 1",
        "colour": "red",
        "active": True,
        "actions": [{**START, "expandInlineJSON": False}],
    }
    assert api.get("/event/handler/h").json() == shown


def test_handlers_are_found_by_event_names_with_special_characters(api):
    api.post("/event", HANDLER)
    api.post("/event", {**HANDLER, "name": "asleep", "active": False})

    def names(path, **query):
        return [each["name"] for each in api.get(path, **query).json()]

    assert names("/event/kafka:a%2Fb") == names("/event/kafka:a/b") == ["h"]
    assert names("/event/kafka%3Aa%2Fb", activeOnly="false") == ["asleep", "h"]
    assert names("/event/unknown:thing") == []


def test_a_list_of_handlers_is_saved_atomically(api):
    # The JavaScript client sends a list even for a single one.
    assert api.post("/event", [HANDLER]).status_code == 200

    assert api.post("/event", [{**HANDLER, "name": "other"}, HANDLER]).status_code == 409
    assert [each["name"] for each in api.get("/event").json()] == ["h"]


def test_names_are_unique_and_unknown_ones_are_not_found(api):
    api.post("/event", HANDLER)

    taken = api.post("/event", HANDLER)
    assert (taken.status_code, taken.json()["message"]) == (409, "EventHandler with name h already exists!")
    assert api.put("/event", {**HANDLER, "name": "other"}).status_code == 404
    assert api.delete("/event/other").status_code == 404
    assert api.get("/event/handler/other").status_code == 404


def test_a_handler_is_updated_and_deleted(api):
    api.post("/event", HANDLER)

    assert api.put("/event", {**HANDLER, "event": "conductor:order:paid"}).status_code == 200
    assert api.get("/event/handler/h").json()["event"] == "conductor:order:paid"
    assert api.delete("/event/h").status_code == 200
    assert api.get("/event").json() == []


@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        ({"name": None}, "name", "Missing event handler name"),
        ({"event": ""}, "event", "Missing event location"),
        ({"actions": None}, "actions", "No actions specified. Please specify at-least one action"),
        ({"actions": [{"action": "dance"}]}, "actions[0].action", None),
        ({"actions": [{"action": "fail_task"}]}, "actions[0].fail_task", None),
        ({"actions": [None]}, "actions[0]", None),
        ({"active": "perhaps"}, "active", None),
    ],
)
@pytest.mark.parametrize(("method", "where"), [("POST", "addEventHandler"), ("PUT", "updateEventHandler")])
def test_a_faulty_handler_is_refused_with_its_place(api, change, path, message, method, where):
    reply = api.send(method, "/event", {**HANDLER, **change})

    errors = reply.json()["validationErrors"]
    assert reply.status_code == 400
    assert f"{where}.eventHandler.{path}" in [error["path"] for error in errors]
    assert message is None or message in [error["message"] for error in errors]


def test_a_handler_without_an_action_records_events_only(api):
    assert api.post("/event", {**HANDLER, "event": "shop:paid", "actions": []}).status_code == 200

    assert api.post("/event/handleIncomingEvent", {"event": "shop:paid", "id": "1"}).status_code == 200
    assert api.get("/event/handler/h").json()["actions"] == []


def test_a_repeated_client_event_is_processed_once(api):
    api.define(simple("a"))
    api.post("/event", {**HANDLER, "event": "shop:paid", "condition": "$.n == 2"})

    for _ in range(2):
        assert api.post("/event/handleIncomingEvent", {"event": "shop:paid", "id": "1", "n": 2}).status_code == 200

    action = EventAction.objects.get()
    assert api.workflow(action.run_id)["input"]["n"] == 2
    assert api.workflow(action.run_id)["event"] == "shop:paid"
    assert EventDelivery.objects.get().duplicates == 1


@pytest.mark.parametrize("body", [{}, {"event": 1}, {"event": "a", "id": 3}, [], "x"])
def test_an_event_without_a_name_is_rejected(api, body):
    assert api.post("/event/handleIncomingEvent", body).status_code == 400


def test_results_of_events_are_returned(api, clock):
    api.define(simple("a"))
    api.post("/event", {**HANDLER, "event": "shop:paid", "condition": "$.n > 1"})
    for n in (1, 2):
        clock.advance(seconds=1)
        api.post("/event/handleIncomingEvent", {"event": "shop:paid", "id": f"m{n}", "n": n})

    done, left = api.get("/event/execution/h").json()

    assert (done["status"], done["messageId"], done["action"]) == ("COMPLETED", "m2", "start_workflow")
    assert done["fullMessagePayload"] == {"event": "shop:paid", "id": "m2", "n": 2}
    assert (left["status"], left["statusDescription"]) == ("SKIPPED", "The condition was not met: $.n > 1")
    assert api.get("/event/execution/h", **{"from": clock.now()}).json() == [done]
    assert api.get("/event/execution/nobody").status_code == 404

    handled, unhandled = api.get("/event/message/shop:paid").json()
    assert (handled["id"], handled["status"], handled["eventExecutions"]) == ("m2", "HANDLED", [done])
    assert (unhandled["id"], unhandled["status"], unhandled["eventExecutions"]) == ("m1", "REJECTED", [left])
    assert api.get("/event/message/shop:other").json() == []


def test_handlers_are_returned_with_their_statistics(api, clock):
    api.define(simple("a"))
    api.post("/event", {**HANDLER, "event": "shop:paid"})
    api.post("/event", {**HANDLER, "name": "asleep", "active": False})
    api.post("/event/handleIncomingEvent", {"event": "shop:paid", "id": "m1"})

    awake = {"name": "h", "event": "shop:paid", "active": True, "numberOfMessages": 1, "numberOfActions": 1}
    assert api.get("/event/execution").json() == {"totalHits": 1, "results": [awake]}
    later = api.get("/event/message", **{"from": clock.now() + 1}).json()
    assert [(each["name"], each["numberOfMessages"]) for each in later["results"]] == [("asleep", 0), ("h", 0)]


def test_a_handler_has_tags(api):
    api.post("/event", HANDLER)
    tag, other = {"key": "team", "value": "a", "type": "METADATA"}, {"key": "team", "value": "b", "type": "METADATA"}

    assert api.put("/event/h/tags", [tag, other]).status_code == 200
    assert api.send("DELETE", "/event/h/tags", [other]).status_code == 200

    assert api.get("/event/h/tags").json() == [tag]
    assert api.put("/event/nobody/tags", [tag]).status_code == 404
    api.delete("/event/h")
    api.post("/event", HANDLER)
    assert api.get("/event/h/tags").json() == []


def test_handlers_are_returned_with_their_tags(api):
    tag = {"key": "team", "value": "a", "type": "METADATA"}
    api.post("/event", [HANDLER, {**HANDLER, "name": "untagged"}])
    api.put("/event/h/tags", [tag])

    for path in ("/event", "/event/kafka:a%2Fb"):
        assert [each.get("tags") for each in api.get(path).json()] == [[tag], None]
    assert api.get("/event/handler/h").json()["tags"] == [tag]


def test_tags_in_the_document_of_a_handler_are_not_stored(api):
    tag = {"key": "team", "value": "a", "type": "METADATA"}
    api.post("/event", HANDLER)
    api.put("/event/h/tags", [tag])
    api.put("/event", api.get("/event/handler/h").json())
    api.send("DELETE", "/event/h/tags", [tag])

    assert "tags" not in api.get("/event/handler/h").json()


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("path", ["/event/queue/config", "/event/queue/config/kafka/orders"])
def test_queues_are_not_configured_through_the_api(api, method, path):
    reply = api.send(method, path, None)

    assert (reply.status_code, reply.json()["status"]) == (404, 404)
