"""Webhooks: their definitions, and requests of other systems (api §2.1)."""

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest

from conductor_app.events.api import webhooks as webhook_views
from conductor_app.events.commands import webhooks
from conductor_app.events.models import EventDelivery, Webhook
from conductor_app.runs.models import Run
from tests.builders import simple, step_of

SECRET = "a secret"
BODY = json.dumps({"order": 7}).encode()
GITHUB = {"verifier": "HMAC_BASED", "headerKey": "X-Hub-Signature-256", "secretValue": SECRET}
TIMED = {**GITHUB, "timestampHeaderKey": "X-Moment"}


def signed(content: bytes, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()


@pytest.fixture
def webhook(api):
    """Return a function that creates a webhook and returns its id."""

    def add(**fields: Any) -> str:
        reply = api.post("/metadata/webhook", {"name": "shop", **fields})
        assert reply.status_code == 200, reply.content
        return reply.json()["id"]

    return add


def received_events() -> list[tuple[str, Any]]:
    return list(EventDelivery.objects.order_by("id").values_list("event", "payload"))


def test_a_webhook_is_saved_shown_changed_and_deleted(api, webhook):
    id = webhook(**GITHUB, sourcePlatform="GitHub")

    shown = api.get(f"/metadata/webhook/{id}").json()
    assert (shown["name"], shown["verifier"], shown["url"]) == ("shop", "HMAC_BASED", f"/api/webhook/{id}")
    assert [each["id"] for each in api.get("/metadata/webhook").json()] == [id]

    changed = {**GITHUB, "name": "store", "headerKey": "X-Signature", "secretValue": None}
    assert api.put(f"/metadata/webhook/{id}", changed).json()["headerKey"] == "X-Signature"
    # The secret that was not given again is still the one.
    assert api.post(f"/webhook/{id}", BODY, **{"X-Signature": signed(BODY)}).status_code == 200

    assert api.delete(f"/metadata/webhook/{id}").status_code == 200
    assert api.get(f"/metadata/webhook/{id}").status_code == 404
    assert api.delete(f"/metadata/webhook/{id}").status_code == 404
    assert api.put(f"/metadata/webhook/{id}", changed).status_code == 404
    assert api.post(f"/webhook/{id}", BODY).status_code == 404


def test_a_new_webhook_keeps_the_id_that_it_is_given_unless_that_is_taken(api, webhook):
    assert webhook(**GITHUB, id="shop-orders.1") == "shop-orders.1"
    assert api.post("/webhook/shop-orders.1", BODY, **{"X-Hub-Signature-256": signed(BODY)}).status_code == 200

    again = api.post("/metadata/webhook", {**GITHUB, "name": "other", "id": "shop-orders.1"})
    named = api.post("/metadata/webhook", {**GITHUB, "name": "other", "id": "shop"})

    assert (again.status_code, named.status_code, Webhook.objects.get().name) == (409, 409, "shop")
    assert "shop-orders.1 already exists" in again.json()["message"]
    assert len(webhook(**GITHUB, name="third", id="")) == 36


@pytest.mark.parametrize("id", ["..", "a/b", "a b", "x" * 65, "ü"])
def test_a_webhook_gets_no_id_that_an_address_cannot_have(api, id):
    reply = api.post("/metadata/webhook", {**GITHUB, "name": "shop", "id": id})

    assert (reply.status_code, Webhook.objects.count()) == (400, 0)
    assert "id must have 1 to 64" in reply.json()["message"]


def test_a_webhook_carries_tags_as_long_as_it_is_there(api, webhook):
    tags = f"/metadata/webhook/{(id := webhook(**GITHUB))}/tags"
    team, stage = {"key": "team", "value": "shop"}, {"key": "stage", "value": "live"}

    assert api.put(tags, [team, stage]).status_code == 200
    assert api.delete(tags, [stage]).status_code == 200

    assert api.get(tags).json() == [{**team, "type": "METADATA"}]
    api.delete(f"/metadata/webhook/{id}")
    assert (api.get(tags).status_code, api.get("/metadata/tags").json()) == (404, [])


def test_secrets_are_never_returned_and_stored_encrypted(api, webhook):
    id = webhook(verifier="HEADER_BASED", headers={"X-Key": SECRET}, secretValue=SECRET)

    row = Webhook.objects.get(pk=id)
    assert SECRET not in api.get(f"/metadata/webhook/{id}").content.decode()
    assert api.get(f"/metadata/webhook/{id}").json()["headers"] == {"X-Key": ""}
    assert SECRET not in f"{row.document}{row.sealed}"


def test_names_are_unique(api, webhook):
    webhook(**GITHUB)

    assert api.post("/metadata/webhook", {"name": "shop", **GITHUB}).status_code == 409


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({**GITHUB, "name": " "}, "name"),
        ({**GITHUB, "name": "x" * 201}, "name"),
        ({"name": "a"}, "verifier"),
        ({"name": "a", "verifier": "TRUST"}, "verifier"),
        ({**GITHUB, "name": "a", "secretValue": ""}, "secretValue"),
        ({**GITHUB, "name": "a", "headerKey": ""}, "headerKey"),
        ({"name": "a", "verifier": "HEADER_BASED"}, "headers"),
    ],
)
def test_a_faulty_webhook_is_refused_with_its_place(api, fields, path):
    reply = api.post("/metadata/webhook", fields)

    assert reply.status_code == 400
    assert f"createWebhook.webhookConfig.{path}" in [each["path"] for each in reply.json()["validationErrors"]]


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


RIGHT = [
    (GITHUB, {"X-Hub-Signature-256": f"sha256={signed(BODY)}"}),
    (GITHUB, {"X-Hub-Signature-256": signed(BODY).upper()}),
    (GITHUB, {"x-hub-signature-256": base64.b64encode(bytes.fromhex(signed(BODY))).decode()}),
    ({"verifier": "HEADER_BASED", "headers": {"X-Key": "k", "X-Other": "o"}}, {"x-key": "k", "x-other": "o"}),
    ({"verifier": "BASIC", "secretKey": "me", "secretValue": SECRET}, {"Authorization": basic("me", SECRET)}),
]
WRONG = [
    (GITHUB, {}),
    (GITHUB, {"X-Hub-Signature-256": signed(BODY, "another secret")}),
    (GITHUB, {"X-Hub-Signature-256": signed(b"another body")}),
    (GITHUB, {"X-Hub-Signature-256": "ünlesbar"}),
    ({"verifier": "HEADER_BASED", "headers": {"X-Key": "k", "X-Other": "o"}}, {"x-key": "k"}),
    ({"verifier": "HEADER_BASED", "headers": {"X-Key": "k"}}, {"x-key": "K"}),
    ({"verifier": "BASIC", "secretKey": "me", "secretValue": SECRET}, {"Authorization": basic("me", "x")}),
    ({"verifier": "BASIC", "secretKey": "me", "secretValue": SECRET}, {}),
    ({"verifier": "SLACK_BASED", "secretValue": SECRET}, {"X-Slack-Signature": f"v0={signed(BODY)}"}),
    ({"verifier": "STRIPE", "secretValue": SECRET}, {"Stripe-Signature": "t=,v1="}),
]


@pytest.mark.parametrize(("fields", "headers"), RIGHT)
def test_a_correctly_signed_message_is_processed_as_an_event(api, webhook, fields, headers):
    id = webhook(**fields)

    reply = api.post(f"/webhook/{id}", BODY, **headers)

    assert (reply.status_code, reply.content) == (200, b"")
    assert received_events() == [("webhook:shop", {"order": 7})]


@pytest.mark.parametrize(("fields", "headers"), WRONG)
def test_an_unverified_message_is_rejected_without_details(api, webhook, fields, headers):
    id = webhook(**fields)

    reply = api.post(f"/webhook/{id}", BODY, **headers)

    assert reply.status_code == 401
    assert reply.json()["message"] == "The signature of the webhook is wrong or too old."
    assert received_events() == []


def slack(moment: str, body: bytes = BODY) -> dict[str, str]:
    return {
        "X-Slack-Request-Timestamp": moment,
        "X-Slack-Signature": f"v0={signed(b'v0:%s:%s' % (moment.encode(), body))}",
    }


def stripe(moment: str) -> dict[str, str]:
    right = signed(b"%s.%s" % (moment.encode(), BODY))
    return {"Stripe-Signature": f"t={moment},v1={signed(BODY)},v1={right}"}


def timed(moment: str) -> dict[str, str]:
    return {"X-Moment": moment, "X-Hub-Signature-256": signed(b"%s.%s" % (moment.encode(), BODY))}


DATED = {
    "slack": ({"verifier": "SLACK_BASED", "secretValue": SECRET}, slack),
    "stripe": ({"verifier": "STRIPE", "secretValue": SECRET}, stripe),
    "our own": (TIMED, timed),
}


@pytest.mark.parametrize("way", DATED)
def test_a_timestamped_message_is_processed_once_while_it_is_recent(api, webhook, clock, way):
    fields, sign = DATED[way]
    id = webhook(**fields)
    moment = str(clock.now() // 1000)

    for _ in range(2):
        assert api.post(f"/webhook/{id}", BODY, **sign(moment)).status_code == 200
    clock.advance(seconds=299)
    assert api.post(f"/webhook/{id}", BODY, **sign(moment)).status_code == 200
    clock.advance(seconds=2)
    assert api.post(f"/webhook/{id}", BODY, **sign(moment)).status_code == 401

    assert len(received_events()) == 1
    assert EventDelivery.objects.get().duplicates == 2


def test_the_challenge_of_slack_is_answered(api, webhook, clock):
    id, asked = (
        webhook(verifier="SLACK_BASED", secretValue=SECRET),
        b'{"type": "url_verification", "challenge": "3eZb"}',
    )

    reply = api.post(f"/webhook/{id}", asked, **slack(str(clock.now() // 1000), asked))

    assert (reply.status_code, reply["Content-Type"].split(";")[0], reply.content) == (200, "text/plain", b"3eZb")
    assert api.post(f"/webhook/{id}", asked, **slack(str(clock.now() // 1000))).status_code == 401
    assert received_events() == []


@pytest.mark.parametrize("moment", ["", "soon", "-5", "9" * 30, "1e9"])
def test_an_invalid_timestamp_is_rejected(api, webhook, moment):
    id = webhook(**TIMED)

    assert api.post(f"/webhook/{id}", BODY, **timed(moment)).status_code == 401


def test_a_message_with_a_sender_id_is_processed_once(api, webhook):
    id = webhook(**GITHUB)
    headers = {"X-Hub-Signature-256": signed(BODY)}

    for number in ("1", "1", "2"):
        api.post(f"/webhook/{id}", BODY, **headers, **{"X-GitHub-Delivery": number})
    for _ in range(2):
        api.post(f"/webhook/{id}", BODY, **headers)

    assert len(received_events()) == 4


@pytest.mark.parametrize(
    ("body", "payload"),
    [
        (b"", {}),
        (b"[1]", {"body": [1]}),
        (b"a=1&b=2", {"body": "a=1&b=2"}),
        (b"\xff", {"body": "\ufffd"}),
        (b"7", {"body": 7}),
    ],
)
def test_any_body_is_an_event(api, webhook, body, payload):
    id = webhook(verifier="HEADER_BASED", headers={"X-Key": "k"})

    assert api.post(f"/webhook/{id}", body, **{"X-Key": "k"}).status_code == 200

    assert received_events() == [("webhook:shop", payload)]


def test_a_webhook_that_is_too_large_is_refused(api, webhook, monkeypatch):
    monkeypatch.setattr(webhook_views, "MAX_BODY_BYTES", 10)
    id = webhook(verifier="HEADER_BASED", headers={"X-Key": "k"})

    assert api.post(f"/webhook/{id}", b"x" * 11, **{"X-Key": "k"}).status_code == 413


def test_a_webhook_starts_the_workflows_that_it_names_and_those_of_handlers(api, webhook):
    api.define(simple("a"))
    api.define(simple("a"), name="other")
    start = {"action": "start_workflow", "start_workflow": {"name": "other", "input": {"n": "${order}"}}}
    api.post("/event", {"name": "h", "event": "webhook:shop", "active": True, "actions": [start]})
    id = webhook(verifier="HEADER_BASED", headers={"X-Key": "k"}, workflowsToStart={"order": 1})

    api.post(f"/webhook/{id}", BODY, **{"X-Key": "k"})

    inputs = dict(Run.objects.values_list("name", "input"))
    assert (inputs["order"]["order"], inputs["other"]["n"]) == (7, 7)


def test_a_webhook_requires_no_login_and_is_reachable_at_the_root_path(api, webhook, settings):
    id = webhook(verifier="HEADER_BASED", headers={"X-Key": "k"})
    settings.CONDUCTOR_API_ACCESS = "token"

    reply = api.client.post(f"/webhook/{id}", BODY, "application/json", headers={"X-Key": "k"})

    assert reply.status_code == 200
    assert api.get(f"/metadata/webhook/{id}").status_code == 401


HEADERS = {"verifier": "HEADER_BASED", "headers": {"X-Key": SECRET}}


@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        (HEADERS, {**GITHUB, "secretValue": None}, "secretValue"),
        (GITHUB, {"verifier": "HEADER_BASED"}, "headers"),
        (GITHUB, {"verifier": "HEADER_BASED", "headers": {"X-Key": ""}}, "headers"),
    ],
)
def test_another_verifier_requires_its_own_secret(api, webhook, before, after, path):
    id = webhook(**before)

    reply = api.put(f"/metadata/webhook/{id}", {"name": "shop", **after})

    assert reply.status_code == 400
    assert [each["path"] for each in reply.json()["validationErrors"]] == [f"updateWebhook.webhookConfig.{path}"]


def test_a_masked_webhook_that_is_sent_back_preserves_its_headers(api, webhook):
    id = webhook(**HEADERS)

    assert api.put(f"/metadata/webhook/{id}", api.get(f"/metadata/webhook/{id}").json()).status_code == 200

    assert api.post(f"/webhook/{id}", BODY).status_code == 401
    assert api.post(f"/webhook/{id}", BODY, **{"X-Key": SECRET}).status_code == 200


def test_a_missing_previous_secret_verifies_nothing(api, webhook):
    id = webhook(**HEADERS)
    webhooks.rotate_secret(id, {"headers": {"X-Key": "another"}}, 3600, "olga")
    assert api.put(f"/metadata/webhook/{id}", {"name": "shop", **GITHUB}).status_code == 200

    assert api.post(f"/webhook/{id}", BODY, **{"X-Hub-Signature-256": signed(BODY, "")}).status_code == 401
    assert api.post(f"/webhook/{id}", BODY, **{"X-Hub-Signature-256": signed(BODY)}).status_code == 200


def test_an_event_completes_the_task_that_waits_for_it_over_http(api, webhook):
    wait = step_of("WAIT_FOR_WEBHOOK", "paid", inputParameters={"matches": {"$['order']": "${workflow.input.order}"}})
    api.define(wait)
    workflow_id = api.start(input={"order": 7})
    id = webhook(**GITHUB, receiverWorkflowNamesToVersions={"order": 1})
    signature = {"X-Hub-Signature-256": signed(BODY)}

    assert api.post(f"/webhook/{id}", BODY).status_code == 401
    assert api.workflow(workflow_id)["tasks"][0]["status"] == "IN_PROGRESS"
    assert api.post(f"/webhook/{id}", BODY, **signature).status_code == 200

    workflow = api.workflow(workflow_id)
    assert (workflow["status"], workflow["tasks"][0]["outputData"]) == ("COMPLETED", {"order": 7})


def test_validate_checks_the_matches_of_a_webhook_step(api):
    def findings(**inputs: Any) -> list[str]:
        wait = step_of("WAIT_FOR_WEBHOOK", "paid", inputParameters=inputs)
        reply = api.post("/metadata/workflow/validate", {"name": "order", "ownerEmail": "a@b.c", "tasks": [wait]})
        return [each["message"] for each in reply.json()["findings"]] if reply.content else []

    assert findings(matches={"$['order']": 7}) == []
    assert findings(matches="${workflow.input.matches}") == []
    assert "has no `matches`" in findings()[0]
    assert "`order` cannot be read" in findings(matches={"order": 7})[0]
    assert "must be an object" in findings(matches=[7])[0]


def test_an_expression_in_a_header_is_refused_because_nothing_would_resolve_it(api, clock):
    webhook = {"name": "w", "verifier": "HEADER_BASED", "headers": {"X-Token": "${workflow.secrets.KEY}"}}

    refused = api.post("/metadata/webhook", webhook)

    assert (refused.status_code, "is not resolved" in refused.json()["message"]) == (400, True)
