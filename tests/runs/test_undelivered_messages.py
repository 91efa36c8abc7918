"""The page of undelivered messages: what it lists, who may read payloads, and who may retry or discard."""

import pytest
from django.test import Client

from conductor_app.access.commands import secrets as secrets_and_variables
from conductor_app.access.models import AuditEntry
from conductor_app.core.snapshot import NEVER
from conductor_app.runs.models import Message
from conductor_app.tasks.models import SweepPass
from tests.access.users import client_with
from tests.builders import definition, step, sub_workflow
from tests.page_text import html, page_text, run_url
from tests.scenario import Scenario, run_commit_hooks

pytestmark = pytest.mark.django_db
LIST = "/admin/undelivered-messages/"


def undelivered(subject: str = "started", to: str = "", **fields) -> Message:
    values = {"sent_at": 1, "due_at": NEVER, "tries": 500, "error": "MemoryError", **fields}
    return Message.objects.create(subject=subject, to=to, **values)


def page_of(message: Message) -> str:
    return f"{LIST}{message.pk}/"


@pytest.fixture
def waiting(clock) -> Scenario:
    """Return a run that waits for its child."""
    return Scenario(clock, sub_workflow("s"), others=[definition(step("x"), name="child")])


def act(client: Client, do: str, *messages: Message, address: str = LIST, **form):
    with run_commit_hooks():
        form = {"reason": "as agreed", "message": [each.pk for each in messages], **form}
        return client.post(address, {"do": do, **form}, follow=True)


def test_the_list_shows_receiver_tries_error_and_size(operator, waiting):
    undelivered("child_ended", waiting.id, sent_at=waiting.clock.now(), facts={"attempt": "a" * 2000})
    undelivered("publish", "kafka:orders", error="Connection refused")

    page = operator.get(LIST)

    assert f'/admin/conductor/run/{waiting.id}/change/"' in html(page)
    text = page_text(page)
    assert "a sub-workflow has ended" in text and "500" in text and "MemoryError" in text and "2.0 kB" in text
    assert "Other system kafka:orders" in text and "Connection refused" in text


def test_messages_that_are_still_tried_are_not_listed(operator, clock):
    undelivered(due_at=clock.now() + 1)

    assert "Every message was delivered, or is still being tried." in page_text(operator.get(LIST))


def test_the_list_can_be_filtered(operator, clock):
    undelivered("started", "some-run")
    undelivered("publish", "kafka:orders", error="Connection refused")

    for query in ["kind=sink", "receiver=kafka:orders", "error=refused"]:
        text = page_text(operator.get(f"{LIST}?{query}"))

        assert "kafka:orders" in text and "some-run" not in text, query


def test_a_long_list_has_pages(operator, clock):
    messages = [undelivered("started", f"run-{number}-") for number in range(60)]

    first = page_text(operator.get(LIST))
    second = page_text(operator.get(f"{LIST}?after={messages[10].pk}"))

    assert "run-59-" in first and "run-9-" not in first and "Next" in first
    assert "run-9-" in second and "run-59-" not in second and "Previous" in second


def test_a_retry_delivers_the_message_and_is_audited(operator, waiting):
    message = undelivered("terminate", waiting.id, facts={"reason": "its parent has ended"})

    page = act(operator, "retry", message)

    assert "1 message is tried again." in page_text(page)
    assert (waiting.status, Message.objects.count()) == ("TERMINATED", 0)
    entry = AuditEntry.objects.get(action="retry_message")
    assert (entry.actor, entry.object_id, entry.reason) == ("olga", waiting.id, "as agreed")


def test_selected_messages_are_discarded_and_others_kept(operator, clock):
    first, second, kept = (undelivered("started", f"run-{name}") for name in "abc")

    page = act(operator, "discard", first, second)

    assert "2 messages discarded." in page_text(page)
    assert [message.pk for message in Message.objects.all()] == [kept.pk]


def test_all_messages_that_match_the_filter_are_discarded(operator, clock):
    for number in range(60):
        undelivered("publish", "kafka:orders", sent_at=number)
    kept = undelivered("started", "some-run")

    act(operator, "discard", address=f"{LIST}?kind=sink", all="on")

    assert [message.pk for message in Message.objects.all()] == [kept.pk]


def test_a_message_is_discarded_on_its_page(operator, clock):
    message = undelivered()

    act(operator, "discard", address=page_of(message))

    assert not Message.objects.exists()


def test_an_incomplete_form_is_refused(operator, clock):
    message = undelivered()
    for form, text in [
        ({"reason": " "}, "Enter a reason."),
        ({"message": []}, "Select at least one message."),
        ({"do": "melt"}, "Missing or unknown action."),
    ]:
        page = act(operator, form.pop("do", "discard"), message, **form)

        assert text in page_text(page), form
        assert Message.objects.exists(), form


@pytest.mark.parametrize("do", ["retry", "discard"])
def test_a_viewer_can_read_the_list_and_change_nothing(viewer, waiting, do):
    message = undelivered("started", waiting.id)

    assert 'name="message"' not in html(viewer.get(LIST))
    assert 'name="do"' not in html(viewer.get(page_of(message)))
    assert act(viewer, do, message).status_code == 403
    assert act(viewer, do, address=page_of(message)).status_code == 403
    assert Message.objects.get(pk=message.pk).due_at == NEVER


def test_an_action_on_many_needs_the_permission_on_each_receiver(clock):
    to_run, to_sink = undelivered("started", "some-run"), undelivered("publish", "kafka:orders")
    client = client_with("view_message", "change_run")

    assert act(client, "discard", to_run, to_sink).status_code == 403
    assert Message.objects.count() == 2
    assert act(client, "discard", to_run).status_code == 200
    assert Message.objects.get().pk == to_sink.pk


def test_the_payload_is_for_those_who_may_see_the_receiver(clock):
    message = undelivered("started", "some-run", facts={"attempt": "visible-value"})
    client = client_with("view_message")

    text = page_text(client.get(page_of(message)))
    assert "visible-value" not in text and "Only users who may see the receiver" in text

    reader = client_with("view_message", "view_run", name="vera")
    assert "visible-value" in page_text(reader.get(page_of(message)))


def test_secrets_in_a_payload_are_redacted(operator, clock, monkeypatch):
    secrets_and_variables.put_secret("TOKEN", "hunter2-of-the-shop", "ann")
    monkeypatch.setenv("CONDUCTOR_SECRET_OTHER", "swordfish-of-the-shop")
    payload = {"header": "Bearer hunter2-of-the-shop", "other": "swordfish-of-the-shop", "total": 12}
    message = undelivered("publish", "kafka:orders", facts={"sink": "kafka:orders", "payload": payload})

    text = page_text(operator.get(page_of(message)))

    assert "Bearer ***" in text and "hunter2" not in text and "swordfish" not in text


def test_a_large_payload_is_not_loaded_for_the_page(operator, clock):
    message = undelivered("publish", "kafka:orders", facts={"text": "x" * 100_000})

    assert "too large for a page" in page_text(operator.get(page_of(message)))


def test_a_delivered_message_has_no_page(operator, clock):
    assert operator.get(f"{LIST}12345/").status_code == 404


def test_the_pages_need_the_permission_on_messages(clock):
    client = client_with("view_run")

    assert client.get(LIST).status_code == 403
    assert client.get(page_of(undelivered())).status_code == 403


def test_the_page_of_a_waiting_run_links_to_the_message(operator, waiting):
    message = undelivered("started", waiting.id)

    page = operator.get(run_url(waiting.row))

    assert "the message started to this run could not be delivered (MemoryError)" in page_text(page)
    assert page_of(message) in html(page)


def test_the_overview_the_status_bar_and_the_system_page_show_the_number(operator, clock):
    now = clock.now()
    SweepPass.objects.create(name="wake_runs", began_at=now, ended_at=now)
    undelivered("started", "run-a")
    undelivered("publish", "kafka:orders")

    overview, system = page_text(operator.get("/admin/")), page_text(operator.get("/admin/system/"))

    assert "2 messages could not be delivered and are not tried again." in overview
    assert "Undelivered messages 2 messages could not be delivered" in overview
    assert "2 messages could not be delivered and are not tried again. See Undelivered messages." in system


def test_the_list_takes_few_queries(operator, clock, django_assert_max_num_queries):
    for number in range(50):
        undelivered("started", f"run-{number}")

    operator.get(LIST)
    with django_assert_max_num_queries(9):
        operator.get(LIST)
