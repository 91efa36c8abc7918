"""Masked values are sent only to the worker that executes the task."""

import pytest

from conductor_app.core.masking import MARK, REDACTED
from tests.builders import step

NUMBER = "4711-0815"


def test_workers_receive_values_masked_for_clients(api):
    inputs = {"number": "${workflow.input.card.number}"}
    api.define(step("pay"), step("ship", inputs=inputs), maskedFields=["number"])
    id = api.start(input={"card": {"number": NUMBER, "holder": "Ada"}})
    [pay] = api.get("/tasks/poll/batch/pay?count=1&timeout=0").json()
    report = {"workflowInstanceId": id, "taskId": pay["taskId"], "status": "COMPLETED"}
    api.post("/tasks", {**report, "outputData": {"number": NUMBER}})

    [ship] = api.get("/tasks/poll/batch/ship?count=1&timeout=0").json()

    assert ship["inputData"] == {"number": NUMBER}
    shown = api.get(f"/workflow/{id}").json()
    assert shown["input"]["card"] == {"number": REDACTED, "holder": "Ada"}
    assert [task["inputData"] for task in shown["tasks"]] == [{}, {"number": REDACTED}]
    assert shown["tasks"][0]["outputData"] == {"number": REDACTED}
    task = api.get(f"/tasks/{ship['taskId']}").json()
    assert (task["inputData"], MARK in str(shown), NUMBER in str(shown)) == ({"number": REDACTED}, False, False)


@pytest.mark.parametrize(("address", "field"), [("variables", None), ("state", "variables")])
def test_masked_variables_that_are_sent_back_stay_unchanged(api, address, field):
    number = "${workflow.variables.cards[0].number}"
    cards = [{"number": NUMBER, "holder": "Ada"}]
    api.define(
        step("pay"), step("ship", inputs={"number": number}), maskedFields=["number"], variables={"cards": cards}
    )
    id = api.start()
    shown = api.workflow(id)["variables"]
    shown["cards"][0]["holder"] = "Grace"
    sent = {**shown, "number": REDACTED, "note": REDACTED}

    reply = api.post(f"/workflow/{id}/{address}", {field: sent} if field else sent)

    assert reply.status_code == 200
    after = api.workflow(id)["variables"]
    assert after == {"cards": [{"number": REDACTED, "holder": "Grace"}], "number": REDACTED, "note": REDACTED}
    api.report(api.poll("pay")[0])
    assert api.poll("ship")[0]["inputData"] == {"number": NUMBER}


def test_a_masked_input_of_an_upgrade_stays_unchanged(api):
    steps = [step("pay"), step("ship", inputs={"number": "${workflow.input.number}"})]
    api.define(*steps, maskedFields=["number"])
    id = api.start(input={"number": NUMBER, "holder": "Ada"})
    api.define(*steps, maskedFields=["number"], version=2)
    sent = {**api.workflow(id)["input"], "holder": "Grace"}

    reply = api.post(f"/workflow/{id}/upgrade", {"name": "order", "version": 2, "workflowInput": sent})

    assert reply.status_code == 200, reply.content
    assert api.workflow(id)["input"] == {"number": REDACTED, "holder": "Grace"}
    api.report(api.poll("pay")[0])
    assert api.poll("ship")[0]["inputData"] == {"number": NUMBER}


@pytest.mark.parametrize("condition", ["> A", "< zzzz", "STARTS_WITH sealed", "= 's*'", "BETWEEN A AND zzzz"])
def test_no_search_compares_the_encrypted_text_of_a_masked_value(api, clock, condition):
    api.define(step("pay"), maskedFields=["number"])
    api.start(input={"number": "4711", "open": "sealed in time"})

    def found(query):
        return api.get("/workflow/search", query=query).json()["totalHits"]

    assert found(f"input.number {condition}") == 0
    assert found(f"input.open {condition}") == 1


@pytest.mark.parametrize("asked", [{"query": "input = '*sealed-by*'"}, {"freeText": "sealed-by-conductor"}])
def test_no_search_in_the_whole_text_tells_the_characters_of_a_masked_value(api, clock, asked):
    api.define(step("pay"), maskedFields=["number"])
    api.start(input={"number": "4711"})

    assert api.get("/workflow/search", **asked).json()["totalHits"] == 0


ENCRYPTED = f"{MARK}0123456789ab.AAAA"


@pytest.mark.parametrize("written", [ENCRYPTED, rf"\u0073{ENCRYPTED[1:]}"], ids=["plain", "with an escape"])
def test_a_client_cannot_send_an_encrypted_value_to_have_it_decrypted(api, written):
    api.define(step("pay"))
    run = api.start()
    [task] = api.get("/tasks/poll/batch/pay?count=1&timeout=0").json()
    value = f'{{"a": ["{written}"]}}'
    report = (
        f'{{"workflowInstanceId": "{run}", "taskId": "{task["taskId"]}", "status": "COMPLETED", "outputData": {value}}}'
    )
    bodies = {
        "/workflow/order": value,
        "/tasks": report,
        f"/workflow/{run}/variables": value,
        f"/tasks/{run}/pay/COMPLETED": value,
    }

    refused = [api.client.post(f"/api{address}", body, "application/json") for address, body in bodies.items()]

    assert [reply.status_code for reply in refused] == [400, 400, 400, 400]
    assert "which only the server writes" in refused[0].json()["message"]
