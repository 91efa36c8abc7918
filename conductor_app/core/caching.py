"""Results that are used again: a task whose step has a `cacheConfig` takes what one with the same key has come to."""

import json
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from .definition import Step
from .effects import CreateTask, Effect, KeepResult
from .knowledge import Knowledge
from .questions import Cached
from .snapshot import NEVER, Task
from .states import COMPLETED, PENDING
from .values import replace

KEY = "cached_as"
"""In the memo of a task: the digest of its key."""


def from_cache(effects: list[Effect], know: Knowledge, now: int) -> list[Effect]:
    """The effects of entering a step; work whose result is known is over at once, without a queue (execution §10.1)."""
    return [
        _known(effect.task, know, now) if isinstance(effect, CreateTask) and _is_asked(effect.task) else effect
        for effect in effects
    ]


def _is_asked(task: Task) -> bool:
    """Whether it is work for a queue whose result may be known."""
    return bool(task.attempt.status == PENDING and task.attempt.queue and seconds_kept(task.step))


def seconds_kept(step: Step) -> int:
    """For how long a result of the step is used again; 0 where it is not."""
    config = step.document.get("cacheConfig")
    if not isinstance(config, dict) or not isinstance(config.get("key"), str) or not config["key"].strip():
        return 0
    seconds = config.get("ttlInSecond")
    return max(seconds, 0) if isinstance(seconds, int) else 0


def _known(task: Task, know: Knowledge, now: int) -> CreateTask:
    # The key is written in terms of the task's inputs (`${uri}-${method}`).
    key = know.resolve(task.step.document["cacheConfig"]["key"], dict(task.attempt.input))
    text = key if isinstance(key, str) else json.dumps(key, sort_keys=True)
    if key is None or "${" in text:
        # It names what is not there: that would be one key for all.
        return CreateTask(task)
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=24).hexdigest()
    output = know.ask(Cached(name_of(task), digest))
    if output is None:
        return CreateTask(replace(task, memo={**task.memo, KEY: digest}))
    facts: dict[str, Any] = {"queue": "", "domain": "", "due_at": NEVER, "started_at": now, "ended_at": now}
    attempt = replace(task.attempt, status=COMPLETED, output=output, **facts)
    return CreateTask(replace(task, status=COMPLETED, attempt=attempt))


def kept_result(task: Task, now: int) -> Iterator[Effect]:
    """A completed attempt's output is used again for as long as its step says."""
    if digest := task.memo.get(KEY):
        yield KeepResult(name_of(task), digest, task.attempt.id, now + seconds_kept(task.step) * 1000)


def name_of(task: Task) -> str:
    """The name of the task's definition, under which results are kept."""
    return str(task.memo.get("name", task.step.name))
