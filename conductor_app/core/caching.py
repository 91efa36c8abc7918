"""Results that are used again, of tasks and of whole runs: where a `cacheConfig` says so, and the key is the same."""

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from .cache_effects import KeepOutput, KeepResult
from .data_requests import CachedRunOutput, CachedTaskOutput
from .decision_context import DecisionContext
from .definition import Definition
from .effects import CreateTask, Effect
from .masking import masked_names
from .snapshot import NEVER, Run, Task
from .states import COMPLETED, PENDING
from .values import replace

KEY = "cached_as"
"""In the memo of a task: the digest of its key."""


def from_cache(effects: list[Effect], ctx: DecisionContext, now: int) -> list[Effect]:
    """The effects of entering a step; work whose result is known is over at once, without a queue (execution §10.1)."""
    return [
        _known(effect.task, ctx, now) if isinstance(effect, CreateTask) and _is_asked(effect.task) else effect
        for effect in effects
    ]


def _is_asked(task: Task) -> bool:
    """Whether it is work for a queue whose result may be known."""
    return bool(task.attempt.status == PENDING and task.attempt.queue and seconds_kept(task.step.document))


def seconds_kept(document: Mapping[str, Any]) -> int:
    """For how long a result of this step or definition is used again; 0 where it is not."""
    config = document.get("cacheConfig")
    if not isinstance(config, dict) or not isinstance(config.get("key"), str) or not config["key"].strip():
        return 0
    seconds = config.get("ttlInSecond")
    return max(seconds, 0) if isinstance(seconds, int) else 0


def _known(task: Task, ctx: DecisionContext, now: int) -> CreateTask:
    # The key is written in terms of the task's inputs (`${uri}-${method}`). Runs that mask other names share nothing:
    # what is sealed in the one would stand open in the other.
    masked = masked_names(ctx.run.definition)
    digest = _digest(task.step.document, dict(task.attempt.input), ctx, *sorted(masked))
    if not digest:
        return CreateTask(task)
    output = ctx.ask(CachedTaskOutput(name_of(task), digest))
    if output is None:
        return CreateTask(replace(task, step_state={**task.step_state, KEY: digest}))
    facts: dict[str, Any] = {"queue": "", "domain": "", "due_at": NEVER, "started_at": now, "ended_at": now}
    attempt = replace(task.attempt, status=COMPLETED, output=output, **facts)
    return CreateTask(replace(task, status=COMPLETED, attempt=attempt))


def _digest(document: Mapping[str, Any], inputs: dict[str, Any], ctx: DecisionContext, *scope: str) -> str:
    """What tells keys apart; nothing where the key names what is not there: that would be one key for all."""
    key = ctx.resolve(document["cacheConfig"]["key"], inputs)
    text = key if isinstance(key, str) else json.dumps(key, sort_keys=True)
    if key is None or "${" in text:
        return ""
    whole = json.dumps([*scope, text]) if scope else text
    return blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=24).hexdigest()


def kept_result(task: Task, now: int) -> Iterator[Effect]:
    """A completed attempt's output is used again for as long as its step says."""
    if digest := task.step_state.get(KEY):
        until = now + seconds_kept(task.step.document) * 1000
        yield KeepResult(name_of(task), digest, task.attempt.id, until)


def name_of(task: Task) -> str:
    """The name of the task's definition, under which results are kept."""
    return str(task.step_state.get("name", task.step.name))


def known_output(run: Run, ctx: DecisionContext) -> tuple[str, dict[str, Any]] | None:
    """The run that had the same key and followed the same plan, with its output, if that is still kept."""
    if not seconds_kept(run.definition.document) or not (digest := _digest_of_run(run.definition, ctx)):
        return None
    return ctx.ask(CachedRunOutput(run.definition.name, digest))


def kept_output(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """A completed run's output is used again for as long as its definition says."""
    seconds = seconds_kept(run.definition.document)
    if seconds and (digest := _digest_of_run(run.definition, ctx)):
        yield KeepOutput(run.definition.name, digest, run.id, now + seconds * 1000)


def _digest_of_run(definition: Definition, ctx: DecisionContext) -> str:
    """The key is written like any expression of a workflow, or in terms of its input alone (`${customer}`)."""
    inputs = {name: value for name, value in ctx.input().items() if name != "workflow"}
    return _digest(definition.document, inputs, ctx, "run", definition.hash)
