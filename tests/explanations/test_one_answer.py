"""Why a task waits: its run, the list of runs, the timeline, the queue, the overview and the API give one answer."""

import pytest
from django.urls import reverse
from django.utils.html import strip_tags

from conductor_app.core.snapshot import NEVER
from conductor_app.runs.commands import debugging
from conductor_app.runs.commands.debugging import BreakpointRequest
from conductor_app.tasks.commands import queues as queue_commands
from tests.builders import human, policy, step
from tests.scenario import ACTOR, Scenario

pytestmark = pytest.mark.django_db


def read(client, address, **query) -> str:
    page = client.get(address, query).content.decode()
    return " ".join(strip_tags(page).split())


def places(client, scenario, queue="ship") -> dict[str, str]:
    """Return the texts of everything that says why the task of the run waits."""
    run_page = reverse("admin:conductor_run_change", args=[scenario.id])
    return {
        "run": read(client, run_page),
        "list": read(client, reverse("admin:conductor_run_changelist")),
        "queue": read(client, reverse("admin:queue"), name=queue),
        "overview": read(client, reverse("admin:overview_attention")),
        "API": client.get(f"/api/insight/runs/{scenario.id}/cause").json()["sentence"],
    }


def stopped_at_a_breakpoint(scenario):
    debugging.set_breakpoint(scenario.id, BreakpointRequest("ship"), ACTOR)
    scenario.worker("pay").completes()


def retried_later(scenario):
    scenario.worker("pay").completes()
    scenario.worker("ship").fails("no truck")


def of_a_paused_queue(scenario):
    queue_commands.pause_queue("ship", "ann", "stock count", NEVER)
    scenario.worker("pay").completes()


def without_a_worker(scenario):
    scenario.worker("pay").completes()


ANSWERS = {
    stopped_at_a_breakpoint: {
        "run": "stopped at a breakpoint before this step",
        "list": "at a breakpoint",
        "queue": "No task is due: 1 at a breakpoint.",
        "overview": "is stopped at ship by a breakpoint of ann",
        "API": "stopped at a breakpoint before this step",
    },
    retried_later: {
        "run": "retry of ship in 1 min (attempt 2 of 4)",
        "list": "attempt 2 in 1 min",
        "queue": "No task is due: 1 due later.",
        "overview": "No problems",
        "API": "retry of `ship` in 1 min (attempt 2 of 4)",
    },
    of_a_paused_queue: {
        "run": "the queue was paused by ann: stock count",
        "list": "queue paused",
        "queue": "Paused by ann: stock count",
        "overview": "ann has paused ship",
        "API": "the queue was paused by ann: stock count",
    },
    without_a_worker: {
        "run": "no worker has ever polled queue ship",
        "list": "no workers",
        "queue": "No worker has ever polled this queue: 1 queued.",
        "overview": "No worker has ever polled ship: 1 pending",
        "API": "no worker has ever polled queue `ship`",
    },
}


@pytest.mark.parametrize("arrange", ANSWERS, ids=lambda arrange: arrange.__name__)
def test_every_place_gives_the_same_answer_about_a_task(operator, clock, arrange):
    scenario = Scenario(clock, step("pay"), step("ship", policy=policy(retries=3, delay_seconds=60)))
    arrange(scenario)

    found = places(operator, scenario)

    for place, answer in ANSWERS[arrange].items():
        assert answer in found[place], (place, found[place])


def test_a_task_at_a_breakpoint_is_not_missing_a_worker_anywhere(operator, clock):
    scenario = Scenario(clock, step("pay"), step("ship"))
    stopped_at_a_breakpoint(scenario)

    found = places(operator, scenario)

    denied = ("polled ship: ", "polled this queue: ", "no workers")
    assert not any(words in text.lower() for words in denied for text in found.values())
    [queue] = [each for each in operator.get("/api/insight/queues").json()["queues"] if each["name"] == "ship"]
    assert (queue["pending"], queue["delayed"], queue["isNeglected"]) == (0, 1, False)


def test_the_timeline_names_the_breakpoint_instead_of_a_time_in_the_queue(operator, clock):
    scenario = Scenario(clock, step("pay"), step("ship"))
    stopped_at_a_breakpoint(scenario)
    clock.advance(seconds=5)

    page = read(operator, reverse("admin:conductor_run_change", args=[scenario.id]), tab="timeline")

    assert "at a breakpoint" in page
    assert "queued 5.0 s" not in page


def test_a_human_task_says_for_whom_it_waits(operator, clock):
    people = [{"assignee": {"userType": "CONDUCTOR_GROUP", "user": "Finance"}}]
    ask = human("approve", inputs={"__humanTaskDefinition": {"assignments": people}})
    scenario = Scenario(clock, ask)

    assert "for group Finance" in operator.get(f"/api/insight/runs/{scenario.id}/cause").json()["sentence"]
    assert "human task, for group Finance" in read(operator, reverse("admin:conductor_run_changelist"))
