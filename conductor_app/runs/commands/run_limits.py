"""Run limits: how many runs of a workflow may be open at once for each key (`rateLimitConfig`, execution §5.4).

1. A start evaluates the key with `limit_key_of`: the key may be an expression, the limit is a number.
   `is_limit_reached` counts the admitted runs of the key, for one start at a time; a held run of the key also holds the
   starts after it. Over the limit, the policy REJECT
   refuses the start; otherwise the run is created as held (`is_held`). A sub-workflow, and a delayed start whose time
   has come, are held by `admit` with either policy; `with_run_limit` holds or refuses a restart.
2. `core/rules/advance.py:enter_step` creates the first task of a held run without a time at which it is visible, so
   that no worker claims it. If the first step has no queue, it is not entered.
3. When a run of the key ends, `core/rules/finish.py:end_run` sends the message `release`, which calls
   `start_held_runs`.
4. `start_held_runs` starts the earliest held runs while there is room, each by the command `start_held_run`: the
   first task becomes visible, or the first step is entered.

Limits of tasks are gates (`tasks/gates.py`), and limits of callers are quotas (`access/quotas.py`).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...core import snapshot
from ...core.data_requests import RunLimitReached
from ...core.decision_context import Command, DecisionContext
from ...core.definition import Definition
from ...core.effects import Effect, TransitionRun, UpdateRun, UpdateTask
from ...core.errors import Conflict
from ...core.expressions import field_text, resolve_at_start
from ...core.primitives import fast_replace
from ...core.timers import next_timer
from ...db.database import transaction
from ...db.fields import strip_nul
from ...db.statements import serialize
from ...definitions.store import load_definition
from ...payloads import commands as payload_storage
from ..models import Run
from ..store import data
from .change import RunCommand, change_run


def run_limit_of(definition: Definition) -> tuple[str, int, str]:
    """Return the unresolved key, the limit (0: none) and the policy of a definition."""
    config = definition.document.get("rateLimitConfig") or {}
    try:
        limit = int(config.get("concurrentExecLimit") or 0)
    except (TypeError, ValueError):
        limit = 0
    return str(config.get("rateLimitKey") or ""), limit, str(config.get("policy") or "QUEUE")


def limit_key_of(run: snapshot.Run | Run, definition: Definition, given: Any) -> str:
    """Return the limit key of a run that starts with this definition and input. It is empty without a limit."""
    written, limit, _ = run_limit_of(definition)
    if limit <= 0:
        return ""
    if "${" in written:
        written = resolve_at_start(written, given, run.id, run.correlation_id, definition.version)
    return strip_nul(field_text(written))[:512] or definition.name


def is_limit_reached(definition: Definition, key: str, *, rejects: bool = True, but: str = "") -> bool:
    """Return True if a run that starts now must wait. Starts with the same key are serialized until the commit.

    `but`: a run that is not counted.

    Raises:
        Conflict: when the limit is reached, the policy is REJECT, and `rejects` is True.
    """
    _, limit, _ = run_limit_of(definition)
    if not data.is_run_limit_reached(definition.name, key, limit, but):
        return False
    if rejects:
        _refuse_rejected(definition, key)
    return True


def _refuse_rejected(definition: Definition, key: str) -> None:
    """Refuse a run that reaches its limit, if the policy is REJECT."""
    _, limit, policy = run_limit_of(definition)
    if policy == "REJECT":
        raise Conflict(
            f"The limit of {limit} concurrent runs of {definition.name} with the rate limit key '{key}' is reached."
        )


def admit(run_id: str) -> None:
    """Hold a child run or a delayed start if the limit of its definition is reached. Neither is rejected."""
    run = Run.objects.get(pk=run_id)
    definition = load_definition(run.resolved_definition_id)
    given = payload_storage.load_payload(run.input_path) if run.input_path else run.input
    key = limit_key_of(run, definition, given)
    if not key or run.next_seq > 1:
        return
    with transaction.atomic():
        is_held = is_limit_reached(definition, key, rejects=False, but=run_id)
        data.set_run_limit(run_id, key, is_held)


def with_run_limit(command: Command) -> Command:
    """Return a restart command that holds the run if its limit is reached, as for any start."""

    def limited(run: snapshot.Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        for effect in command(run, ctx, now):
            yield _limit_transition(effect, run, ctx) if isinstance(effect, TransitionRun) else effect

    return limited


def _limit_transition(begun: TransitionRun, run: snapshot.Run, ctx: DecisionContext) -> TransitionRun:
    definition, is_held = begun.facts["definition"], False
    limit = run_limit_of(definition)[1]
    key = limit_key_of(run, definition, ctx.input()) if limit > 0 else ""
    if key and (is_held := ctx.require(RunLimitReached(definition.name, key, limit))) and not run.parent_id:
        _refuse_rejected(definition, key)
    return replace(begun, facts={**begun.facts, "limit_key": key, "is_held": is_held})


def admit_delayed_start(run_id: str) -> None:
    """Hold a run whose delayed start is due, if the limit of its definition is reached."""
    if Run.objects.filter(pk=run_id, next_seq=1, limit_key="", parent_id="").exists():
        admit(run_id)


def start_held_runs(name: str, key: str) -> None:
    """Start the earliest held runs of a key, up to the limit."""
    while True:
        with transaction.atomic():
            serialize(f"runs:{name}:{key}")
            held = data.held_runs(name, key).first()
            if held is None or data.count_admitted_runs(name, key) >= _limit(held):
                return
            change_run(RunCommand(held.id, start_held_run, "engine", "The rate limit allows another run."))


def start_held_run(run: snapshot.Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Let a held run begin, as a command."""
    if not (run.is_held and run.is_open):
        return
    yield UpdateRun({"is_held": False})
    for task in run.open_tasks:
        facts: dict[str, Any] = {"visible_at": now + task.attempt.delay_ms, "pending_since": now}
        due_at = next_timer(task.step.policy, fast_replace(task.attempt, **facts), now)
        yield UpdateTask(task.key, attempt_facts={**facts, "due_at": due_at})


def _limit(run: Run) -> int:
    return run_limit_of(load_definition(run.resolved_definition_id))[1]
