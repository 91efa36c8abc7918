"""`conductor-app runs`: list, show, explain, plan, retry and watch runs."""

import sys
import time
from collections.abc import Iterator
from typing import Any

import click

from ...core.primitives import RUN_OPERATIONS, RUN_STATUSES, quote_search_value
from .client import (
    ApiClient,
    ServerError,
    color_status,
    format_span,
    format_time,
    print_json,
    print_table,
    server_options,
)

Document = dict[str, Any]
MAX_LISTED = 1_000
POLL_SECONDS = 1.0
SKIPPED_IN_TABLE = ("RESULT_REUSED",)


@click.group()
def runs() -> None:
    """List, explain and retry runs."""


@runs.command("ls")
@click.option("--status", "-s", multiple=True, type=click.Choice(RUN_STATUSES, case_sensitive=False), help="Status.")
@click.option("--workflow", "-w", default="", help="Name of the workflow.")
@click.option("--correlation-id", default="", help="Correlation id.")
@click.option("--query", "-q", default="", help='Condition of a search, such as "endTime > 1763942400000".')
@click.option("--text", default="", help="Text to search for in inputs, outputs and errors.")
@click.option(
    "--limit", "-n", default=20, show_default=True, type=click.IntRange(1, MAX_LISTED), help="Number of runs."
)
@server_options
def list_runs(server: ApiClient, as_json: bool, limit: int, text: str, **conditions: Any) -> None:
    """List runs, the newest first."""
    query = " AND ".join(_conditions(**conditions))
    found = server.get("workflow", "search", query=query, freeText=text or "*", size=limit, sort="startTime:DESC")
    if as_json:
        print_json(found["results"])
        return
    rows = (
        [
            run["workflowId"],
            run["workflowType"],
            run.get("version", ""),
            run["status"],
            format_time(run.get("startTime")),
            format_span(run["executionTime"]) if run.get("endTime") else "",
            run.get("reasonForIncompletion") or run.get("correlationId") or "",
        ]
        for run in found["results"]
    )
    columns = ("ID", "WORKFLOW", "VERSION", "STATUS", "STARTED", "DURATION", "REASON OR CORRELATION ID")
    print_table(columns, rows, "No run was found.")


def _conditions(status: tuple[str, ...], workflow: str, correlation_id: str, query: str) -> Iterator[str]:
    if status:
        yield f"status IN ({','.join(each.upper() for each in status)})"
    if workflow:
        yield f"workflowType = {quote_search_value(workflow)}"
    if correlation_id:
        yield f"correlationId = {quote_search_value(correlation_id)}"
    if query:
        yield query


@runs.command("show")
@click.argument("run_id")
@server_options
def show_run(server: ApiClient, as_json: bool, run_id: str) -> None:
    """Show a run with its tasks."""
    run = server.get("workflow", run_id)
    if as_json:
        print_json(run)
        return
    print_run(run)
    rows = (
        [
            task["referenceTaskName"],
            task["taskType"],
            task["status"],
            task.get("retryCount", 0) + 1,
            _task_span(task),
            task.get("reasonForIncompletion") or task.get("workerId") or "",
        ]
        for task in run.get("tasks", ())
    )
    click.echo()
    print_table(
        ("TASK", "TYPE", "STATUS", "ATTEMPT", "DURATION", "REASON OR WORKER"), rows, "The run has no tasks yet."
    )


def print_run(run: Document) -> None:
    """Print the facts of a run."""
    click.echo(f"{run['workflowName']} v{run['workflowVersion']}  {color_status(run['status'])}  {run['workflowId']}")
    facts = {
        "Started": format_time(run.get("startTime") or run.get("createTime")),
        "Ended": format_time(run.get("endTime")),
        "Correlation id": run.get("correlationId"),
        "Parent": run.get("parentWorkflowId"),
        "Reason": run.get("reasonForIncompletion"),
    }
    for name, value in facts.items():
        if value:
            click.echo(f"  {name + ':':<16}{value}")


def _task_span(task: Document) -> str:
    if not task.get("startTime") or not task.get("endTime"):
        return ""
    return format_span(task["endTime"] - task["startTime"])


@runs.command("why")
@click.argument("run_id")
@server_options
def explain_run(server: ApiClient, as_json: bool, run_id: str) -> None:
    """Explain why a run waits, or why it failed."""
    cause = server.get("insight", "runs", run_id, "cause")
    if as_json:
        print_json(cause)
        return
    click.echo(cause["sentence"].replace("`", ""))
    closed = [gate for gate in cause["gates"] if not gate["isOpen"]]
    for gate in closed:
        click.echo(f"  - {gate['sentence'].replace('`', '')}")
        for holder in gate["holders"]:
            worker = f" on {holder['workerId']}" if holder.get("workerId") else ""
            click.echo(f"      held by run {holder['workflowId']}{worker} since {format_time(holder['since'])}")
    if position := cause.get("queuePosition"):
        click.echo(f"  {position['sentence']}")
    if cause.get("subWorkflowId"):
        click.echo(f"  Sub-workflow: conductor-app runs why {cause['subWorkflowId']}")
    if "retry" in cause["operations"]:
        click.echo(f"  To retry it: conductor-app runs retry {run_id}")


@runs.command("plan")
@click.argument("run_id")
@click.argument("operation", type=click.Choice(RUN_OPERATIONS))
@click.option("--task", default="", help="Id of the task from which a rerun or a rewind continues.")
@click.option("--step", default="", help="Reference of the step to skip or to jump to.")
@click.option("--version", default="", help="Version to follow, or `latest`.")
@click.option("--resume-subworkflows", is_flag=True, help="Resume failed sub-workflows instead of restarting them.")
@server_options
def plan_run(server: ApiClient, as_json: bool, run_id: str, operation: str, **options: Any) -> None:
    """Show what an operation would do to each task. Nothing is changed."""
    plan = request_plan(server, run_id, operation, **options)
    if as_json:
        print_json(plan)
    else:
        print_plan(plan)


def request_plan(
    server: ApiClient, run_id: str, operation: str, *, task: str = "", step: str = "", version: str = "",
    resume_subworkflows: bool = False,
) -> Document:  # fmt: skip
    """Return the plan of an operation."""
    body = {
        "operation": operation,
        "taskId": task,
        "taskReferenceName": step,
        "version": version,
        "resumeSubworkflows": resume_subworkflows,
    }
    plan: Document = server.post("insight", "runs", run_id, "plan", body=body)
    return plan


def print_plan(plan: Document) -> None:
    """Print the tasks that a plan changes, and warn of repeated effects."""
    counts = ", ".join(f"{count} {_words(name)}" for name, count in plan["counts"].items())
    click.echo(f"{plan['operation']} of {plan['workflowId']}: {counts or 'no task changes'}")
    rows = (
        [run["workflowName"], task["taskReferenceName"], task["type"], task["status"], _words(task["impact"])]
        for run in plan["workflows"]
        for task in run["tasks"]
        if task["impact"] not in SKIPPED_IN_TABLE
    )
    print_table(("WORKFLOW", "TASK", "TYPE", "STATUS", "EFFECT"), rows, "")
    for effect in plan["repeatsExternalEffects"]:
        warning = f"Warning: {effect['taskReferenceName']} has side effects outside of the workflow, and runs again."
        click.echo(click.style(warning, fg="yellow"))
    if plan["isIncomplete"]:
        click.echo("The plan is incomplete: it affects too many runs.")


def _words(impact: str) -> str:
    return impact.lower().replace("_", " ")


@runs.command("retry")
@click.argument("run_ids", nargs=-1, required=True)
@click.option("--resume-subworkflows", is_flag=True, help="Resume failed sub-workflows instead of restarting them.")
@click.option("--reason", default="", help="Reason for the audit log.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@server_options
def retry_runs(
    server: ApiClient, as_json: bool, run_ids: tuple[str, ...], resume_subworkflows: bool, reason: str, yes: bool
) -> None:
    """Retry failed runs, after showing what each retry repeats.

    A run that has changed since its plan is not retried. The exit status is 1 if a run was not retried.
    """
    results = []
    for run_id in run_ids:
        results.append({"workflowId": run_id, **_retry(server, run_id, resume_subworkflows, reason, yes, as_json)})
    if as_json:
        print_json(results)
    if any(result["result"] == "refused" for result in results):
        sys.exit(1)


def _retry(
    server: ApiClient, run_id: str, resume_subworkflows: bool, reason: str, yes: bool, as_json: bool
) -> Document:  # fmt: skip
    try:
        plan = request_plan(server, run_id, "retry", resume_subworkflows=resume_subworkflows)
        if not as_json:
            print_plan(plan)
        if not yes and not click.confirm(f"Retry {run_id}?", err=True):
            return {"result": "skipped"}
        body = {"confirmationToken": plan["confirmationToken"], "reason": reason}
        server.post("insight", "runs", run_id, "apply", body=body)
    except ServerError as error:
        if not as_json:
            click.echo(f"{run_id}: {error}", err=True)
        return {"result": "refused", "message": str(error)}
    if not as_json:
        click.echo(f"{run_id} is being retried.")
    return {"result": "retried"}


@runs.command("watch")
@click.argument("run_id")
@server_options
def watch_run(server: ApiClient, as_json: bool, run_id: str) -> None:
    """Print each change of a run until it ends. The exit status is 0 only if it completes."""
    seen: dict[str, str] = {}
    while True:
        run = server.get("workflow", run_id)
        for task in run.get("tasks", ()):
            if seen.get(task["taskId"]) != task["status"]:
                seen[task["taskId"]] = task["status"]
                _print_change(task, as_json)
        if run["status"] not in ("RUNNING", "PAUSED"):
            break
        time.sleep(POLL_SECONDS)
    if as_json:
        print_json({"workflowId": run_id, "status": run["status"]})
    else:
        print_run(run)
    sys.exit(0 if run["status"] == "COMPLETED" else 1)


def _print_change(task: Document, as_json: bool) -> None:
    fields = ("referenceTaskName", "taskType", "status", "workerId", "reasonForIncompletion")
    if as_json:
        print_json({name: task[name] for name in fields if task.get(name)})
    else:
        moment = format_time(task.get("updateTime") or task.get("scheduledTime"))
        reason = task.get("reasonForIncompletion") or ""
        click.echo(f"{moment}  {task['referenceTaskName']:<30}{color_status(task['status'])}  {reason}".rstrip())
