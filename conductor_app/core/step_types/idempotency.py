"""Idempotency keys of runs that a step starts: one run of a definition holds a key (api §3.9)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..data_requests import IdempotencyKeyHolder, IdempotencyLookup
from ..decision_context import DecisionContext
from ..definition import Definition, Key
from ..errors import StepRefused
from ..expressions import field_text, quote_value
from ..states import COMPLETED, RUN

FAIL, RETURN_EXISTING, FAIL_ON_RUNNING = STRATEGIES = ("FAIL", "RETURN_EXISTING", "FAIL_ON_RUNNING")
MAX_LENGTH = 255


@dataclass(frozen=True, slots=True)
class KeyClaim:
    """Permission to start a run under a key (taken from `releases_key_of`), or the run that already holds the key."""

    key: str = ""
    releases_key_of: str = ""
    holder: IdempotencyKeyHolder | None = None


def claim_key(param: Mapping[str, Any], definition: Definition, ctx: DecisionContext, own: Key) -> KeyClaim:
    """Return the claim of a step to the idempotency key that it names.

    Raises:
        StepRefused: when the key or the strategy is invalid, or another run holds the key.
    """
    given, strategy = param.get("idempotencyKey"), param.get("idempotencyStrategy") or FAIL
    key = field_text(given).replace("\0", "")
    if not key:
        return KeyClaim()
    if len(key) > MAX_LENGTH:
        raise StepRefused(f"The idempotency key must have at most {MAX_LENGTH} characters.")
    if strategy not in STRATEGIES:
        raise StepRefused(f"idempotencyStrategy must be one of {', '.join(STRATEGIES)}, not {quote_value(strategy)}.")
    holder = ctx.require(IdempotencyLookup(definition.name, key))
    if holder is None:
        return KeyClaim(key)
    has_ended = holder.status in RUN.final
    if (strategy == FAIL_ON_RUNNING and has_ended) or _is_from_earlier_attempt(holder, ctx, own):
        return KeyClaim(key, releases_key_of=holder.id)
    if strategy == RETURN_EXISTING:
        return KeyClaim(key, holder=holder)
    raise StepRefused(f"The idempotency key '{key}' of {definition.name} is already used by run {holder.id}.")


def _is_from_earlier_attempt(holder: IdempotencyKeyHolder, ctx: DecisionContext, own: Key) -> bool:
    """Return True if this step started the run, which then failed or lost its task, so that it may start another."""
    if holder.parent_id != ctx.run.id:
        return False
    task = next((task for task in ctx.run.tasks.values() if task.id == holder.parent_task), None)
    if task is None:
        return ctx.run.is_whole or not holder.parent_task
    return task.key == own and holder.status != COMPLETED
