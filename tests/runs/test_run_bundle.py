"""Runs as files: exported as the pages show them, and opened elsewhere without being stored."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from conductor_app.access.models import AuditEntry
from conductor_app.runs.models import Run
from tests.builders import step
from tests.page_text import html, page_text
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db
LOOK = "/admin/conductor/run/bundle/"


@pytest.fixture
def scenario(clock) -> Scenario:
    scenario = Scenario(
        clock,
        step("pay", inputParameters={"card": "${workflow.input.card}", "sum": 3}),
        input={"card": "4111", "order": "4711"},
        maskedFields=["card"],
    )
    clock.advance(seconds=2)
    scenario.worker("pay").fails("<b>no</b> funds")
    return scenario


def given(client, scenario) -> dict:
    answer = client.get(f"/admin/conductor/run/{scenario.id}/bundle.json")
    assert answer["Content-Disposition"].startswith("attachment")
    return json.loads(answer.content)


def looked_into(client, document, text: str = ""):
    file = SimpleUploadedFile("run.json", (text or json.dumps(document)).encode("utf-8", "surrogatepass"))
    return client.post(LOOK, {"file": file})


def test_a_bundle_contains_everything_about_the_run_except_masked_values(viewer, scenario):
    document = given(viewer, scenario)

    [attempt] = document["run"]["tasks"]
    assert (attempt["status"], attempt["reasonForIncompletion"]) == ("FAILED", "<b>no</b> funds")
    assert document["run"]["workflowDefinition"]["tasks"][0]["taskReferenceName"] == "pay"
    assert [entry["revision"] for entry in document["history"]] == sorted(
        (entry["revision"] for entry in document["history"]), reverse=True
    )
    assert "4111" not in json.dumps(document) and "4711" in json.dumps(document)


def test_a_bundle_of_another_server_is_displayed_without_storing_it(viewer, scenario):
    document = given(viewer, scenario)
    Run.objects.all().delete()
    before = AuditEntry.objects.count()

    page = looked_into(viewer, document)

    text = page_text(page)
    assert "order v1 Failed" in text and "<b>no</b> funds" in text and "4711" in text
    assert "<b>no</b>" not in html(page) and "order v1: 1 step" in html(page)
    assert "Nothing is stored" in text
    assert (Run.objects.count(), AuditEntry.objects.count()) == (0, before)


@pytest.mark.parametrize(
    "run",
    [
        {},
        {"tasks": [None, 3, {"inputData": {"a": [1]}, "endTime": 10**18, "startTime": -1, "retryCount": "x"}]},
        {"workflowName": "<script>alert(1)</script>", "tasks": "all", "input": "\u202e", "startTime": True},
        {"workflowDefinition": {"name": 3, "tasks": [{"type": "SWITCH"}]}, "status": ["FAILED"], "labels": {"a": 1}},
        {"tasks": [{"referenceTaskName": "a__1", "iteration": 1, "status": "IN_PROGRESS"}] * 400},
    ],
)
def test_the_content_of_a_file_is_displayed_as_text_or_omitted(viewer, run):
    history = [{"effects": [{"effect": "DeleteTasks", "count": "x"}, {"effect": "TransitionRun"}, 3]}, None]

    page = looked_into(viewer, {"bundle": "run", "format": 1, "run": run, "history": history, "takenAt": 10**15})

    assert "<script>alert" not in html(page)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"bundle": "run"}', "9" * 5000, '{"bundle": "\\ud800"}', "[" * 5000])
def test_an_invalid_bundle_is_reported(viewer, text):
    page = looked_into(viewer, None, text or " ")

    assert "errorlist" in html(page)


def test_the_page_requires_permission_to_view_runs(client, django_user_model, scenario):
    client.force_login(django_user_model.objects.create_user("nobody", is_staff=True))

    assert client.get(f"/admin/conductor/run/{scenario.id}/bundle.json").status_code == 403
    assert client.get(LOOK).status_code == 403
