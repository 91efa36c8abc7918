"""An operator can end every run. The timers of a run that cannot continue are tried again after growing delays."""

import logging
from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import reverse

from conductor_app.core import decide
from conductor_app.core.errors import PayloadMissing, StepRefused
from conductor_app.core.rules import RULES
from conductor_app.core.snapshot import NEVER
from conductor_app.db import transient_errors as transient_faults
from conductor_app.payloads.store import PayloadOverLimit
from conductor_app.processes import sweeps
from conductor_app.runs.commands import messages as commands
from conductor_app.runs.commands.start import StartRequest, start_run
from conductor_app.runs.models import Attempt, Message, Run
from tests.builders import definition, step, wait
from tests.scenario import ACTOR, RunView, Scenario, register_definitions, run_commit_hooks

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
ERRORS = {
    "bug": KeyError("x"),
    "endless recursion": RecursionError("maximum recursion depth exceeded"),
    "memory": MemoryError(),
    "payload over limit": PayloadOverLimit("The input of task a", 12_000_043, 10_000_000),
    "payload missing": PayloadMissing("The payload task/input/x.json is missing in the storage."),
    "refused step": StepRefused("The step cannot be entered."),
}


@pytest.fixture(autouse=True)
def _sweeps_of_production(settings, monkeypatch):
    settings.CONDUCTOR_RAISES_IN_SWEEPS = False
    monkeypatch.setattr(transient_faults, "REPEAT_DELAYS", (0, 0))


def raising(error: Exception):
    def rule(run, ctx, now) -> Iterator:
        raise error

    return rule


def replace_rule(patch: pytest.MonkeyPatch, place: int, error: Exception) -> None:
    rules = list(RULES)
    rules[place] = raising(error)
    patch.setattr(decide, "RULES", tuple(rules))
    patch.setattr(decide, "RULES_WHILE_RESTING", (raising(error),))


@pytest.mark.parametrize("is_due", [True, False])
@pytest.mark.parametrize("kind", ERRORS)
def test_a_run_whose_rules_fail_can_be_terminated_and_removed(kind, is_due, clock):
    register_definitions(definition(wait("w", duration="2 seconds"), step("a"), name="order"))
    client = Client(raise_request_exception=False)
    for place, rule in enumerate(RULES):
        run = start("order")
        clock.advance(seconds=3 if is_due else 0)
        with pytest.MonkeyPatch.context() as patch:
            replace_rule(patch, place, ERRORS[kind])
            sweeps.sweep_once()
            if run.status == "RUNNING":
                reply = client.delete(f"/api/workflow/{run.id}?reason=enough")
                assert (reply.status_code, run.status) == (200, "TERMINATED"), (rule, reply.content)
            reply = client.delete(f"/api/workflow/{run.id}/remove")

        assert (reply.status_code, Run.objects.filter(pk=run.id).count()) == (200, 0), (rule, reply.content)
        assert not Message.objects.filter(to=run.id).exists()


def start(name: str) -> RunView:
    return RunView(start_run(StartRequest(name), ACTOR))


@pytest.mark.parametrize("is_due", [True, False])
@pytest.mark.parametrize("kind", ERRORS)
def test_an_open_run_whose_rules_fail_can_be_removed_at_once(kind, is_due, clock, monkeypatch):
    register_definitions(definition(wait("w", duration="2 seconds"), step("a"), name="order"))
    run = start("order")
    clock.advance(seconds=3 if is_due else 0)
    replace_rule(monkeypatch, 1, ERRORS[kind])

    reply = Client().delete(f"/api/workflow/{run.id}/remove?archiveWorkflow=false")

    assert (reply.status_code, Run.objects.count()) == (200, 0)


def test_a_run_with_a_failing_timer_can_be_paused(clock, monkeypatch):
    scenario = Scenario(clock, wait("w", duration="2 seconds"), step("a"))
    clock.advance(seconds=3)
    replace_rule(monkeypatch, 1, KeyError("x"))

    scenario.pause()

    assert (scenario.status, scenario.statuses) == ("PAUSED", {"w": "IN_PROGRESS"})


def test_a_run_whose_output_is_too_large_is_terminated_without_it(clock, settings):
    settings.CONDUCTOR_WORKFLOW_PAYLOAD_MAX_BYTES = 100_000
    twice = {"one": "${workflow.input.text}", "two": "${workflow.input.text}"}
    scenario = Scenario(clock, step("a"), outputParameters=twice, input={"text": "x" * 90_000})

    scenario.terminate("enough")

    assert (scenario.status, scenario.reason, scenario.output) == ("TERMINATED", "enough", {})


@pytest.mark.parametrize("ends", ["sweep", "operator"])
def test_a_run_whose_next_step_is_too_large_ends_after_a_timer(ends, clock, settings):
    settings.CONDUCTOR_TASK_PAYLOAD_MAX_BYTES = 100_000
    steps = wait("w", duration="2 seconds"), step("a", inputs={"l": ["${workflow.input.s}"] * 12})
    scenario = Scenario(clock, *steps, input={"s": "x" * 20_000})
    clock.advance(seconds=3)

    if ends == "sweep":
        sweeps.sweep_once()
        assert scenario.reason.startswith("The input of task a would take 24")
    else:
        scenario.terminate("enough")

    assert scenario.status == {"sweep": "FAILED", "operator": "TERMINATED"}[ends]


@pytest.fixture
def stuck(clock, monkeypatch) -> Scenario:
    """Return a run whose due timer exhausts the memory at each try."""
    scenario = Scenario(clock, wait("w", duration="2 seconds"), step("a"))
    clock.advance(seconds=3)
    replace_rule(monkeypatch, 1, MemoryError())
    return scenario


def sweep_for(clock, seconds: int) -> None:
    for _ in range(seconds):
        sweeps.sweep_once()
        clock.advance(seconds=1)


def test_a_timer_that_cannot_be_handled_is_tried_again_after_growing_delays(stuck, clock, caplog):
    with caplog.at_level(logging.ERROR):
        sweep_for(clock, 300)

    tries = [record for record in caplog.records if record.message == "sweep_item_failed"]
    assert len(tries) == 10
    [message] = Message.objects.all()
    assert (message.tries, message.error, message.to) == (10, "MemoryError: ", stuck.id)
    assert stuck.status == "RUNNING"


def test_such_a_timer_is_listed_with_its_error_until_it_is_handled(stuck, clock, monkeypatch, admin_client):
    sweep_for(clock, 1)
    assert stuck.id not in page(admin_client)
    sweep_for(clock, 10)

    assert stuck.id in page(admin_client)
    assert "MemoryError" in page(admin_client)

    monkeypatch.setattr(decide, "RULES", RULES)
    clock.advance(seconds=600)
    sweeps.sweep_once()
    assert stuck.statuses == {"w": "COMPLETED", "a": "SCHEDULED"}
    assert (stuck.id in page(admin_client), Message.objects.count()) == (False, 0)


def page(client: Client) -> str:
    return client.get(reverse("admin:undelivered_messages")).content.decode()


def test_an_operator_lets_such_a_timer_be_tried_at_once(stuck, clock, monkeypatch):
    sweep_for(clock, 100)
    monkeypatch.setattr(decide, "RULES", RULES)
    sweeps.sweep_once()
    assert stuck.statuses == {"w": "IN_PROGRESS"}

    with run_commit_hooks():
        commands.retry_messages(Message.objects.values_list("pk", flat=True), ACTOR, "The memory was extended.")
    sweeps.sweep_once()

    assert stuck.statuses == {"w": "COMPLETED", "a": "SCHEDULED"}


def test_a_discarded_timer_is_tried_again_after_its_delay(stuck, clock):
    sweep_for(clock, 100)
    commands.discard_messages(Message.objects.values_list("pk", flat=True), ACTOR, "It will not help.")
    assert Message.objects.count() == 0

    sweep_for(clock, 100)

    assert [message.to for message in Message.objects.all()] == [stuck.id]


def test_the_timers_of_a_run_that_was_ended_meanwhile_are_forgotten(stuck, clock):
    sweep_for(clock, 100)
    stuck.terminate("enough")

    sweep_for(clock, 300)

    assert (stuck.status, Message.objects.count()) == ("TERMINATED", 0)
    assert Attempt.objects.filter(due_at__lt=NEVER, status__in=["PENDING", "LEASED"]).count() == 0
