"""Results that are used again: kept by the effect that says so, found by the question that asks."""

from collections.abc import Iterable
from typing import Any

from ..core.effects import Effect, KeepResult
from ..core.questions import Cached
from .statements import fetch
from .writes import Writes

KEEP = (
    "INSERT INTO conductor_cachedresult (name, digest, attempt_id, expires_at) VALUES (%s, %s, %s, %s) "
    "ON CONFLICT (digest, name) DO UPDATE SET attempt_id = excluded.attempt_id, expires_at = excluded.expires_at"
)
FIND = (
    "SELECT a.output, a.output_path FROM conductor_cachedresult c JOIN conductor_attempt a ON a.id = c.attempt_id "
    "WHERE c.digest = %s AND c.name = %s AND c.expires_at > %s AND a.status = 'COMPLETED'"
)


def keep_results(writes: Writes, effects: Iterable[Effect]) -> None:
    """Have the results written down that are to be used again."""
    for effect in effects:
        if isinstance(effect, KeepResult):
            writes.run(KEEP, [effect.name[:255], effect.digest, effect.attempt_id, effect.until])


def kept_result(question: Cached, now: int) -> tuple[Any, ...] | None:
    """The columns of the result's output, if it is there and not too old."""
    return next(iter(fetch(FIND, [question.digest, question.name[:255], now])), None)
