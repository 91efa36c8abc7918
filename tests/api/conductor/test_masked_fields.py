"""What a definition masks is shown to nobody but the worker that it is for."""

from conductor_app.core.sealing import HIDDEN, MARK
from tests.builders import step

NUMBER = "4711-0815"


def test_workers_get_what_clients_do_not_see(api):
    inputs = {"number": "${workflow.input.card.number}"}
    api.define(step("pay"), step("ship", inputs=inputs), maskedFields=["number"])
    id = api.start(input={"card": {"number": NUMBER, "holder": "Ada"}})
    [pay] = api.get("/tasks/poll/batch/pay?count=1&timeout=0").json()
    report = {"workflowInstanceId": id, "taskId": pay["taskId"], "status": "COMPLETED"}
    api.post("/tasks", {**report, "outputData": {"number": NUMBER}})

    [ship] = api.get("/tasks/poll/batch/ship?count=1&timeout=0").json()

    assert ship["inputData"] == {"number": NUMBER}
    shown = api.get(f"/workflow/{id}").json()
    assert shown["input"]["card"] == {"number": HIDDEN, "holder": "Ada"}
    assert [task["inputData"] for task in shown["tasks"]] == [{}, {"number": HIDDEN}]
    assert shown["tasks"][0]["outputData"] == {"number": HIDDEN}
    task = api.get(f"/tasks/{ship['taskId']}").json()
    assert (task["inputData"], MARK in str(shown), NUMBER in str(shown)) == ({"number": HIDDEN}, False, False)
