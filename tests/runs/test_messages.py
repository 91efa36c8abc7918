"""POST /workflow/{id}/messages: messages of clients to a running workflow (api §1.2)."""

import pytest

from conductor_app.runs.commands import messages as inbox
from tests.builders import simple

PULL = {"name": "next", "taskReferenceName": "next", "type": "PULL_WORKFLOW_MESSAGES", "inputParameters": {}}


def test_a_message_is_answered_with_its_id_as_bare_text(api, clock):
    api.define(PULL)
    workflow_id = api.start()

    reply = api.post(f"/workflow/{workflow_id}/messages", {"n": 1})

    workflow = api.workflow(workflow_id)
    assert (reply.status_code, reply["Content-Type"]) == (200, "text/plain;charset=UTF-8")
    assert workflow["output"]["messages"][0]["id"] == reply.content.decode()


def test_a_rejection_has_a_reason(api, clock, monkeypatch):
    monkeypatch.setattr(inbox, "MAX_MESSAGES", 1)
    api.define(simple("pay"))
    open_id, closed_id = api.start(), api.start()
    api.delete(f"/workflow/{closed_id}")
    api.post(f"/workflow/{open_id}/messages", {})

    replies = [api.post(f"/workflow/{id}/messages", {}) for id in ("nobody", closed_id, open_id)]

    assert [reply.status_code for reply in replies] == [404, 409, 429]
    assert all(reply.json()["message"] for reply in replies)
    assert b"nobody" in replies[0].content


@pytest.mark.parametrize("body", [b"", b"no json", [1], "text"])
def test_a_message_is_an_object(api, clock, body):
    api.define(PULL)

    assert api.post(f"/workflow/{api.start()}/messages", body).status_code == 400
