"""Steps of dynamic forks. The head task of a branch stores the document of its step in its step state."""

from typing import Any

from ....models import Task
from ....models.fields import loads
from . import definition_documents
from .attempt_rows import Row


def dynamic_branches_by_run(rows: list[Row]) -> dict[str, dict[str, definition_documents.Steps]]:
    """Return the dynamic branches of the rows of several runs, by run id. Runs one statement."""
    wanted = {(row.run_id, row.task_branch_head) for row in rows if row.task_branch_head}
    found: dict[str, dict[str, definition_documents.Steps]] = {row.run_id: {} for row in rows}
    if not wanted:
        return found
    refs = {branch_head.rpartition("@")[0] for _, branch_head in wanted}
    heads = Task.objects.filter(run_id__in={run_id for run_id, _ in wanted}, ref__in=refs)
    for run_id, ref, iteration_path, step_state in heads.values_list("run_id", "ref", "iteration_path", "step_state"):
        if (run_id, branch_head := f"{ref}@{iteration_path}") in wanted:
            found[run_id][branch_head] = definition_documents.branch_documents(_branch_document(step_state))
    for run_id, branch_head in wanted:
        found[run_id].setdefault(branch_head, {})
    return found


def dynamic_branches(rows: list[Row]) -> dict[str, definition_documents.Steps]:
    """Return the steps of the dynamic branches that the rows of one run belong to, by branch head."""
    branch_heads = {row.task_branch_head for row in rows if row.task_branch_head}
    if not branch_heads:
        return {}
    step_states = {
        row.task_branch_head: row.step_state
        for row in rows
        if row.task_branch_head == f"{row.task_ref}@{row.task_iteration_path}"
    }
    step_states |= {
        branch_head: _load_step_state(rows[0].run_id, branch_head) for branch_head in branch_heads - step_states.keys()
    }
    return {
        branch_head: definition_documents.branch_documents(_branch_document(step_state))
        for branch_head, step_state in step_states.items()
    }


def _load_step_state(run_id: str, branch_head: str) -> Any:
    ref, _, iteration_path = branch_head.rpartition("@")
    return (
        Task.objects.filter(run_id=run_id, ref=ref, iteration_path=iteration_path)
        .values_list("step_state", flat=True)
        .first()
    )


def _branch_document(step_state: Any) -> dict[str, Any]:
    step_state = loads(step_state) if isinstance(step_state, str) else step_state
    return (step_state or {}).get("document") or {}
