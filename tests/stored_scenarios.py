"""Scenarios for tests of insight: runs created by the engine through the commands of clients and workers."""

from typing import Any

from conductor_app.core.decide import Report
from conductor_app.definitions import commands as definition_commands
from conductor_app.runs.commands import start as run_starts
from conductor_app.runs.commands.start import StartRequest
from conductor_app.runs.models import Attempt, Run
from conductor_app.tasks.commands import reports as task_commands
from conductor_app.tasks.commands.claims import claim_tasks
from conductor_app.tasks.queries.waiting import GateVerdict, verdicts_on
from conductor_app.tasks.store import ClaimedAttempt
from conductor_app.utils import clock


def step(ref: str, type: str = "SIMPLE", **more: Any) -> dict[str, Any]:
    """Return a step of a workflow document."""
    return {"name": ref, "taskReferenceName": ref, "type": type, "inputParameters": {}, **more}


def define_task(name: str, **fields: Any) -> None:
    timeouts = {"timeoutSeconds": 3600, "responseTimeoutSeconds": 600, "ownerEmail": "team@example.com"}
    definition_commands.save_task({"name": name, **timeouts, **fields}, "ann")


def define_workflow(name: str, *steps: dict[str, Any], **fields: Any) -> None:
    document = {"name": name, "version": 1, "ownerEmail": "team@example.com", "tasks": list(steps), **fields}
    definition_commands.save_workflow(document, "ann", overwrite=True)


def start_run(name: str, **request: Any) -> Run:
    return Run.objects.get(pk=run_starts.start_run(StartRequest(name=name, **request), "ann"))


def start_run_of(*steps: dict[str, Any], name: str = "order", **request: Any) -> Run:
    """Register a workflow with these steps and start a run of it."""
    define_workflow(name, *steps)
    return start_run(name, **request)


def claim_next(queue: str, worker: str = "w7") -> ClaimedAttempt | None:
    """Claim the next attempt of the queue; return None if there is none."""
    claimed = claim_tasks(queue, worker=worker, wait_ms=0)
    return claimed[0] if claimed else None


def claim_and_report(queue: str, outcome: str = "COMPLETED", worker: str = "w7", **fields: Any) -> None:
    """Claim the next attempt of the queue and report on it."""
    attempt = claim_next(queue, worker)
    assert attempt is not None, f"no attempt is pending in queue {queue}"
    task_commands.report_task(attempt.run_id, attempt.id, Report(outcome, **fields), worker)


def newest_attempt_of(run: Run, ref: str) -> Attempt:
    return Attempt.objects.filter(run=run, task__ref=ref).order_by("-number").first()


def reload_run(run: Run) -> Run:
    """Read the run from the database again."""
    return Run.objects.get(pk=run.pk)


def explain_attempt(attempt_id: str) -> list[GateVerdict]:
    """Return the verdicts on an attempt by id. Empty if it is not pending."""
    attempt = Attempt.objects.defer_payloads().select_related("run").filter(pk=attempt_id).first()
    return verdicts_on(attempt, clock.now()) if attempt else []
