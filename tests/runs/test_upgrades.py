"""Moving a running workflow to another version (api §2.1)."""

import pytest

from tests.builders import simple


@pytest.fixture
def running(api):
    """Start a workflow of version 1; version 2 has one more step."""
    api.define(simple("one"), simple("two"))
    workflow_id = api.start()
    api.define(simple("one"), simple("two"), simple("three"), version=2)
    return workflow_id


def upgrade(api, workflow_id, **asked):
    return api.post(f"/workflow/{workflow_id}/upgrade", asked)


@pytest.mark.parametrize("asked", [{"version": 2}, {}, {"version": 0}, {"version": "2"}], ids=str)
def test_a_workflow_moves_to_the_version_or_to_the_newest(api, running, asked):
    reply = upgrade(api, running, name="order", **asked)

    assert (reply.status_code, reply.content) == (200, b"")
    assert api.workflow(running)["workflowVersion"] == 2
    assert len(api.workflow(running)["workflowDefinition"]["tasks"]) == 3


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({}, 400),
        ({"name": " "}, 400),
        ({"name": "order", "version": "x"}, 400),
        ({"name": "order", "version": 9}, 404),
        ({"name": "nobody"}, 404),
        ({"name": "order", "taskOutput": [1]}, 400),
        ({"name": "order", "workflowInput": "x"}, 400),
    ],
)
def test_an_upgrade_that_makes_no_sense_is_refused(api, running, asked, code):
    assert upgrade(api, running, **asked).status_code == code
    assert api.workflow(running)["workflowVersion"] == 1


def test_an_impossible_upgrade_is_rejected_with_a_reason(api, running):
    loop = {"name": "l", "taskReferenceName": "l", "type": "DO_WHILE", "loopCondition": "false"}
    api.define({**loop, "loopOver": [simple("one")]}, version=3)

    reply = upgrade(api, running, name="order", version=3)

    assert reply.status_code == 409
    assert "loops" in reply.json()["message"]
    assert upgrade(api, "nobody", name="order").status_code == 404
