"""Results that are used again, of tasks and of whole runs: where a `cacheConfig` says so, and the key is the same."""

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from .cache_effects import CacheRunOutput, CacheTaskResult
from .data_requests import CachedRunOutput, CachedTaskOutput
from .decision_context import DecisionContext
from .definition import Definition
from .effects import CreateTask, Effect
from .frozen import fast_replace
from .masking import masked_names
from .snapshot import NEVER, Run, Task
from .states import COMPLETED, PENDING

CACHE_DIGEST_KEY = "cached_as"
"""In the memo of a task: the digest of its key."""


def apply_cached_result(effects: list[Effect], ctx: DecisionContext, now: int) -> list[Effect]:
    """The effects of entering a step; work whose result is known is over at once, without a queue (execution §10.1)."""
    return [
        _cached_output(effect.task, ctx, now)
        if isinstance(effect, CreateTask) and _may_be_cached(effect.task)
        else effect
        for effect in effects
    ]


def _may_be_cached(task: Task) -> bool:
    """Whether it is work for a queue whose result may be known."""
    return bool(task.attempt.status == PENDING and task.attempt.queue and cache_seconds(task.step.document))


def cache_seconds(document: Mapping[str, Any]) -> int:
    """For how long a result of this step or definition is used again; 0 where it is not."""
    config = document.get("cacheConfig")
    if not isinstance(config, dict) or not isinstance(config.get("key"), str) or not config["key"].strip():
        return 0
    seconds = config.get("ttlInSecond")
    return max(seconds, 0) if isinstance(seconds, int) else 0


def _cached_output(task: Task, ctx: DecisionContext, now: int) -> CreateTask:
    # The key is written in terms of the task's inputs (`${uri}-${method}`). Runs that mask other names share nothing:
    # what is sealed in the one would stand open in the other.
    masked = masked_names(ctx.run.definition)
    digest = _cache_key_digest(task.step.document, dict(task.attempt.input), ctx, *sorted(masked))
    if not digest:
        return CreateTask(task)
    output = ctx.require(CachedTaskOutput(cached_name_of(task), digest))
    if output is None:
        return CreateTask(fast_replace(task, step_state={**task.step_state, CACHE_DIGEST_KEY: digest}))
    facts: dict[str, Any] = {"queue": "", "domain": "", "due_at": NEVER, "started_at": now, "ended_at": now}
    attempt = fast_replace(task.attempt, status=COMPLETED, output=output, **facts)
    return CreateTask(fast_replace(task, status=COMPLETED, attempt=attempt))


def _cache_key_digest(document: Mapping[str, Any], inputs: dict[str, Any], ctx: DecisionContext, *scope: str) -> str:
    """What tells keys apart; nothing where the key names what is not there: that would be one key for all."""
    key = ctx.resolve(document["cacheConfig"]["key"], inputs)
    text = key if isinstance(key, str) else json.dumps(key, sort_keys=True)
    if key is None or "${" in text:
        return ""
    whole = json.dumps([*scope, text]) if scope else text
    return blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=24).hexdigest()


def cache_task_result(task: Task, now: int) -> Iterator[Effect]:
    """A completed attempt's output is used again for as long as its step says."""
    if digest := task.step_state.get(CACHE_DIGEST_KEY):
        until = now + cache_seconds(task.step.document) * 1000
        yield CacheTaskResult(cached_name_of(task), digest, task.attempt.id, until)


def cached_name_of(task: Task) -> str:
    """The name of the task's definition, under which results are kept."""
    return task.resolved_name


def find_cached_output(run: Run, ctx: DecisionContext) -> tuple[str, dict[str, Any]] | None:
    """The run that had the same key and followed the same plan, with its output, if that is still kept."""
    if not cache_seconds(run.definition.document) or not (digest := _run_cache_key_digest(run.definition, ctx)):
        return None
    return ctx.require(CachedRunOutput(run.definition.name, digest))


def cache_run_output(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """A completed run's output is used again for as long as its definition says."""
    seconds = cache_seconds(run.definition.document)
    if seconds and (digest := _run_cache_key_digest(run.definition, ctx)):
        yield CacheRunOutput(run.definition.name, digest, run.id, now + seconds * 1000)


def _run_cache_key_digest(definition: Definition, ctx: DecisionContext) -> str:
    """The key is written like any expression of a workflow, or in terms of its input alone (`${customer}`)."""
    inputs = {name: value for name, value in ctx.input().items() if name != "workflow"}
    return _cache_key_digest(definition.document, inputs, ctx, "run", definition.hash)
