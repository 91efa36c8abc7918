"""Storage and lookup of cached results."""

from collections.abc import Iterable
from typing import Any

from ..core.cache_effects import CacheRunOutput, CacheTaskResult
from ..core.data_requests import CachedRunOutput, CachedTaskOutput
from ..core.effects import Effect
from .statement_batch import StatementBatch
from .statements import fetch

INSERT_TASK_RESULT = (
    "INSERT INTO conductor_cachedresult (name, digest, attempt_id, expires_at) VALUES (%s, %s, %s, %s) "
    "ON CONFLICT (digest, name) DO UPDATE SET attempt_id = excluded.attempt_id, expires_at = excluded.expires_at"
)
INSERT_RUN_RESULT = (
    "INSERT INTO conductor_cachedresult (name, digest, attempt_id, run_id, expires_at) VALUES (%s, %s, '', %s, %s) "
    "ON CONFLICT (digest, name) DO UPDATE SET run_id = excluded.run_id, expires_at = excluded.expires_at"
)
FIND_TASK_OUTPUT = (
    "SELECT a.output, a.output_path FROM conductor_cachedresult c JOIN conductor_attempt a ON a.id = c.attempt_id "
    "WHERE c.digest = %s AND c.name = %s AND c.expires_at > %s AND a.status = 'COMPLETED'"
)

FIND_RUN_OUTPUT = (
    "SELECT r.id, r.output, r.output_path FROM conductor_cachedresult c JOIN conductor_run r ON r.id = c.run_id "
    "WHERE c.digest = %s AND c.name = %s AND c.expires_at > %s AND r.status = 'COMPLETED'"
)


def write_cached_results(writes: StatementBatch, effects: Iterable[Effect]) -> None:
    """Write the results that later tasks and runs can reuse."""
    for effect in effects:
        if isinstance(effect, CacheTaskResult):
            writes.run(INSERT_TASK_RESULT, [effect.name[:255], effect.digest, effect.attempt_id, effect.until])
        elif isinstance(effect, CacheRunOutput):
            writes.run(INSERT_RUN_RESULT, [effect.name[:255], effect.digest, effect.run_id, effect.until])


def find_cached_task_output(request: CachedTaskOutput, now: int) -> tuple[Any, ...] | None:
    """Return the columns of a cached output, or None if there is no valid one."""
    return next(iter(fetch(FIND_TASK_OUTPUT, [request.digest, request.name[:255], now])), None)


def find_cached_run_output(request: CachedRunOutput, now: int) -> tuple[Any, ...] | None:
    """Return the id of a cached run and the columns of its output, or None if there is no valid one."""
    return next(iter(fetch(FIND_RUN_OUTPUT, [request.digest, request.name[:255], now])), None)
