"""Simulated runs as Conductor's Workflow documents."""

from collections.abc import Iterable
from typing import Any

from ....core.snapshot import UNKNOWN, Attempt, Run, Task
from . import definition_documents
from .attempt_rows import RUN_FACTS, Row, RunFacts
from .branches import dynamic_branches
from .task_documents import task_fields
from .workflow_documents import RunRow, workflow_fields


def simulated_document(run: Run, attempts: Iterable[tuple[Attempt, Task]], now: int) -> dict[str, Any]:
    """Return a simulated run as it is at `now`, with these attempts in their order."""
    row = _run_row(run)
    documents = definition_documents.DefinitionDocuments(dict(run.definition.document))
    facts = RunFacts._make(getattr(row, name) for name in RUN_FACTS)
    rows = [_attempt_row(attempt, task, run) for attempt, task in attempts]
    branch_steps = dynamic_branches(rows)
    tasks = []
    for each in rows:
        steps = branch_steps[each.task_branch_head] if each.task_branch_head else documents.steps
        step = steps.get(each.task_ref) or definition_documents.unknown_step(each.task_ref, each.name)
        tasks.append(task_fields(each, facts, step, now))
    return workflow_fields(row, tasks, documents.workflow.document)


def _run_row(run: Run) -> RunRow:
    others = {"name": run.definition.name, "version": run.definition.version, "resolved_definition_id": ""}
    others |= {"failed_refs": list(run.failed_refs), "failed_names": list(run.failed_names), "domains": {**run.domains}}
    others |= {part: _known_payload(getattr(run, part)) for part in ("input", "output", "variables")}
    return RunRow._make(others.get(name, getattr(run, name, "")) for name in RunRow._fields)


def _attempt_row(attempt: Attempt, task: Task, run: Run) -> Row:
    branch_head = (
        f"{task.branch_head.ref}@{'.'.join(map(str, task.branch_head.iteration_path))}" if task.branch_head else ""
    )
    policy = task.step.policy
    others: dict[str, Any] = {
        "name": task.step.name,
        "run_id": run.id,
        "rate_count": policy.rate_count,
        "rate_seconds": policy.rate_seconds,
        "task_ref": task.key.ref,
        "task_iteration_path": ".".join(map(str, task.key.iteration_path)),
        "task_type": task.step.type,
        "task_status": task.status,
        "task_attempt_id": task.attempt.id,
        "task_iteration": task.iteration,
        "task_branch_head": branch_head,
        "step_state": dict(task.step_state),
        "input_path": "",
        "output_path": "",
        "input": _known_payload(attempt.input),
        "output": _known_payload(attempt.output),
    }
    return Row._make(others[name] if name in others else getattr(attempt, name) for name in Row._fields)


def _known_payload(payload: Any) -> Any:
    return {} if payload is UNKNOWN or payload is None else payload
