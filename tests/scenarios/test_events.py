"""Events that a run publishes, and the actions of their handlers (execution §8.15, §10.6)."""

from typing import Any

import pytest

from conductor_app.events.commands import handlers as event_handlers
from conductor_app.events.commands import intake as event_intake
from conductor_app.events.models import EventAction, EventDelivery, HandlerEvaluation
from conductor_app.processes import sweeps
from conductor_app.runs.models import Message, Run
from tests.builders import definition, event, human, loop, step
from tests.scenario import RunView, Scenario, run_commit_hooks

PAID = "conductor:order:paid"


def handle(*actions: dict[str, Any], name: str = "h", event: str = PAID, **fields: Any) -> None:
    event_handlers.create_handlers(
        [{"name": name, "event": event, "active": True, "actions": list(actions), **fields}], "ann"
    )


def start(name: str = "other", **fields: Any) -> dict[str, Any]:
    return {"action": "start_workflow", "start_workflow": {"name": name, **fields}}


def report(action: str, **fields: Any) -> dict[str, Any]:
    return {"action": action, action: fields}


def receive_event(payload: Any, id: str = "m1", event: str = PAID) -> bool:
    with run_commit_hooks():
        return event_intake.receive_event(event, id, payload, "ann")


def event_scenario(clock, **fields: Any) -> Scenario:
    inputs = {"total": 3, "note": '{"colour": "red"}', **fields.pop("inputs", {})}
    return Scenario(
        clock, event("paid", "conductor", inputs=inputs), others=[definition(step("x"), name="other")], **fields
    )


def started() -> list[Run]:
    return list(Run.objects.filter(name="other"))


def results() -> list[tuple[str, str]]:
    return [(action.status, action.error) for action in EventAction.objects.order_by("id")]


def test_an_event_starts_a_workflow_with_its_payload(clock):
    handle(start(input={"sum": "${total}", "from": "${workflowInstanceId}"}, correlationId="c-${total}"))

    scenario = event_scenario(clock)

    [run] = started()
    assert scenario.status == "COMPLETED"
    assert run.input == {
        "sum": 3,
        "from": scenario.id,
        "conductor.event.messageId": scenario.task("paid").id,
        "conductor.event.name": PAID,
    }
    assert (run.correlation_id, run.event) == ("c-3", PAID)
    [action] = EventAction.objects.all()
    assert (action.status, action.run_id, action.output) == ("COMPLETED", run.id, {"workflowId": run.id})
    assert not Message.objects.exists()


def test_the_workflow_is_started_in_the_version_and_domains_that_the_payload_names(clock):
    handle(start(version="${version}", taskToDomain={"x": "${where}"}))

    event_scenario(clock, inputs={"version": 1, "where": "west"})

    [run] = started()
    assert (run.version, run.domains) == (1, {"x": "west"})


def test_an_action_without_domains_inherits_those_of_the_publishing_run(clock):
    handle(start())

    event_scenario(clock, start={"domains": {"pay": "west"}})

    assert [run.domains for run in started()] == [{"pay": "west"}]


def test_inline_json_is_expanded_for_an_action_that_requests_it(clock):
    handle({**start(input={"colour": "${note.colour}"}), "expandInlineJSON": True}, start(input={"note": "${note}"}))

    event_scenario(clock)

    first, second = (Run.objects.get(id=action.run_id) for action in EventAction.objects.order_by("id"))
    assert (first.input["colour"], second.input["note"]) == ("red", '{"colour": "red"}')


def test_a_condition_filters_events_and_its_compared_values_are_recorded(clock):
    handle(start(), name="large", condition="$.total > 100 && $.note.colour == 'red'")
    handle(start(), name="small", condition="$.total < 100")

    event_scenario(clock)

    large, small = HandlerEvaluation.objects.order_by("handler")
    assert (large.outcome, large.seen, large.value) == (
        "NOT_MATCHED",
        {"$.total": 3, "$.note.colour": "red"},
        False,
    )
    assert (small.outcome, small.seen, small.value) == ("MATCHED", {"$.total": 3}, True)
    assert len(started()) == 1


@pytest.mark.parametrize(
    ("condition", "language", "outcome"),
    [
        ("total", "value-param", "MATCHED"),
        ("$.total == 3", "javascript", "MATCHED"),
        ("$.total == 3", "a language from elsewhere", "MATCHED"),
        ("$.total - 3", None, "NOT_MATCHED"),
        ("return total == 3 and note['colour'] == 'red'", "python", "MATCHED"),
        ("return total - 3", "python", "NOT_MATCHED"),
        ("total", "python", "NOT_MATCHED"),
        ("return missing", "python", "FAILED"),
    ],
)
def test_a_condition_can_be_written_in_several_languages(clock, condition, language, outcome):
    handle(start(), condition=condition, evaluatorType=language)

    event_scenario(clock)

    assert HandlerEvaluation.objects.get().outcome == outcome


def test_the_values_that_a_python_condition_compared_are_recorded_with_its_result(clock):
    handle(start(), condition="return total > 5 and note['colour'] == 'total workflowType'", evaluatorType="python")

    event_scenario(clock)

    assert HandlerEvaluation.objects.get().seen == {"total": 3, "note": {"colour": "red"}}


def test_a_condition_that_raises_is_recorded_and_not_retried(clock):
    handle(start(), condition="$.missing.thing.more")

    event_scenario(clock)

    verdict = HandlerEvaluation.objects.get()
    assert (verdict.outcome, verdict.seen) == ("FAILED", {"$.missing.thing.more": None})
    assert "TypeError" in verdict.error
    assert not Message.objects.exists()


def test_an_inactive_handler_is_not_executed_and_the_event_is_recorded(clock):
    handle(start(), active=False)

    event_scenario(clock)

    assert EventDelivery.objects.get().payload["total"] == 3
    assert not HandlerEvaluation.objects.exists()


def test_an_event_completes_a_task_of_another_run(clock):
    handle(report("complete_task", workflowId="${run}", taskRefName="ask", output={"answer": "${total}"}))
    waiting = Scenario(clock, human("ask"), name="waiting")

    event_scenario(clock, inputs={"run": waiting.id})

    assert waiting.status == "COMPLETED"
    expected = {"answer": 3, "workflowId": waiting.id, "taskRefName": "ask", "taskId": None}
    assert waiting.task("ask").output == expected
    assert EventAction.objects.get().run_id == waiting.id


@pytest.mark.parametrize("ref", ["ask__me", "__ask_1", "ask__1"])
def test_an_event_completes_a_task_whose_reference_has_two_underscores(clock, ref):
    handle(report("complete_task", workflowId="${run}", taskRefName=ref))
    waiting = Scenario(clock, human(ref), name="waiting")

    event_scenario(clock, inputs={"run": waiting.id})

    assert waiting.status == "COMPLETED"


def test_an_event_fails_a_task_by_its_id_with_a_reason(clock):
    handle(report("fail_task", taskId="${task}", reasonForIncompletion="not ${total}"))
    waiting = Scenario(clock, human("ask"), name="waiting")

    event_scenario(clock, inputs={"task": waiting.task("ask").id})

    assert (waiting.status, waiting.task("ask").reason) == ("FAILED", "not 3")


def test_a_reference_in_a_loop_means_its_last_iteration(clock):
    handle(report("complete_task", workflowId="${run}", taskRefName="ask"))
    waiting = Scenario(clock, loop("l", human("ask"), times=2), name="waiting")

    for number in range(2):
        receive_event({"run": waiting.id}, id=f"m{number}")

    assert waiting.statuses == {"l": "COMPLETED", "ask__1": "COMPLETED", "ask__2": "COMPLETED"}


def test_an_event_terminates_a_workflow(clock):
    handle(report("terminate_workflow", workflowId="${run}", terminationReason="paid ${total}"))
    other = Scenario(clock, step("x"), name="waiting")

    event_scenario(clock, inputs={"run": other.id})

    assert (other.status, other.reason) == ("TERMINATED", "paid 3")


@pytest.mark.parametrize(("flag", "text"), [(True, "true"), ({"a": None}, '{"a":null}')])
def test_a_value_of_an_event_as_a_reason_or_correlation_id_is_json(clock, flag, text):
    handle(report("terminate_workflow", workflowId="${run}", terminationReason="${flag}"))
    handle(start("waiting", correlationId="${flag}"), name="starter")
    other = Scenario(clock, step("x"), name="waiting")

    event_scenario(clock, inputs={"run": other.id, "flag": flag})

    assert other.reason == text
    assert Run.objects.filter(name="waiting", correlation_id=text).count() == 1


def test_an_event_changes_variables(clock):
    variables = {"seen": "${total}", "all": "${total}"}
    handle(report("update_workflow_variables", workflowId="${run}", variables=variables, appendArray=True))
    other = Scenario(clock, step("x"), name="waiting", variables={"all": [1], "seen": 0, "kept": True})

    event_scenario(clock, inputs={"run": other.id})

    assert other.row.variables == {"all": [1, 3], "seen": 3, "kept": True}


@pytest.mark.parametrize(
    ("action", "why"),
    [
        (start(), "No such workflow found by name: nothing"),
        (start(name=""), "needs the `name` of a workflow"),
        (start(version="newest"), "must be a whole number"),
        (report("complete_task", taskId="nothing"), "No task found"),
        (report("complete_task"), "No task found"),
        (report("terminate_workflow", workflowId="nothing"), "No such workflow found"),
        (report("terminate_workflow"), "needs a workflowId"),
        (report("update_workflow_variables", workflowId="${workflowInstanceId}", variables={"a": 1}), "is COMPLETED"),
        ({"action": "start_agent", "start_agent": {}}, "Unknown action"),
        ({"action": "start_workflow"}, "has no object 'start_workflow'"),
        ({"action": "start_workflow", "start_workflow": {"name": "other", "input": "x"}}, "must be an object"),
    ],
)
def test_an_action_that_cannot_be_done_fails_with_its_reason(clock, action, why):
    if "start_workflow" in action and why.endswith("nothing"):
        action = start("nothing")
    handle(action)

    event_scenario(clock)

    [(status, error)] = results()
    assert status == "FAILED"
    assert why in error
    assert not Message.objects.exists()


def test_a_failed_action_does_not_prevent_the_others(clock):
    handle(report("complete_task", taskId="nothing"), start())

    event_scenario(clock)

    assert [status for status, _ in results()] == ["FAILED", "COMPLETED"]
    assert len(started()) == 1


def test_the_same_message_is_processed_once(clock):
    scenario = event_scenario(clock)
    handle(start(), name="late")

    assert receive_event({}, id="m1") is True
    assert receive_event({}, id="m1") is False
    assert receive_event({}, id="m1", event="conductor:order:other") is True

    assert len(started()) == 1
    assert EventDelivery.objects.get(message_id="m1", event=PAID).duplicates == 1
    assert scenario.status == "COMPLETED"


def test_an_event_step_completed_by_its_own_handler_continues(clock):
    handle(report("complete_task", workflowId="${workflowInstanceId}", taskRefName="tell", output={"by": "a handler"}))

    scenario = Scenario(clock, event("tell", "conductor:paid", asyncComplete=True), step("after"))

    assert scenario.is_waiting_for("after")
    assert scenario.task("tell").output["by"] == "a handler"
    assert EventDelivery.objects.count() == 1


def test_events_older_than_their_retention_are_deleted(clock, settings):
    settings.CONDUCTOR_EVENT_RETENTION_DAYS = 2
    handle(start(), condition="$.total == 3")
    event_scenario(clock)

    clock.advance(seconds=2 * 86_400)
    assert sweeps.prune_events(10) == 0
    clock.advance(seconds=1)
    assert sweeps.prune_events(10) == 1

    assert not EventDelivery.objects.exists()
    assert not HandlerEvaluation.objects.exists()
    assert not EventAction.objects.exists()
    assert RunView(started()[0].id).status == "RUNNING"
