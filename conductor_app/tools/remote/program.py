"""The click program of the remote commands, shell completion, and the commands that inspect."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import click
from click.shell_completion import get_completion_class

from ...core.primitives import FAILURE_VIEWS
from .client import ApiClient, format_span, format_time, print_json, print_table, server_options, shorten
from .folders import apply, drift, export, plan
from .runs import runs

MAX_VALUE = 200


@click.group()
def queues() -> None:
    """Show queues, their tasks and their workers."""


@queues.command("ls")
@server_options
def list_queues(server: ApiClient, as_json: bool) -> None:
    """List all queues, the one with the oldest pending task first."""
    found = server.get("insight", "queues")["queues"]
    if as_json:
        print_json(found)
        return
    rows = (
        [
            queue["name"],
            f"{queue['pending']}{'+' if queue['pendingIsLowerBound'] else ''}",
            queue["inProgress"],
            queue["pollers"],
            format_time(queue.get("oldestPendingSince")),
            "no worker polls" if queue["isNeglected"] else "",
        ]
        for queue in found
    )
    print_table(("QUEUE", "PENDING", "IN PROGRESS", "WORKERS", "OLDEST SINCE", "NOTE"), rows, "There are no queues.")


@queues.command("show")
@click.argument("queue")
@server_options
def show_queue(server: ApiClient, as_json: bool, queue: str) -> None:
    """Show the tasks of a queue in the order of dispatch, and its limits."""
    found = server.get("insight", "queues", queue)
    if as_json:
        print_json(found)
        return
    click.echo(
        f"{found['name']}: {found['pending']} pending, {found['delayed']} delayed, {found['inProgress']} in progress"
    )
    if paused := found.get("paused"):
        click.echo(f"  Paused by {paused['by']}: {paused['reason']}")
    for limit in found["limits"]:
        click.echo(f"  {limit['used']} of {limit['allowed']} {limit['sentence']}")
    if "drainsInMs" in found:
        click.echo(f"  Empty in about {format_span(found['drainsInMs'])}")
    rows = [
        [task["position"], task["taskReferenceName"], task.get("workflowId", ""), format_time(task["pendingSince"])]
        for task in found["pendingTasks"]
    ]
    click.echo()
    print_table(("POSITION", "TASK", "RUN", "PENDING SINCE"), rows, "No task is pending.")


@click.group()
def failures() -> None:
    """Show groups of failures with the same cause."""


@failures.command("ls")
@click.option(
    "--view", default="open", show_default=True, type=click.Choice(FAILURE_VIEWS), help="State of the groups."
)
@click.option("--workflow", "-w", default="", help="Name of the workflow.")
@click.option("--text", default="", help="Text of the error or of the task.")
@server_options
def list_failures(server: ApiClient, as_json: bool, view: str, workflow: str, text: str) -> None:
    """List failure groups, the latest first."""
    found = server.get("insight", "failures", view=view, definition=workflow, text=text)["groups"]
    if as_json:
        print_json(found)
        return
    rows = (
        [
            group["id"],
            group["definition"],
            group.get("taskReferenceName", ""),
            group["state"],
            group["count"],
            group["lastDay"]["lostRuns"],
            format_time(group["lastAt"]),
            group["message"],
        ]
        for group in found
    )
    columns = ("ID", "WORKFLOW", "TASK", "STATE", "COUNT", "RUNS LOST, 24 H", "LAST", "ERROR")
    print_table(columns, rows, "There are no such failures.")


@failures.command("show")
@click.argument("group_id", type=int)
@server_options
def show_failure(server: ApiClient, as_json: bool, group_id: int) -> None:
    """Show what the failures of a group have in common."""
    found = server.get("insight", "failures", str(group_id))
    if as_json:
        print_json(found)
        return
    click.echo(f"{found['definition']} · {found.get('taskReferenceName', 'the run itself')} · {found['state']}")
    click.echo(found.get("trace") or found["message"])
    facts = f"{found['count']} failures since {format_time(found['firstAt'])}, last {format_time(found['lastAt'])}"
    click.echo(facts)
    rows = (
        [name, share["value"], share["count"], f"{share['percent']} %", _base_text(share)]
        for name, values in found["breakdown"].items()
        for share in values
    )
    click.echo()
    print_table(("PROPERTY", "VALUE", "FAILURES", "SHARE", "SHARE OF ALL WORK"), rows)
    click.echo()
    samples = ([each.get("workflowId", ""), format_time(each["at"])] for each in found["samples"])
    print_table(("RUN", "FAILED AT"), samples)


def _base_text(share: dict[str, Any]) -> str:
    if "basePercent" not in share:
        return ""
    return f"{share['basePercent']} %{' (notable)' if share['isNotable'] else ''}"


@click.group()
def tasks() -> None:
    """Show tasks and where their inputs come from."""


@tasks.command("show")
@click.argument("task_id")
@server_options
def show_task(server: ApiClient, as_json: bool, task_id: str) -> None:
    """Show a task, its input and its output."""
    task = server.get("tasks", task_id)
    if as_json:
        print_json(task)
        return
    click.echo(f"{task['referenceTaskName']}  {task['taskType']}  {task['status']}  run {task['workflowInstanceId']}")
    for name in ("workerId", "reasonForIncompletion", "domain"):
        if task.get(name):
            click.echo(f"  {name}: {task[name]}")
    click.echo(json.dumps({"input": task.get("inputData"), "output": task.get("outputData")}, indent=2))


@tasks.command("inputs")
@click.argument("task_id")
@server_options
def explain_inputs(server: ApiClient, as_json: bool, task_id: str) -> None:
    """Show where each input of a task got its value."""
    found = server.get("insight", "tasks", task_id, "provenance")["inputs"]
    if as_json:
        print_json(found)
        return
    rows = (
        [
            origin.get("parameter", ""),
            origin.get("expression", ""),
            origin.get("taskReferenceName") or origin.get("source", ""),
            shorten(json.dumps(origin["value"], ensure_ascii=False), MAX_VALUE) if origin["isFound"] else "not found",
            origin.get("hint", "").replace("`", ""),
        ]
        for origin in found
    )
    print_table(("PARAMETER", "EXPRESSION", "SOURCE", "VALUE", "HINT"), rows, "The input contains no expressions.")


PROGRAM = "conductor-app"
COMPLETION_VARIABLE = "_CONDUCTOR_APP_COMPLETE"
"""The variable with which a shell asks for completions, as click names it."""
SHELLS = ("bash", "zsh", "fish")
GROUPS: dict[str, click.Command] = {"runs": runs, "queues": queues, "failures": failures, "tasks": tasks}


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a script that completes subcommands and options.

    \b
    bash:  source <(conductor-app completion bash)
    zsh:   source <(conductor-app completion zsh)
    fish:  conductor-app completion fish | source
    """  # noqa: D301
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(build_program(()), {}, PROGRAM, COMPLETION_VARIABLE).source())


FOLDER_COMMANDS: dict[str, click.Command] = {"plan": plan, "apply": apply, "drift": drift, "export": export}
REMOTE_COMMANDS: dict[str, click.Command] = {**GROUPS, **FOLDER_COMMANDS, "completion": completion}


def build_program(other_names: Iterable[str]) -> click.Group:
    """Return a program with all commands. `other_names`: subcommands that are only completed, not executed."""
    others: dict[str, click.Command] = {name: click.Command(name) for name in other_names}
    return click.Group(PROGRAM, commands={**others, **REMOTE_COMMANDS})


def execute(name: str, arguments: Sequence[str]) -> None:
    """Execute a remote command, and exit with its status."""
    REMOTE_COMMANDS[name].main(list(arguments), prog_name=f"{PROGRAM} {name}")


def print_completions(other_names: Iterable[str]) -> None:
    """Print the completions that a shell asks for, and exit."""
    build_program(other_names).main([], prog_name=PROGRAM, complete_var=COMPLETION_VARIABLE)
