"""Published status changes of runs and steps, and their subscribers (execution §10.4, §10.5)."""

from typing import Any

import pytest
from django.db import connection

from conductor_app.core.definition import Definition
from conductor_app.db.statements import NamedStatement
from conductor_app.events.models import EventDelivery
from conductor_app.runs.models import Message
from conductor_app.runs.store import due_rows, outbox
from tests.builders import definition, dynamic_fork, human, noop, policy, step, sub_workflow
from tests.scenario import Scenario

LISTENED = {"workflowStatusListenerEnabled": True, "workflowStatusListenerSink": "conductor:status"}


def payloads() -> list[dict[str, Any]]:
    return [delivery.payload for delivery in EventDelivery.objects.order_by("id")]


def events() -> list[str]:
    return [payload["event"] for payload in payloads()]


def states() -> list[tuple[str, str]]:
    return [(payload["referenceTaskName"], payload["stateChange"]) for payload in payloads()]


def change_event(*names: str, type: str = "change", **payload: Any) -> dict[str, Any]:
    return {",".join(names): [{"type": type, "payload": payload}]}


ALL = ("onScheduled", "onStart", "onSuccess", "onFailed", "onCancelled")


def test_a_run_is_published_from_its_start_to_its_end(clock):
    scenario = Scenario(clock, step("a"), input={"n": 1}, outputParameters={"sum": "${a.output.sum}"}, **LISTENED)
    assert events() == ["STARTED"]

    scenario.pause()
    scenario.resume()
    scenario.worker("a").completes(sum=3)

    assert events() == ["STARTED", "PAUSED", "RESUMED", "COMPLETED", "FINALIZED"]
    first, *_, last = payloads()
    assert (first["workflowId"], first["status"], first["input"], first["output"]) == (
        scenario.id,
        "RUNNING",
        {"n": 1},
        {},
    )
    assert (last["status"], last["output"], last["endTime"]) == ("COMPLETED", {"sum": 3}, clock.now())
    assert {delivery.event for delivery in EventDelivery.objects.all()} == {"conductor:order:status"}


def test_every_unsuccessful_end_is_published_as_terminated_and_a_retry_as_retried(clock):
    scenario = Scenario(clock, step("a"), **LISTENED)

    scenario.worker("a").fails("no luck")
    scenario.retry()
    scenario.terminate("enough")

    assert events() == ["STARTED", "TERMINATED", "FINALIZED", "RETRIED", "TERMINATED", "FINALIZED"]
    statuses = [payload["status"] for payload in payloads()]
    assert statuses == ["RUNNING", "FAILED", "FAILED", "RUNNING", *["TERMINATED"] * 2]
    assert "no luck" in payloads()[1]["reasonForIncompletion"]


@pytest.mark.parametrize(("act", "event"), [("rerun", "RERAN"), ("restart", "RESTARTED")])
def test_a_reopened_run_publishes_the_action(clock, act, event):
    scenario = Scenario(clock, step("a"), **LISTENED)
    scenario.worker("a").completes()

    getattr(scenario, act)()

    assert events() == ["STARTED", "COMPLETED", "FINALIZED", event]


def test_a_run_that_ends_at_once_is_published_in_one_transaction(clock):
    Scenario(clock, noop("a"), **LISTENED)

    assert events() == ["STARTED", "COMPLETED", "FINALIZED"]


def test_the_start_of_a_child_is_published(clock):
    child = definition(step("x"), name="child", **LISTENED)

    Scenario(clock, sub_workflow("s"), others=[child])

    assert [(payload["event"], payload["workflowType"]) for payload in payloads()] == [("STARTED", "child")]


def test_a_sink_can_be_an_expression_on_the_input(clock):
    sink = {**LISTENED, "workflowStatusListenerSink": "conductor:${workflow.input.where}"}
    Scenario(clock, step("a"), input={"where": "here"}, **sink)

    assert EventDelivery.objects.get().event == "conductor:order:here"


def test_nothing_is_published_without_a_listener_or_a_sink(clock):
    Scenario(clock, noop("a"), workflowStatusListenerEnabled=True)
    Scenario(clock, noop("a"), name="other", workflowStatusListenerSink="conductor:status")

    assert not Message.objects.exists()
    assert not EventDelivery.objects.exists()


def test_a_step_is_published_in_each_state_it_selects(clock):
    scenario = Scenario(
        clock, step("a", onStateChange=change_event(*ALL, n="${workflow.input.n}", got="${a.output.x}")), input={"n": 1}
    )
    assert states() == [("a", "onScheduled")]

    scenario.worker("a").polls()
    assert states() == [("a", "onScheduled"), ("a", "onStart")]
    scenario.worker("a").completes(x=7)

    assert states() == [("a", "onScheduled"), ("a", "onStart"), ("a", "onSuccess")]
    last = payloads()[-1]
    assert (last["n"], last["got"], last["taskStatus"], last["type"]) == (1, 7, "COMPLETED", "change")
    assert last["taskId"] == scenario.task("a").id
    assert last["workflowInstanceId"] == scenario.id
    assert {delivery.event for delivery in EventDelivery.objects.all()} == {"conductor:order:change"}


def test_unselected_states_are_not_published(clock):
    scenario = Scenario(clock, step("a", onStateChange=change_event("onFailed")), step("b"))

    scenario.worker("a").completes()
    scenario.worker("b").fails()

    assert payloads() == []


def test_each_attempt_is_published(clock):
    limits = policy(retries=1)
    scenario = Scenario(
        clock, step("a", policy=limits, onStateChange=change_event("onScheduled", "onFailed", " onStart"))
    )

    scenario.worker("a").fails()
    scenario.worker("a").fails()

    one = ["onScheduled", "onStart", "onFailed"]
    assert [state for _, state in states()] == [*one, *one]
    assert [payload["retryCount"] for payload in payloads()] == [0, 0, 0, 1, 1, 1]


def test_a_released_attempt_is_published_as_started_once(clock):
    scenario = Scenario(clock, step("a", onStateChange=change_event("onStart")))

    scenario.worker("a").in_progress()
    scenario.worker("a").polls()

    assert states() == [("a", "onStart")]


def test_canceled_tasks_and_system_tasks_are_published(clock):
    scenario = Scenario(
        clock, noop("n", onStateChange=change_event(*ALL)), human("h", onStateChange=change_event(*ALL))
    )

    scenario.terminate("enough")

    expected = [("n", "onScheduled"), ("n", "onStart"), ("n", "onSuccess"), ("h", "onScheduled"), ("h", "onStart")]
    assert states() == [*expected, ("h", "onCancelled")]


def test_tasks_of_dynamic_branches_are_published(clock):
    tasks = [step("x", onStateChange=change_event("onScheduled", "onStart", "onSuccess"))]
    scenario = Scenario(clock, *dynamic_fork(), input={"tasks": tasks, "inputs": {"x": {}}})

    scenario.worker("x").completes()

    assert states() == [("x", "onScheduled"), ("x", "onStart"), ("x", "onSuccess")]


def test_a_rate_limited_task_is_published(clock):
    limits = policy(concurrent_limit=1)
    scenario = Scenario(clock, step("a", policy=limits, onStateChange=change_event("onStart")))

    scenario.worker("a").polls()

    assert states() == [("a", "onStart")]


@pytest.mark.parametrize("sink", ["kafka:changes", "amqp_queue:changes"])
def test_messages_to_other_systems_go_through_the_outbox(clock, sink):
    sinks = {**LISTENED, "workflowStatusListenerSink": sink}
    Scenario(clock, step("a", onStateChange=change_event("onScheduled", type="redis:here")), **sinks)

    found = Message.objects.filter(subject="publish").order_by("id")
    assert [(message.to, message.facts["sink"]) for message in found] == [(sink, sink), ("redis:here", "redis:here")]
    assert outbox.due_messages(clock.now(), 10) == []


def test_the_server_settings_can_select_another_sink_for_states(clock, settings):
    settings.CONDUCTOR_STATE_CHANGE_SINK = "kafka:changes"

    Scenario(clock, step("a", onStateChange=change_event("onScheduled")))

    [message] = Message.objects.all()
    assert message.facts["sink"] == "kafka:changes"
    assert message.facts["payload"]["type"] == "change"


def task_statuses() -> list[tuple[str, str]]:
    found = Message.objects.filter(to="task listener").order_by("id")
    payloads = [message.facts["payload"] for message in found]
    return [(payload["referenceTaskName"], payload["status"]) for payload in payloads]


def test_the_task_listener_receives_each_status_of_a_task(clock, settings):
    settings.CONDUCTOR_TASK_STATUS_LISTENER_URL = "http://127.0.0.1/tasks"
    quiet = step("quiet", policy=policy() | {"taskStatusListenerEnabled": False})
    steps = [step("a", policy=policy(retries=1)), noop("n"), quiet, step("late", optional=True), human("ask")]
    scenario = Scenario(clock, *steps, name="heard task by task")

    scenario.worker("a").fails()
    scenario.worker("a").completes()
    scenario.worker("quiet").completes()
    scenario.worker("late").fails()
    scenario.terminate()

    told_of_a = ["SCHEDULED", "IN_PROGRESS", "FAILED", "SCHEDULED", "IN_PROGRESS", "COMPLETED"]
    assert task_statuses() == [
        *(("a", status) for status in told_of_a),
        ("n", "COMPLETED"),
        *(("late", status) for status in ("SCHEDULED", "IN_PROGRESS", "FAILED", "COMPLETED_WITH_ERRORS")),
        ("ask", "IN_PROGRESS"),
        ("ask", "CANCELED"),
    ]
    payload = Message.objects.filter(to="task listener").order_by("id")[2].facts["payload"]
    assert (payload["workflowInstanceId"], payload["taskDefName"], payload["retryCount"]) == (scenario.id, "a", 0)
    assert (payload["reasonForIncompletion"], payload["workerId"]) == ("no luck", "worker")
    assert len({message.facts["id"] for message in Message.objects.all()}) == 13


def test_without_a_task_listener_nothing_is_published(clock):
    Scenario(clock, step("a")).worker("a").completes()

    assert task_statuses() == []


def test_a_definition_without_publications_is_not_scanned():
    from tests.builders import plan

    read: Definition = plan(step("a"), noop("b"))

    assert not read.publishes_listener_events
    assert plan(step("a", onStateChange=change_event("onStart"))).publishes_listener_events
    assert plan(step("a"), workflowStatusListenerEnabled=True).publishes_listener_events


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="EXPLAIN QUERY PLAN is SQLite's")
def test_each_query_of_the_outbox_uses_its_own_index(db):
    def way(statement: NamedStatement, **values: int) -> str:
        sql, params = statement.bind(**values)
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
            return " ".join(row[-1] for row in cursor.fetchall())

    assert "message_due" in way(due_rows.DUE_ROWS_SQL["due_times"])
    assert "message_to_publish" in way(outbox.MESSAGES_SQL["claim_to_publish"], now=1, count=1, held_until=1)
