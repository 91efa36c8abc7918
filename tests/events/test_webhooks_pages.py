"""Webhooks on the pages: created, their secrets rotated without a gap, deleted."""

import base64
import re
import shlex
import subprocess

import pytest
from django.test import Client

from conductor_app.access.models import AuditEntry
from conductor_app.definitions.models import WorkflowDefinition
from conductor_app.events.models import EventDelivery, Webhook
from tests.access.users import author_who_starts
from tests.builders import simple
from tests.page_text import html, page_text
from tests.scenario import define_workflow, run_commit_hooks, start_run

pytestmark = pytest.mark.django_db
LIST = "/admin/webhooks/"
FORM = {"name": "shop", "verifier": "BASIC", "user": "ann", "starts": "ship = 2\nbill"}


@pytest.fixture(autouse=True)
def named_workflows(db):
    for name in ("ship", "bill"):
        for version in (1, 2):
            define_workflow(name, simple("pack"), version=version)


def create_webhook(client: Client, **form: str) -> str:
    """Create a webhook and return the secret that the page shows once."""
    answer = client.post(f"{LIST}new/", {**FORM, **form})
    found = re.search(r"<pre[^>]*>([^<]+)</pre>", html(answer))
    assert found, page_text(answer)
    return found[1]


def send_event(secret: str) -> int:
    pair = base64.b64encode(f"ann:{secret}".encode()).decode()
    address = f"/api/webhook/{Webhook.objects.get().pk}"
    return (
        Client()
        .post(address, b"{}", content_type="application/json", headers={"authorization": f"Basic {pair}"})
        .status_code
    )


def page() -> str:
    return f"{LIST}{Webhook.objects.get().pk}/"


def test_an_author_creates_a_webhook_whose_secret_is_displayed_once(clock):
    author = author_who_starts("*")

    secret = create_webhook(author)

    row = Webhook.objects.get()
    assert row.document["workflowsToStart"] == {"ship": 2, "bill": ""}
    assert AuditEntry.objects.get(object_type="webhook").action == "create"
    assert send_event(secret) == 200 and EventDelivery.objects.get().event == "webhook:shop"
    for address in (LIST, page()):
        assert secret not in html(author.get(address))
        assert f"http://testserver/api/webhook/{row.pk}" in page_text(author.get(address))


@pytest.mark.parametrize(
    "form",
    [
        {"verifier": "BASIC"},
        {"verifier": "HEADER_BASED", "headers": "X-Key: s'1"},
        {"verifier": "HMAC_BASED", "header_key": "X-Sign"},
        {"verifier": "HMAC_BASED", "header_key": "X-Sign", "timestamp_key": "X-Time"},
    ],
)
def test_the_command_of_the_page_sends_an_event(operator, form, tmp_path):
    secret = form.get("headers", "").removeprefix("X-Key: ") or "s'1"
    operator.post(f"{LIST}new/", {**FORM, "secret": secret, **form})
    command = operator.get(page()).context["sample"].replace("'SECRET'", shlex.quote(secret))
    command = command.replace("': SECRET'", f"': '{shlex.quote(secret)}")

    shown = subprocess.run(
        ["sh", "-c", f"curl() {{ printf '%s\\n' \"$@\"; }}\n{command}"], capture_output=True, check=True
    )

    _post, _method, address, *rest = shown.stdout.decode().splitlines()
    options = list(zip(rest[::2], rest[1::2], strict=True))
    headers = dict(value.split(": ", 1) for name, value in options if name == "-H")
    if pair := dict(options).get("-u"):
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    path = address.removeprefix("http://testserver")
    kind = headers.pop("Content-Type")
    answer = Client().post(path, dict(options)["-d"].encode(), content_type=kind, headers=headers)
    assert answer.status_code == 200 and EventDelivery.objects.get().event == "webhook:shop"


def test_a_secret_is_changed_without_a_gap(operator, clock):
    old = create_webhook(operator)

    answer = operator.post(page(), {"do": "rotate", "keep": "hour"})
    new = re.search(r"<pre[^>]*>([^<]+)</pre>", html(answer))[1]

    assert old != new and (send_event(old), send_event(new)) == (200, 200)
    assert "The previous secret is valid until" in page_text(operator.get(page()))
    clock.advance(seconds=3601)
    assert (send_event(old), send_event(new)) == (401, 200)
    assert "still good" not in page_text(operator.get(page()))
    assert AuditEntry.objects.get(action="rotate").actor == "olga"


def test_a_leaked_secret_is_replaced_at_once(operator, clock):
    old = create_webhook(operator)

    operator.post(page(), {"do": "rotate", "keep": "0", "secret": "typed by hand"})

    assert (send_event(old), send_event("typed by hand")) == (401, 200)


def test_rejected_messages_are_counted(operator, clock):
    create_webhook(operator)

    send_event("wrong")
    send_event("wrong")
    clock.advance(seconds=2)
    send_event("wrong")

    assert Webhook.objects.get().refusals == 2
    assert "2 times, last" in page_text(operator.get(LIST))


def test_headers_with_secret_values_are_changed_too(operator, clock):
    operator.post(f"{LIST}new/", {"name": "shop", "verifier": "HEADER_BASED", "headers": "X-Key: one"})

    operator.post(page(), {"do": "rotate", "keep": "0", "headers": "X-Key: two"})

    row = Webhook.objects.get()
    assert row.document["headers"] == {"X-Key": ""}
    sends = {
        value: Client().post(f"/api/webhook/{row.pk}", headers={"x-key": value}).status_code for value in ("one", "two")
    }
    assert sends == {"one": 401, "two": 200}


def test_a_webhook_is_changed_and_deleted(operator, clock):
    secret = create_webhook(operator)

    operator.post(page(), {**FORM, "platform": "Shopkeeper", "starts": ""})
    row = Webhook.objects.get()
    assert row.document["sourcePlatform"] == "Shopkeeper" and not row.document["workflowsToStart"]
    assert send_event(secret) == 200
    operator.post(page(), {"do": "delete"})
    assert not Webhook.objects.exists()


def test_a_new_webhook_suggests_the_header_of_github(operator):
    assert 'value="X-Hub-Signature-256"' in html(operator.get(f"{LIST}new/"))


def test_errors_are_reported_at_their_fields(operator):
    for form, said in [
        ({"name": ""}, "This field is required"),
        ({"verifier": "ODD"}, "Select a valid choice"),
        ({"verifier": "HMAC_BASED", "header_key": ""}, "This authentication requires it. Signature header"),
        ({"verifier": "SLACK_BASED"}, "This authentication requires it. Secret"),
        ({"headers": "X-Key"}, "Line 1 is invalid"),
        ({"starts": "ship = soon"}, "Not a valid version: soon"),
        ({"starts": "shp"}, "Workflow shp does not exist. Did you mean ship?"),
        ({"starts": "ship = 3"}, "Version 3 of workflow ship does not exist."),
        ({"receivers": "billing"}, "Workflow billing does not exist. Did you mean bill?"),
    ]:
        assert said in page_text(operator.post(f"{LIST}new/", {**FORM, **form})), form
        assert not Webhook.objects.exists(), form


def test_a_viewer_sees_webhooks_and_cannot_change_them(operator, viewer, clock):
    create_webhook(operator)

    assert "you need the permission to change webhooks" in page_text(viewer.get(page()))
    assert viewer.post(page(), {"do": "delete"}).status_code == 403
    assert viewer.get(f"{LIST}new/").status_code == 403
    assert viewer.get(f"{LIST}none/").status_code == 404


def test_pages_of_webhooks_take_few_queries(operator, clock, django_assert_max_num_queries):
    send_event(create_webhook(operator))
    for address in (LIST, page()):
        with django_assert_max_num_queries(15):
            operator.get(address)


def test_the_page_lists_the_tasks_that_wait_for_an_event_and_the_form_names_their_workflows(operator, clock):
    waits = {"type": "WAIT_FOR_WEBHOOK", "name": "paid", "taskReferenceName": "paid"}
    define_workflow("order", {**waits, "inputParameters": {"matches": {"$['order']": "<7>"}}})
    create_webhook(operator, receivers="order\nbill = 2")
    assert Webhook.objects.get().document["receiverWorkflowNamesToVersions"] == {"order": 0, "bill": 2}
    assert "Tasks waiting for an event" not in page_text(operator.get(page()))
    run = start_run("order")

    shown = page_text(operator.get(page()))

    assert "Tasks waiting for an event" in shown and "order v1" in shown and "$['order'] = <7>" in shown
    assert "has been waiting for a webhook event" in page_text(operator.get(f"/admin/conductor/run/{run}/change/"))


def test_a_definition_whose_webhook_is_missing_displays_a_warning(operator, clock):
    waits = {"type": "WAIT_FOR_WEBHOOK", "name": "paid", "taskReferenceName": "paid"}
    define_workflow("order", {**waits, "inputParameters": {"matches": {"$['order']": 7}}})
    address = f"/admin/conductor/workflowdefinition/{WorkflowDefinition.objects.get(name='order').pk}/change/"
    assert "No webhook names" in page_text(operator.get(address))

    create_webhook(operator, receivers="order")

    assert "No webhook names" not in page_text(operator.get(address))


def test_the_list_shows_the_last_error_of_a_webhook(operator, clock):
    secret = create_webhook(operator)
    assert "Last error Rejected shop" in page_text(operator.get(LIST))
    WorkflowDefinition.objects.all().delete()

    with run_commit_hooks():
        send_event(secret)

    assert "No such workflow" in page_text(operator.get(LIST))
