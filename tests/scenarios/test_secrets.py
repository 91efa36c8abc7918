"""Secrets: only the worker that the definition names receives them."""

from urllib.parse import quote

import pytest
from django.db import connection

from conductor_app.access.commands import secrets as secrets_and_variables
from conductor_app.access.models import Variable
from conductor_app.core.decide import Report
from conductor_app.runs.models import Attempt, TaskLog
from conductor_app.system_tasks.registry import run_built_in_workers
from conductor_app.tasks.commands import reports as task_commands
from conductor_app.tasks.secrets import secrets_for_worker
from tests.builders import policy, set_variable, step
from tests.recording_web_server import json_answer, running_web_server
from tests.scenario import ACTOR, Scenario, run_commit_hooks


@pytest.fixture(autouse=True)
def a_secret(monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_DB", "s3cret")


def handed_to(scenario: Scenario, name: str) -> dict:
    worker = scenario.worker(name)
    worker.polls()
    return secrets_for_worker(worker.held).input or worker.held.input


def test_a_secret_named_in_the_definition_is_resolved_at_dispatch(clock):
    scenario = Scenario(clock, step("a", inputs={"x": "${workflow.secrets.DB}"}))

    assert handed_to(scenario, "a") == {"x": "s3cret"}


def test_a_secret_reference_in_data_stays_text(clock):
    scenario = Scenario(clock, step("a", inputs={"x": "${workflow.input.u}"}), input={"u": "${workflow.secrets.DB}"})

    assert handed_to(scenario, "a") == {"x": "${workflow.secrets.DB}"}


def test_a_variable_is_read_where_a_definition_names_it(clock):
    secrets_and_variables.put_variable("REGION", "eu", ACTOR)
    scenario = Scenario(clock, step("a", inputs={"x": "${workflow.env.REGION}"}))

    assert scenario.task("a").input == {"x": "eu"}


def test_a_changed_variable_is_noticed_within_seconds(clock):
    secrets_and_variables.put_variable("REGION", "eu", ACTOR)
    scenario = Scenario(clock, step("a", inputs={"x": "${workflow.env.REGION}"}))
    Variable.objects.update(value="us")

    clock.advance(seconds=2)

    assert scenario.starts("order").task("a").input == {"x": "us"}


SECRET = "correct-horse/battery staple"


def everything_in_tables() -> str:
    """Return all rows of all tables as text."""
    with connection.cursor() as cursor:
        rows = []
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            rows += cursor.fetchall()
    return repr(rows)


def test_a_secret_is_stored_in_no_table_and_no_log(clock, settings, caplog):
    caplog.set_level("DEBUG")
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    secrets_and_variables.put_secret("API_KEY", SECRET, ACTOR)
    request = {"method": "GET", "headers": {"X-Key": "${workflow.secrets.API_KEY}"}}
    with running_web_server() as server:
        server.answers["/echo"] = json_answer({"you sent": SECRET, "or": [quote(SECRET)]})
        call = {**step("call", inputs={"http_request": {**request, "uri": f"{server.url}/echo"}}), "type": "HTTP"}
        scenario = Scenario(
            clock,
            step("a", inputs={"key": "${workflow.secrets.API_KEY}", "text": "key=${workflow.secrets.API_KEY}"}),
            call,
            set_variable("copy", kept="${workflow.secrets.API_KEY}"),
            outputParameters={"said": "${call.output.response.body}"},
        )
        assert handed_to(scenario, "a") == {"key": SECRET, "text": f"key={SECRET}"}
        scenario.worker("a").completes()
        with run_commit_hooks():
            run_built_in_workers()
        assert server.asked[0]["headers"]["X-Key"] == SECRET

    assert scenario.status == "COMPLETED"
    assert scenario.output["said"] == {"you sent": "***", "or": ["***"]}
    for spelled in (SECRET, quote(SECRET), "correct-horse"):
        assert spelled not in everything_in_tables()
        assert spelled not in caplog.text


def test_a_secret_in_a_report_is_removed_before_storage(clock):
    secrets_and_variables.put_secret("API_KEY", SECRET, ACTOR)
    scenario = Scenario(clock, step("a", inputs={"key": "${workflow.secrets.API_KEY}"}, policy=policy(retries=1)))
    worker = scenario.worker("a")

    worker.polls()
    report = Report("FAILED", {"tried": [f"key={SECRET}!"]}, f"refused: {SECRET}")
    task_commands.report_task(
        scenario.id, worker.held.id, report, ACTOR, task_commands.ReportOptions(logs=[(f"with {SECRET}", 0)])
    )
    task_commands.add_log(worker.held.id, f"it was {SECRET}")

    assert Attempt.objects.get(pk=worker.held.id).output == {"tried": ["key=***!"]}
    assert SECRET not in everything_in_tables()
    assert sorted(TaskLog.objects.values_list("line", flat=True)) == ["it was ***", "with ***"]


@pytest.mark.parametrize(("secret", "inputs"), [("s3cret7", {"x": "${workflow.secrets.KEY}"}), (SECRET, {})])
def test_short_values_and_secrets_of_other_tasks_are_not_removed_from_reports(clock, secret, inputs):
    secrets_and_variables.put_secret("KEY", secret, ACTOR)
    scenario = Scenario(clock, step("a", inputs=inputs), step("b", inputs={"x": "${workflow.secrets.KEY}"}))

    scenario.worker("a").completes(said=secret)

    assert scenario.task("a").output == {"said": secret}
