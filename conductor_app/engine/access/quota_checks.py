"""Checks of the quotas of callers. Pages and both APIs call these functions; without quotas they cause no statement."""

from dataclasses import dataclass
from threading import Lock

from ... import clock, conf, process_state
from ...access.current_actor import current_actor
from ...access.quotas import caller_of, quotas_of
from ...core.errors import QuotaExceeded
from ...insight.access import quota_use
from .token_buckets import STARTS, Rate, take_token

COUNT_MS = 1_000
RETRY_OPEN_RUNS_SECONDS = 5
RETRY_STORAGE_SECONDS = 60
MAX_CACHED = 10_000


def require_rate(caller: str, rate: Rate) -> None:
    """Count a request of a caller.

    Raises:
        QuotaExceeded: when the caller has sent too many.
    """
    if limit := getattr(quotas_of(caller), rate.field):
        take_token(caller, rate, limit)


def require_start() -> None:
    """Count a start by the current actor.

    Raises:
        QuotaExceeded: when the actor has too many open runs, or starts too many.
    """
    actor = current_actor()
    if actor is None or actor.user_id is None:
        return
    caller = caller_of(actor)
    quotas = quotas_of(caller)
    if quotas.open_runs:
        _counts.value.require_fewer(actor.user_id, quotas.open_runs)
    require_rate(caller, STARTS)
    if quotas.open_runs:
        _counts.value.add_one(actor.user_id)


@dataclass(slots=True)
class RunCount:
    """A number of open runs, and when it was counted."""

    count: int
    counted_at: int


class OpenRunCounts:
    """The open runs of users: counted at most once per second, plus the starts of this process since then."""

    def __init__(self) -> None:
        self.counts: dict[int, RunCount] = {}
        self.lock = Lock()

    def require_fewer(self, user_id: int, limit: int) -> None:
        """Check that a user has fewer open runs than `limit`.

        Raises:
            QuotaExceeded: when it has as many or more.
        """
        now, known = clock.now(), self.counts.get(user_id)
        if known is None or not 0 <= now - known.counted_at < COUNT_MS:
            known = RunCount(quota_use.count_open_runs(user_id, limit), now)
            with self.lock:
                if len(self.counts) >= MAX_CACHED:
                    self.counts.clear()
                self.counts[user_id] = known
        if known.count >= limit:
            raise QuotaExceeded(f"The caller's quota of {limit} open runs is used up.", RETRY_OPEN_RUNS_SECONDS)

    def add_one(self, user_id: int) -> None:
        """Count a run that is being started."""
        with self.lock:
            if known := self.counts.get(user_id):
                known.count += 1


_counts = process_state.slot(OpenRunCounts)


def require_storage(caller: str) -> None:
    """Check that a caller may upload more bytes.

    Raises:
        QuotaExceeded: when its uploads have as many bytes as its quota allows.
    """
    limit = quotas_of(caller).stored_bytes
    if limit and quota_use.stored_bytes(caller) >= limit:
        raise QuotaExceeded(f"The caller's quota of {limit} stored bytes is used up.", RETRY_STORAGE_SECONDS)


def require_upload(caller: str) -> None:
    """Check that a caller may upload a payload. No run uses it yet, so it counts as unattached.

    Raises:
        QuotaExceeded: when its unattached payloads, or all its uploads, have too many bytes.
    """
    limit = conf.unattached_upload_max_bytes
    if limit and quota_use.unattached_bytes(caller, conf.workflow_payload_max_bytes) >= limit:
        message = f"The caller has uploaded {limit} bytes or more that no run uses yet (UNATTACHED_UPLOADS_MAX_MB)."
        raise QuotaExceeded(message, RETRY_STORAGE_SECONDS)
    require_storage(caller)
