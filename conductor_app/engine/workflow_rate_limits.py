"""Workflow rate limits: how many runs of one key go on at a time (execution §5.4)."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from django.db import transaction

from ..core import commands, snapshot
from ..core.decide import Command
from ..core.decision_context import DecisionContext
from ..core.definition import Definition
from ..core.effects import Effect, TransitionRun
from ..core.errors import Conflict
from ..core.expressions import MISSING, resolve_template
from ..models import Run
from ..store.definitions import load_definition
from ..store.rows import strip_nul
from ..store.statements import serialize
from . import payloads
from .change import RunCommand, change_run


def rate_limit_config(definition: Definition) -> tuple[str, int, str]:
    """The key as written, the limit (0: none) and the policy of a definition."""
    config = definition.document.get("rateLimitConfig") or {}
    try:
        limit = int(config.get("concurrentExecLimit") or 0)
    except (TypeError, ValueError):
        limit = 0
    return str(config.get("rateLimitKey") or ""), limit, str(config.get("policy") or "QUEUE")


def rate_limit_key(definition: Definition, scope: Any) -> str:
    """The key of one run: a constant, or an expression over its input and correlation id; empty without a limit."""
    written, limit, _ = rate_limit_config(definition)
    if limit <= 0:
        return ""
    value = resolve_template(written, scope) if "${" in written else written
    return strip_nul(str(value if value is not None else ""))[:512] or definition.name


def rate_limit_key_for_run(run: snapshot.Run, definition: Definition, given: Any) -> str:
    """The key of a run that begins by this definition, with what it is given."""
    values = {"input": given, "correlationId": run.correlation_id, "workflowId": run.id, "version": definition.version}
    return rate_limit_key(definition, scope_of(values))


def is_limit_reached(definition: Definition, key: str, *, rejects: bool = True, but: str = "") -> bool:
    """Whether a run that starts now has to wait; serialised with all others of the key until the transaction ends.

    Raises Conflict where the policy is to reject.
    """
    _, limit, policy = rate_limit_config(definition)
    serialize(f"runs:{definition.name}:{key}")
    if _going_on(definition.name, key, but) < limit and not _held_runs(definition.name, key).exists():
        return False
    if rejects and policy == "REJECT":
        raise Conflict(f"{limit} runs of {definition.name} with the rate limit key '{key}' are going on already.")
    return True


def _held_runs(name: str, key: str):
    """The runs that are held, the earliest first: they go before any that starts now."""
    return Run.objects.open().filter(name=name, limit_key=key, is_held=True).order_by("created_at", "id")


def _going_on(name: str, key: str, but: str = "") -> int:
    return Run.objects.open().filter(name=name, limit_key=key, is_held=False).exclude(pk=but).count()


def admit(run_id: str) -> None:
    """Hold a run that another has started, if its definition's limit is reached; such a run is never rejected."""
    run = Run.objects.get(pk=run_id)
    definition = load_definition(run.plan_id)
    given = payloads.load_payload(run.input_path) if run.input_path else run.input
    values = {"input": given, "correlationId": run.correlation_id, "workflowId": run.id, "version": run.version}
    key = rate_limit_key(definition, scope_of(values))
    if not key or run.next_seq > 1:
        return
    with transaction.atomic():
        is_held = is_limit_reached(definition, key, rejects=False, but=run_id)
        Run.objects.filter(pk=run_id, next_seq=1).update(limit_key=key, is_held=is_held)


def waiting_its_turn(command: Command) -> Command:
    """A command that begins a run anew, which then waits where its limit is reached, like any that starts."""

    def asked(run: snapshot.Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        for effect in command(run, ctx, now):
            yield _is_held(effect, run, ctx) if isinstance(effect, TransitionRun) else effect

    return asked


def _is_held(begun: TransitionRun, run: snapshot.Run, ctx: DecisionContext) -> TransitionRun:
    definition = begun.facts["definition"]
    key = rate_limit_key_for_run(run, definition, ctx.input()) if rate_limit_config(definition)[1] > 0 else ""
    is_held = bool(key) and is_limit_reached(definition, key, rejects=not run.parent_id, but=run.id)
    return replace(begun, facts={**begun.facts, "limit_key": key, "is_held": is_held})


def admit_late(run_id: str) -> None:
    """Hold a run whose start was asked for ahead and has come, if its definition's limit is reached by now."""
    if Run.objects.filter(pk=run_id, next_seq=1, limit_key="", parent_id="").exists():
        admit(run_id)


def scope_of(values: dict[str, Any]) -> Callable[[str, str], Any]:
    """What the expression of a key may name: facts of the run that starts."""
    return lambda root, name: values.get(name, MISSING) if root == "workflow" else MISSING


def release_next(name: str, key: str) -> None:
    """Let the earliest held runs of the key go on, as many as there is room for."""
    while True:
        with transaction.atomic():
            serialize(f"runs:{name}:{key}")
            held = _held_runs(name, key).first()
            if held is None or _going_on(name, key) >= _limit(held):
                return
            change_run(RunCommand(held.id, commands.release_held_run, "engine", "Its limit has room again."))


def _limit(run: Run) -> int:
    return rate_limit_config(load_definition(run.plan_id))[1]
