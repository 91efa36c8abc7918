"""The commands against a server: `conductor-app runs`, `queues`, `failures` and `tasks`, over HTTP."""

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from conductor_app.failures import commands as failure_groups
from conductor_app.tools.remote.program import REMOTE_COMMANDS
from tests.api_fixtures import Api
from tests.clients.live_server import running_server
from tests.step_documents import simple


@pytest.fixture
def server(transactional_db, monkeypatch) -> Iterator[str]:
    """Yield the address of a live server, which is also that of the environment."""
    for name in ("CONDUCTOR_AUTH_KEY", "CONDUCTOR_AUTH_SECRET", "CONDUCTOR_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with running_server() as url:
        monkeypatch.setenv("CONDUCTOR_SERVER_URL", f"{url}/api")
        yield url


@pytest.fixture
def run(server) -> str:
    """Return a run whose second task failed without a retry."""
    api = Api()
    api.define(simple("pay"), simple("ship", inputParameters={"amount": "${pay.output.amount}"}))
    run = api.start(correlationId="order-4711", input={"order": 4711})
    api.report(api.poll("pay")[0], outputData={"amount": 12})
    api.report(api.poll("ship")[0], "FAILED_WITH_TERMINAL_ERROR", reasonForIncompletion="no such\x1b[31m address")
    return run


def execute(*arguments: str, input: str = "", expected: int = 0) -> Result:
    result = CliRunner().invoke(REMOTE_COMMANDS[arguments[0]], arguments[1:], input=input, env={"COLUMNS": "200"})
    assert result.exit_code == expected, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def read_json(*arguments: str):
    return json.loads(execute(*arguments, "--output", "json").output)


def test_runs_are_listed_by_status_workflow_and_correlation_id(run):
    Api().start()

    assert [each["workflowId"] for each in read_json("runs", "ls", "--status", "failed")] == [run]
    assert [each["workflowId"] for each in read_json("runs", "ls", "--correlation-id", "order-4711")] == [run]
    assert len(read_json("runs", "ls", "--workflow", "order")) == 2
    assert execute("runs", "ls", "--workflow", """it's "none\\""").output == "No run was found.\n"


def test_a_list_is_a_table_with_the_reason_of_each_failure(run):
    lines = execute("runs", "ls").output.splitlines()

    assert lines[0].split()[:4] == ["ID", "WORKFLOW", "VERSION", "STATUS"]
    assert lines[1].startswith(run)
    assert "FAILED" in lines[1]


def test_texts_of_workers_cannot_change_the_terminal(run):
    for command in (("ls",), ("show", run), ("why", run)):
        assert "\x1b" not in execute("runs", *command).output


def test_show_prints_each_task_with_its_error(run):
    shown = execute("runs", "show", run).output

    assert "order v1" in shown
    assert "order-4711" in shown
    assert [line.split()[0] for line in shown.splitlines()[-2:]] == ["pay", "ship"]
    assert "no such" in shown


def test_why_names_the_failed_task_and_the_next_command(run):
    explained = execute("runs", "why", run).output

    assert "ship" in explained
    assert f"conductor-app runs retry {run}" in explained


def test_why_prints_the_conditions_that_keep_a_run_waiting(server):
    api = Api()
    api.define(simple("pay"))

    explained = execute("runs", "why", api.start()).output

    assert "No worker has ever polled queue pay." in explained
    assert "Position 1" in explained


def test_a_plan_prints_what_runs_again_and_changes_nothing(run):
    planned = execute("runs", "plan", run, "retry").output

    assert "1 will run again" in planned
    assert Api().workflow(run)["status"] == "FAILED"


def test_a_rewind_is_planned_like_the_other_operations(run):
    task = Api().workflow(run)["tasks"][0]["taskId"]

    planned = execute("runs", "plan", run, "rewind", "--task", task).output

    assert f"rewind of {run}" in planned
    assert Api().workflow(run)["status"] == "FAILED"


def test_retry_asks_first_and_retries_after_a_confirmation(run):
    execute("runs", "retry", run, input="n\n")
    assert Api().workflow(run)["status"] == "FAILED"

    execute("runs", "retry", run, input="y\n")
    assert Api().workflow(run)["status"] == "RUNNING"


def test_retry_of_several_runs_continues_after_a_refusal_and_reports_it(run):
    result = execute("runs", "retry", "--yes", "no-run", run, "-o", "json", expected=1)

    assert [each["result"] for each in json.loads(result.output)] == ["refused", "retried"]


def test_watch_prints_each_change_and_its_status_is_that_of_the_run(run):
    watched = execute("runs", "watch", run, expected=1).output

    assert "ship" in watched
    assert "FAILED" in watched


def test_queues_list_what_is_pending(server):
    api = Api()
    api.define(simple("pay"))
    run = api.start()

    assert execute("queues", "ls").output.splitlines()[1].split()[:2] == ["pay", "1"]
    assert run in execute("queues", "show", "pay").output


def test_failures_are_listed_and_explained(run):
    failure_groups.group_failures(100)

    [group] = read_json("failures", "ls")
    shown = execute("failures", "show", str(group["id"])).output

    assert str(group["id"]) in execute("failures", "ls").output
    assert run in shown
    assert "version" in shown


def test_tasks_show_where_their_input_comes_from(run):
    task = Api().workflow(run)["tasks"][1]["taskId"]

    assert "${pay.output.amount}" in execute("tasks", "inputs", task).output
    assert '"amount": 12' in execute("tasks", "show", task).output


def test_an_unknown_run_is_an_error_with_the_servers_message(server):
    error = execute("runs", "why", "no-run", expected=1).output

    assert error == "Error: No such workflow found by id: no-run (HTTP 404)\n"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://127.0.0.1:1/api", "connection refused"),
        ("ftp://example.org", "must begin with http:// or https://"),
        ("http://name.invalid/api", "cannot be resolved"),
    ],
)
def test_a_server_that_cannot_be_reached_is_an_error_without_a_trace(url, message):
    assert message in execute("runs", "ls", "--url", url, expected=1).output


def test_a_key_is_exchanged_for_a_token(server, settings, monkeypatch):
    from conductor_app.access.commands.applications import create_key_of

    key, secret = create_key_of("reader", ("USER",), "tester")
    settings.CONDUCTOR_API_ACCESS = "token"

    refused = execute("runs", "ls", expected=1).output
    monkeypatch.setenv("CONDUCTOR_AUTH_KEY", key)
    monkeypatch.setenv("CONDUCTOR_AUTH_SECRET", secret)

    assert "CONDUCTOR_AUTH_KEY" in refused
    execute("runs", "ls")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_each_shell(shell):
    assert "_CONDUCTOR_APP_COMPLETE" in execute("completion", shell).output
