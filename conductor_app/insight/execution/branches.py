"""The steps of dynamic forks: a branch's document is kept by the task that heads it."""

from typing import Any

from ...models import Task
from ...models.fields import loads
from . import plans
from .rows import Row


def branches_of_many(rows: list[Row]) -> dict[str, dict[str, plans.Steps]]:
    """The same for rows of several runs, by run id; read in one statement."""
    wanted = {(row.run_id, row.task_root) for row in rows if row.task_root}
    found: dict[str, dict[str, plans.Steps]] = {row.run_id: {} for row in rows}
    if not wanted:
        return found
    refs = {root.rpartition("@")[0] for _, root in wanted}
    heads = Task.objects.filter(run_id__in={run_id for run_id, _ in wanted}, ref__in=refs)
    for run_id, ref, turn, memo in heads.values_list("run_id", "ref", "turn", "memo"):
        if (run_id, root := f"{ref}@{turn}") in wanted:
            found[run_id][root] = plans.branch(_document(memo))
    for run_id, root in wanted:
        found[run_id].setdefault(root, {})
    return found


def branches(rows: list[Row]) -> dict[str, plans.Steps]:
    """The steps of the dynamic branches that the rows of one run belong to, by `root` as the tasks spell it."""
    roots = {row.task_root for row in rows if row.task_root}
    if not roots:
        return {}
    memos = {row.task_root: row.memo for row in rows if row.task_root == f"{row.task_ref}@{row.task_turn}"}
    memos |= {root: _memo(rows[0].run_id, root) for root in roots - memos.keys()}
    return {root: plans.branch(_document(memo)) for root, memo in memos.items()}


def _memo(run_id: str, root: str) -> Any:
    ref, _, turn = root.rpartition("@")
    return Task.objects.filter(run_id=run_id, ref=ref, turn=turn).values_list("memo", flat=True).first()


def _document(memo: Any) -> dict[str, Any]:
    memo = loads(memo) if isinstance(memo, str) else memo
    return (memo or {}).get("document") or {}
