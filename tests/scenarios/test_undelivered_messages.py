"""Messages between runs that cannot be delivered: tried a limited number of times, then kept until an operator acts."""

from contextlib import suppress
from pathlib import Path

import pytest
from django.core.files.storage import storages
from django.db import connection

from conductor_app.access.models import AuditEntry
from conductor_app.core.errors import Conflict, Invalid, NotFound
from conductor_app.core.snapshot import NEVER
from conductor_app.explanations.cause import run_cause
from conductor_app.processes import sweeps
from conductor_app.runs.commands import control
from conductor_app.runs.commands import messages as commands
from conductor_app.runs.commands import messages as delivery
from conductor_app.runs.models import Message, Run
from tests.builders import definition, step, sub_workflow
from tests.scenario import ACTOR, Scenario, run_commit_hooks

CHILD = definition(step("c"), name="child")
HOURS = 3_600_000
DAY = 86_400


@pytest.fixture(autouse=True)
def small_payloads(settings):
    """Store the output of the child outside its row."""
    settings.CONDUCTOR_TASK_PAYLOAD_SOFT_BYTES = 1000
    settings.CONDUCTOR_WORKFLOW_PAYLOAD_SOFT_BYTES = 2000


class Storage:
    """The payload storage, which can be unreachable."""

    def __init__(self, folder: Path, away: Path) -> None:
        self._folder, self._away = folder, away

    def goes_away(self) -> None:
        self._folder.rename(self._away)

    def returns(self) -> None:
        self._away.rename(self._folder)


@pytest.fixture
def storage(settings, tmp_path) -> Storage:
    return Storage(Path(storages[settings.CONDUCTOR_PAYLOAD_STORAGE].location, "engine"), tmp_path / "away")


@pytest.fixture
def few_tries(monkeypatch):
    monkeypatch.setattr(delivery, "MAX_TRIES", 3)


@pytest.fixture
def parent(clock, storage) -> Scenario:
    """Return a run whose child has ended with an output that its parent cannot read."""
    scenario = Scenario(clock, sub_workflow("inner"), others=[CHILD])
    worker = scenario.worker("c")
    worker.polls()
    (child,) = Run.objects.filter(name="child")
    delivery.register_handlers({"child_ended": _after_leaving(storage, delivery.HANDLERS.value["child_ended"])})
    worker.completes(text="x" * 3000)
    assert Run.objects.get(pk=child.pk).status == "COMPLETED"
    return scenario


@pytest.fixture(autouse=True)
def original_handlers():
    handlers = delivery.HANDLERS.value
    yield
    delivery.HANDLERS.value = handlers


def _after_leaving(storage, handler):
    """Return the handler. Before its first call, the storage becomes unreachable."""

    def handle(message):
        delivery.register_handlers({"child_ended": handler})
        storage.goes_away()
        handler(message)

    return handle


def sweep(scenario, times: int) -> None:
    for _ in range(times):
        scenario.clock.advance(seconds=60)
        with run_commit_hooks():
            sweeps.deliver_messages(10)


def test_a_message_that_cannot_be_delivered_is_kept_after_its_last_try(parent, few_tries):
    sweep(parent, 10)

    message = Message.objects.get()
    assert (message.subject, message.to, message.tries, message.due_at) == ("child_ended", parent.id, 3, NEVER)
    assert "storage" in message.error
    assert parent.status == "RUNNING"


@pytest.mark.slow
def test_a_message_survives_an_outage_of_eight_hours(parent, storage, clock):
    began = clock.now()
    while clock.now() - began < 8 * HOURS:
        sweep(parent, 1)
    assert Message.objects.get().due_at < NEVER

    storage.returns()
    sweep(parent, 2)

    assert (parent.status, Message.objects.count()) == ("COMPLETED", 0)


def test_a_process_without_the_payload_storage_leaves_the_message_to_others(parent, storage, settings):
    storage.returns()
    configured = settings.CONDUCTOR_PAYLOAD_STORAGE
    settings.CONDUCTOR_PAYLOAD_STORAGE = ""
    sweep(parent, 2)
    assert "this process was started without PAYLOAD_STORAGE" in Message.objects.get().error
    assert parent.status == "RUNNING"

    settings.CONDUCTOR_PAYLOAD_STORAGE = configured
    sweep(parent, 2)

    assert (parent.status, Message.objects.count()) == ("COMPLETED", 0)


@pytest.mark.parametrize("error", [NotFound(), Conflict("another one")])
def test_a_refusal_does_not_consume_the_message_without_which_a_run_cannot_begin(clock, error):
    def refuse(message):
        delivery.register_handlers({"begin": begin})
        raise error

    begin = delivery.HANDLERS.value["begin"]
    delivery.register_handlers({"begin": refuse})
    # A limit of its definition lets the child begin by a message.
    limited = {**CHILD, "rateLimitConfig": {"rateLimitKey": "k", "concurrentExecLimit": 1}}
    parent = Scenario(clock, sub_workflow("inner"), others=[limited])
    assert parent.child("inner").statuses == {}

    sweep(parent, 1)

    assert parent.child("inner").statuses == {"c": "SCHEDULED"}
    assert Message.objects.count() == 0


def test_the_cause_of_a_run_that_waits_names_the_undelivered_message(parent, few_tries):
    assert "could not be delivered" not in run_cause(parent.row).sentence

    sweep(parent, 4)

    cause = run_cause(parent.row)
    assert cause.sentence.startswith("Waiting: the message `child_ended` to this run could not be delivered (")
    assert (cause.message_id, cause.is_waiting) == (Message.objects.get().pk, True)


def test_the_cause_names_an_undelivered_message_to_a_child(parent, few_tries):
    Message.objects.update(to=parent.child("inner").id, subject="begin", due_at=NEVER, error="MemoryError")

    cause = run_cause(parent.row)

    assert cause.sentence.startswith("Waiting: the message `begin` to its sub-workflow could not be delivered (Memory")
    assert cause.child_id == parent.child("inner").id


def test_a_retried_message_completes_the_run_that_waits_for_it(parent, storage, few_tries):
    sweep(parent, 4)
    storage.returns()

    with run_commit_hooks():
        assert commands.retry_messages([Message.objects.get().pk], ACTOR, "the storage is back") == 1

    assert (parent.status, Message.objects.count()) == ("COMPLETED", 0)
    entry = AuditEntry.objects.get(action="retry_message")
    assert (entry.object_type, entry.object_id, entry.reason) == ("run", parent.id, "the storage is back")
    assert (entry.facts["subject"], entry.facts["tries"]) == ("child_ended", 3)


def test_a_retry_that_fails_again_has_all_tries_again(parent, few_tries):
    sweep(parent, 4)

    with run_commit_hooks():
        commands.retry_messages([Message.objects.get().pk], ACTOR, "perhaps")

    message = Message.objects.get()
    assert (message.tries, message.due_at < NEVER) == (1, True)


def test_a_discarded_message_is_deleted_and_audited(parent, few_tries):
    sweep(parent, 4)

    assert commands.discard_messages([Message.objects.get().pk], ACTOR, "no longer needed") == 1

    assert (Message.objects.count(), parent.status) == (0, "RUNNING")
    assert AuditEntry.objects.get(action="discard_message").object_id == parent.id


def test_a_message_that_is_still_tried_can_be_neither_retried_nor_discarded(parent):
    id = Message.objects.get().pk

    assert commands.retry_messages([id], ACTOR, "now") == 0
    assert commands.discard_messages([id], ACTOR, "now") == 0
    assert Message.objects.filter(pk=id).exists()


@pytest.mark.parametrize("command", [commands.retry_messages, commands.discard_messages])
def test_an_action_needs_a_reason(parent, few_tries, command):
    sweep(parent, 4)

    with pytest.raises(Invalid):
        command([Message.objects.get().pk], ACTOR, " ")


def test_an_undelivered_message_is_kept_while_its_receiver_is_open(parent, few_tries, settings):
    settings.CONDUCTOR_EVENT_RETENTION_DAYS = 7
    sweep(parent, 4)
    parent.clock.advance(seconds=30 * DAY)
    sweeps.prune_events(10)
    assert Message.objects.count() == 1

    parent.terminate()
    sweeps.prune_events(10)

    assert Message.objects.filter(subject="child_ended").count() == 0


def test_an_undelivered_message_that_may_reopen_a_run_is_kept(parent, settings):
    settings.CONDUCTOR_EVENT_RETENTION_DAYS = 7
    parent.terminate()
    Message.objects.all().delete()
    Message.objects.create(to=parent.id, subject="child_reopened", sent_at=1, due_at=NEVER)

    sweeps.prune_events(10)

    assert Message.objects.count() == 1


def test_deleting_a_run_deletes_its_undelivered_messages(parent, few_tries):
    sweep(parent, 4)
    parent.terminate()

    with run_commit_hooks():
        control.remove_run(parent.id, ACTOR)

    assert not Message.objects.filter(to=parent.id).exists()


def test_an_error_that_every_try_would_raise_ends_the_tries_at_once(clock):
    def refuse(message):
        raise Invalid("The limit of the workflow is not a number.")

    delivery.register_handlers({"release": refuse})
    Message.objects.create(subject="release", sent_at=1, due_at=1)

    sweeps.deliver_messages(10)

    message = Message.objects.get()
    assert (message.tries, message.due_at) == (1, NEVER)
    assert message.error == "The limit of the workflow is not a number."


class ProcessEnds(BaseException):
    """The end of a process in the middle of a delivery, which no handler of exceptions sees."""


def test_a_message_whose_delivery_ends_the_process_is_not_delivered_without_end(clock, few_tries):
    deliveries = 0

    def end_process(message):
        nonlocal deliveries
        deliveries += 1
        raise ProcessEnds

    delivery.register_handlers({"release": end_process})
    Message.objects.create(subject="release", sent_at=clock.now(), due_at=clock.now())
    clock.advance(seconds=60)

    for _ in range(10):
        with suppress(ProcessEnds):
            sweeps.deliver_messages(10)
        clock.advance(seconds=60)

    message = Message.objects.get()
    assert (deliveries, message.due_at) == (3, NEVER)
    assert message.error == "The process ended while it delivered the message."


def test_a_message_that_the_sweep_delivers_on_time_costs_no_further_statement(clock, django_assert_num_queries):
    delivery.register_handlers({"release": lambda message: None})
    Message.objects.create(subject="release", sent_at=clock.now(), due_at=clock.now())

    with django_assert_num_queries(3):
        # The premature checks of groups, the due messages, and the message itself.
        sweeps.deliver_messages(10)


def test_undelivered_messages_are_found_by_their_index(clock):
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")

    assert "message_undelivered" in Message.objects.undelivered().filter(to="some-run").explain()
