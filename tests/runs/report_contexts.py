"""Compare the decision from an attempt's context with the decision from the whole run; check the invariants of rows."""

from collections import Counter
from typing import Any

from conductor_app.core.data_requests import ScriptEvaluation, WholeRun
from conductor_app.core.decide import Decision, apply_command
from conductor_app.core.decision_context import Command
from conductor_app.core.snapshot import UNKNOWN, Run
from conductor_app.runs.commands.loaded_data import LoadedData
from conductor_app.runs.models import Attempt, Message, Task
from conductor_app.runs.models import Run as RunRow
from conductor_app.runs.store import loading as store
from conductor_app.utils import clock


def decide_command(run_id: str, near: list[str] | None, command: Command) -> tuple[Decision, bool]:
    """Return the decision on the command, without saving it, and whether it read the whole run."""
    data, run = LoadedData(), store.load_for_update(run_id, near)
    while True:
        decision = apply_command(run, command, data, clock.now())
        if not decision.data_requests:
            return decision, run.is_whole
        if WholeRun() in decision.data_requests and not run.is_whole:
            run = store.load_for_update(run_id)
            data.clear()
            continue
        scripts = {question for question in decision.data_requests if isinstance(question, ScriptEvaluation)}
        data.evaluate_scripts(scripts)
        data.load_from_rows(run, decision.data_requests - scripts - {WholeRun()}, clock.now())


def normalized_decision(decision: Decision) -> dict[str, Any]:
    """Return the decision's effects without ids and without irrelevant order."""
    run = decision.after
    tasks = {str(task.key): _facts(run, task) for key, task in run.tasks.items() if key in run.touched}
    said = [
        line
        for line in (effect.to_history() for effect in decision.effects)
        if line["effect"] in ("SendMessage", "StartRun")
    ]
    return {
        "tasks": tasks,
        "run": (run.status, run.wake_at, run.next_seq, run.is_held, sorted(run.failed_refs), sorted(run.failed_names)),
        "has_reason": bool(run.reason),
        "output": None if run.output is UNKNOWN else run.output,
        "said": Counter((line["effect"], line.get("definition"), line.get("subject")) for line in said),
    }


def decision_differences(near: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """Return the differences between two decisions: from the context first, from the whole run second."""
    pairs = {part: (near[part], whole[part]) for part in whole if part != "tasks"}
    keys = near["tasks"].keys() | whole["tasks"].keys()
    pairs |= {key: (near["tasks"].get(key), whole["tasks"].get(key)) for key in keys}
    return {name: (one, other) for name, (one, other) in pairs.items() if one != other}


def _facts(run: Run, task: Any) -> tuple:
    attempt = task.attempt
    moments = (attempt.visible_at, attempt.due_at, attempt.ends_at, attempt.lease_ends_at, attempt.ended_at)
    input, output = (None if value is UNKNOWN else value for value in (attempt.input, attempt.output))
    shown = {name: value for name, value in task.step_state.items() if name != "document"}
    return (
        task.status, attempt.status, attempt.number, moments, attempt.queue, input, output, task.iteration, shown,
        task.joined_by, task.branch_head,
    )  # fmt: skip


def row_violations(run_id: str) -> list[str]:
    """Return all violated invariants of the run's rows."""
    run = RunRow.objects.get(pk=run_id)
    tasks = list(Task.objects.filter(run_id=run_id))
    attempts = list(Attempt.objects.filter(run_id=run_id))
    by_id = {task.id: task for task in tasks}
    newest = {task.id: max((a for a in attempts if a.task_id == task.id), key=lambda a: a.number) for task in tasks}
    open_attempts = [attempt for attempt in attempts if attempt.status in ("PENDING", "LEASED")]
    found = [f"{task} does not point to its newest attempt" for task in tasks if task.attempt_id != newest[task.id].id]
    found += [
        f"{task} is {task.status}, its newest attempt {newest[task.id].status}"
        for task in tasks
        if task.status == "ACTIVE" and newest[task.id] not in open_attempts and run.status != "PAUSED"
    ]
    found += [f"{by_id[a.task_id]} is over, {a} open" for a in open_attempts if by_id[a.task_id].status != "ACTIVE"]
    seqs = [attempt.seq for attempt in attempts]
    if len(set(seqs)) < len(seqs) or max(seqs, default=0) >= run.next_seq:
        found.append(f"the order of attempts is broken: {sorted(seqs)}, next is {run.next_seq}")
    if run.ended_at is not None and open_attempts:
        found.append("the run has ended and attempts are open")
    if Message.objects.filter(due_at__lte=clock.now()).exists():
        found.append("a message was not delivered")
    return found
