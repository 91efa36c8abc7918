"""The debugger: breakpoints, stops and their commands through the API."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.core.masking import REDACTED
from tests.builders import step

NUMBER = "4711-0815"


def start_with(api, *breakpoints, **fields) -> str:
    api.define(step("pay"), step("ship", inputs={"total": "${pay.output.total}"}), maskedFields=["number"])
    given = [{"taskReferenceName": ref, "place": place} for ref, place in breakpoints]
    return api.start(breakpoints=given, **fields)


def stops(api, run) -> list[dict]:
    return api.get(f"/debug/runs/{run}").json()["stops"]


def test_a_breakpoint_of_the_start_request_stops_the_run_and_every_answer_says_so(api):
    run = start_with(api, ("ship", "before"))
    api.report(api.poll("pay")[0], outputData={"total": 7})

    assert api.poll("ship") == []
    [stop] = stops(api, run)
    assert (stop["taskReferenceName"], stop["input"]) == ("ship", {"total": 7})
    cause = api.get(f"/insight/runs/{run}/cause").json()
    assert "breakpoint before this step" in cause["sentence"]
    assert (cause["isWaiting"], cause["taskReferenceName"]) == (True, "ship")
    assert "breakpoint" in [gate["gate"] for gate in cause["gates"] if not gate["isOpen"]]


def test_a_stopped_task_continues_with_a_changed_input_and_the_audit_log_says_so(api):
    run = start_with(api, ("ship", "before"))
    api.report(api.poll("pay")[0], outputData={"total": 7})
    [stop] = stops(api, run)

    changed = {"taskId": stop["taskId"], "input": {"total": 8}, "variables": {"note": "x"}, "reason": "wrong total"}
    assert api.post(f"/debug/runs/{run}/continue", changed).status_code == 204

    assert api.poll("ship")[0]["inputData"] == {"total": 8}
    assert api.workflow(run)["variables"] == {"note": "x"}
    entry = AuditEntry.objects.get(object_id=run, action="continue from breakpoint")
    assert (entry.reason, entry.facts["changed"]) == ("wrong total", "input, variables")
    assert (entry.facts["before"], entry.facts["after"]) == ({"task input.total": 7}, {"task input.total": 8})
    assert api.post(f"/debug/runs/{run}/continue", {"taskId": stop["taskId"]}).status_code == 409


def test_a_breakpoint_of_a_definition_stops_the_runs_that_start_afterwards(api):
    api.define(step("pay"), name="order")
    before = api.start("order")
    address = "/debug/workflows/order/versions/1/breakpoints"
    id = api.post(address, {"taskReferenceName": "pay"}).json()["id"]
    after = api.start("order")

    assert (len(stops(api, before)), len(stops(api, after))) == (0, 1)
    assert [each["id"] for each in api.get(address).json()] == [id]
    assert api.delete(f"{address}/{id}").status_code == 204
    assert stops(api, api.start("order")) == []


def test_a_breakpoint_is_set_on_a_run_in_progress_and_stops_after_a_step(api):
    run = start_with(api)
    wanted = {"taskReferenceName": "pay", "place": "after", "condition": "${pay.output.total} > 5"}
    assert api.post(f"/debug/runs/{run}/breakpoints", wanted).status_code == 200
    api.report(api.poll("pay")[0], outputData={"total": 7})

    [stop] = stops(api, run)
    assert (stop["place"], stop["output"]) == ("after", {"total": 7})
    assert api.workflow(run)["status"] == "RUNNING"
    sent = {"taskId": stop["taskId"], "output": {"total": 9}}
    assert api.post(f"/debug/runs/{run}/continue", sent).status_code == 204
    assert api.poll("ship")[0]["inputData"] == {"total": 9}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "taskReferenceName"),
        ({"taskReferenceName": "nowhere"}, "no step"),
        ({"taskReferenceName": "pay", "place": "sometime"}, "before, after, failure"),
        ({"taskReferenceName": "pay", "minutes": 999_999}, "BREAKPOINT_MINUTES"),
        ({"taskReferenceName": "pay", "condition": "x" * 3000}, "limit"),
    ],
)
def test_an_invalid_breakpoint_is_refused_with_a_reason(api, body, message):
    run = start_with(api)
    reply = api.post(f"/debug/runs/{run}/breakpoints", body)
    assert reply.status_code == 400
    assert message in reply.content.decode()


def test_an_expression_is_evaluated_and_masked_values_stay_masked(api):
    run = start_with(api, input={"number": NUMBER, "amount": 5})
    evaluate = f"/debug/runs/{run}/evaluate"

    assert api.post(evaluate, {"expression": "${workflow.input.amount} + 1"}).json() == {"value": 6}
    assert api.post(evaluate, {"expression": "${pay.status}"}).json() == {"value": "PENDING"}
    for text in ("${workflow.input.number}", "${workflow.input}", "'' + ${workflow.input.number} + 'x'"):
        reply = api.post(evaluate, {"expression": text})
        assert REDACTED in reply.content.decode()
        assert NUMBER not in reply.content.decode()
    assert api.post(evaluate, {"expression": "while (true) {}"}).status_code == 400


def test_a_masked_value_that_is_sent_back_keeps_its_value(api):
    inputs = {"number": "${workflow.input.number}", "holder": "${workflow.input.holder}"}
    api.define(step("ship", inputs=inputs), maskedFields=["number"])
    at_ship = [{"taskReferenceName": "ship"}]
    run = api.start(breakpoints=at_ship, input={"number": NUMBER, "holder": "Ada"})
    [stop] = stops(api, run)
    assert stop["input"] == {"number": REDACTED, "holder": "Ada"}

    sent = {"taskId": stop["taskId"], "input": {**stop["input"], "holder": "Grace"}}
    assert api.post(f"/debug/runs/{run}/continue", sent).status_code == 204

    assert api.poll("ship")[0]["inputData"] == {"number": NUMBER, "holder": "Grace"}


def test_a_rewind_is_planned_and_stops_before_the_task(api):
    run = start_with(api)
    api.report(api.poll("pay")[0], outputData={"total": 7})
    pay = api.workflow(run)["tasks"][0]

    planned = api.post(f"/insight/runs/{run}/plan", {"operation": "rewind", "taskId": pay["taskId"]}).json()
    token = {"confirmationToken": planned["confirmationToken"]}
    assert api.post(f"/insight/runs/{run}/apply", token).status_code == 204

    assert [stop["taskReferenceName"] for stop in stops(api, run)] == ["pay"]
    assert api.poll("pay") == api.poll("ship") == []
