"""Cached results of tasks and runs, controlled by `cacheConfig` in the step or the definition."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from .data_requests import CachedRunOutput, CachedTaskOutput
from .decision_context import DecisionContext
from .definition import Definition
from .effects import CreateTask, Effect
from .masking import masked_names
from .primitives import fast_replace
from .snapshot import NEVER, Run, Task
from .states import COMPLETED, PENDING


@dataclass(frozen=True, slots=True)
class CacheTaskResult(Effect):
    """Use the output of an attempt for all tasks with this name and cache key until a point in time (milliseconds)."""

    name: str
    digest: str
    attempt_id: str
    until: int

    def to_history(self) -> dict[str, Any]:
        return {"effect": "CacheTaskResult", "name": self.name, "until": self.until}


@dataclass(frozen=True, slots=True)
class CacheRunOutput(Effect):
    """Use the output of a run for all runs with this name and cache key until a point in time (milliseconds)."""

    name: str
    digest: str
    run_id: str
    until: int

    def to_history(self) -> dict[str, Any]:
        return {"effect": "CacheRunOutput", "name": self.name, "until": self.until}


CACHE_DIGEST_KEY = "cached_as"
"""Key in a task's step state for the digest of its cache key."""


def apply_cached_result(effects: list[Effect], ctx: DecisionContext, now: int) -> list[Effect]:
    """Return the effects of entering steps, with a completed task for each cached result (execution §10.1)."""
    return [
        _cached_output(effect.task, ctx, now)
        if isinstance(effect, CreateTask) and _may_be_cached(effect.task)
        else effect
        for effect in effects
    ]


def _may_be_cached(task: Task) -> bool:
    """Return True if the task waits in a queue and its step enables caching."""
    return bool(task.attempt.status == PENDING and task.attempt.queue and _cache_seconds(task.step.document))


def _cache_seconds(document: Mapping[str, Any]) -> int:
    """Return the lifetime of a cached result of this step or definition in seconds; 0 if caching is off."""
    config = document.get("cacheConfig")
    if not isinstance(config, dict) or not isinstance(config.get("key"), str) or not config["key"].strip():
        return 0
    seconds = config.get("ttlInSecond")
    return max(seconds, 0) if isinstance(seconds, int) else 0


def _cached_output(task: Task, ctx: DecisionContext, now: int) -> CreateTask:
    # The key may refer to the task's inputs by name (`${uri}-${method}`). Definitions that mask different names do not
    # share results, because a value masked in one would be readable in the other.
    masked = masked_names(ctx.run.definition)
    digest = _cache_key_digest(task.step.document, dict(task.attempt.input), ctx, *sorted(masked))
    if not digest:
        return CreateTask(task)
    output = ctx.require(CachedTaskOutput(_cached_name_of(task), digest))
    if output is None:
        return CreateTask(fast_replace(task, step_state={**task.step_state, CACHE_DIGEST_KEY: digest}))
    facts: dict[str, Any] = {"queue": "", "domain": "", "due_at": NEVER, "started_at": now, "ended_at": now}
    attempt = fast_replace(task.attempt, status=COMPLETED, output=output, **facts)
    return CreateTask(fast_replace(task, status=COMPLETED, attempt=attempt))


def _cache_key_digest(document: Mapping[str, Any], inputs: dict[str, Any], ctx: DecisionContext, *scope: str) -> str:
    """Return the digest of the cache key, or "" if a value in it is missing: all such tasks would share one key."""
    key = ctx.resolve(document["cacheConfig"]["key"], inputs)
    text = key if isinstance(key, str) else json.dumps(key, sort_keys=True)
    if key is None or "${" in text:
        return ""
    whole = json.dumps([*scope, text]) if scope else text
    return blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=24).hexdigest()


def cache_task_result(task: Task, now: int) -> Iterator[Effect]:
    """Yield the effect that caches the output of a completed attempt, if its step enables caching."""
    if digest := task.step_state.get(CACHE_DIGEST_KEY):
        until = now + _cache_seconds(task.step.document) * 1000
        yield CacheTaskResult(_cached_name_of(task), digest, task.attempt.id, until)


def _cached_name_of(task: Task) -> str:
    """Return the name of the task definition, under which results are cached."""
    return task.step.name


def find_cached_output(run: Run, ctx: DecisionContext) -> tuple[str, dict[str, Any]] | None:
    """Return the id and the output of a cached run with the same key and the same resolved definition, or None."""
    if not _cache_seconds(run.definition.document) or not (digest := _run_cache_key_digest(run.definition, ctx)):
        return None
    return ctx.require(CachedRunOutput(run.definition.name, digest))


def cache_run_output(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Yield the effect that caches the output of a completed run, if its definition enables caching."""
    seconds = _cache_seconds(run.definition.document)
    if seconds and (digest := _run_cache_key_digest(run.definition, ctx)):
        yield CacheRunOutput(run.definition.name, digest, run.id, now + seconds * 1000)


def _run_cache_key_digest(definition: Definition, ctx: DecisionContext) -> str:
    # The key is an ordinary expression of the workflow, or refers to the run's input by name (`${customer}`).
    inputs = {name: value for name, value in ctx.input().items() if name != "workflow"}
    return _cache_key_digest(definition.document, inputs, ctx, "run", definition.hash)
