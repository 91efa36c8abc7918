"""Runs as files: exported as the pages show them."""

import json

import pytest

from tests.access.users import client_with
from tests.builders import step
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db


@pytest.fixture
def scenario(clock) -> Scenario:
    scenario = Scenario(
        clock,
        step("pay", inputParameters={"card": "${workflow.input.card}", "sum": 3}),
        input={"card": "4111-1111", "order": "4711"},
        maskedFields=["card"],
    )
    clock.advance(seconds=2)
    scenario.worker("pay").fails("<b>no</b> funds")
    return scenario


def download_bundle(client, scenario) -> dict:
    answer = client.get(f"/admin/conductor/run/{scenario.id}/bundle.json")
    assert answer["Content-Disposition"].startswith("attachment")
    return json.loads(answer.content)


def test_a_bundle_contains_everything_about_the_run_except_masked_values(viewer, scenario):
    document = download_bundle(viewer, scenario)

    [attempt] = document["run"]["tasks"]
    assert (attempt["status"], attempt["reasonForIncompletion"]) == ("FAILED", "<b>no</b> funds")
    assert document["run"]["workflowDefinition"]["tasks"][0]["taskReferenceName"] == "pay"
    assert [entry["revision"] for entry in document["history"]] == sorted(
        (entry["revision"] for entry in document["history"]), reverse=True
    )
    assert "4111-1111" not in json.dumps(document) and "4711" in json.dumps(document)


def test_a_bundle_requires_permission_to_view_runs(scenario):
    assert client_with().get(f"/admin/conductor/run/{scenario.id}/bundle.json").status_code == 403
