"""The termination of a tree of runs that still grows."""

import pytest

from conductor_app.definitions import store as definitions
from conductor_app.processes import sweeps
from conductor_app.runs.commands import control
from conductor_app.runs.commands import messages as delivery
from conductor_app.runs.commands.start import StartRequest, start_run
from conductor_app.runs.models import Message, Run
from tests.builders import definition, sub_workflow
from tests.scenario import ACTOR, register_definitions

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def unlimited_depth(settings):
    """Let runs nest without end. A parsed definition keeps the limits of its time, so it is parsed again."""
    settings.CONDUCTOR_MAX_WORKFLOW_DEPTH = 0
    definitions.load_definition.cache_clear()
    yield
    definitions.load_definition.cache_clear()


@pytest.fixture(autouse=True)
def slow_delivery(monkeypatch):
    """Deliver one message per transaction, so that the test decides the order."""
    monkeypatch.setattr(delivery, "AT_ONCE", 0)


def deliver_newest_first(rounds: int) -> None:
    """Deliver messages in the worst order: the tree grows before its termination follows."""
    for _ in range(rounds):
        for id in list(Message.objects.order_by("-id").values_list("id", flat=True)[:5]):
            delivery.deliver(id)


@pytest.mark.slow
def test_the_termination_of_a_root_overtakes_a_tree_that_still_grows(clock):
    register_definitions(definition(sub_workflow("again", "order"), name="order"))
    root = start_run(StartRequest("order"), ACTOR)
    deliver_newest_first(20)
    before = Run.objects.count()
    assert before > 20 and Message.objects.filter(subject="begin").exists()

    control.terminate_run(root, ACTOR, "enough")
    deliver_newest_first(5)

    assert Run.objects.count() == before, "no run begins while the termination is on its way"
    assert Run.objects.filter(reason="A workflow above this one was terminated.").exists()
    for _ in range(2 * before):
        sweeps.deliver_messages(500)
    assert set(Run.objects.values_list("status", flat=True)) == {"TERMINATED"}
