"""Quotas of callers: checks, rates, commands, and what callers use of them. A change takes effect within one second.

Rates are token buckets in the database, from which each process takes several tokens at once. Their number doubles
while the process uses them up within a second, and falls back to one otherwise. So a busy caller causes few statements,
and a process keeps few tokens that another one could use. Refused requests cause no statement until the next token is
due. Without quotas, checks cause no statement.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, NamedTuple

from django.db.models import Max

from ..core.errors import Busy, Invalid, NotFound, QuotaExceeded
from ..db.database import connection, transaction
from ..db.fields import UserKey, users_have_numbers
from ..utils import clock, process_state
from .audit import record_access_change
from .authentication import Actor, current_actor
from .models import MAX_CALLER_LENGTH, Application, CallerQuota, Client, TokenBucket
from .permissions import current_cache, users_named

ANONYMOUS = "anonymous"
"""All callers of a server without authentication. They have no quotas."""
LEASE_MS = 1_000
MAX_SHARE = 0.1
"""The part of a bucket that a process takes at most."""
MAX_WAIT_SECONDS = 5
MAX_CACHED = 10_000
IDLE_MS = 3_600_000
"""A bucket without use for this time is full, and its row can be deleted."""
EVERY_CALLER, APPLICATION, USER, CLIENT = "default", "application", "user", "client"
KINDS = (EVERY_CALLER, APPLICATION, USER, CLIENT)
WHOLE_NUMBERS = {"open_runs": 2**31 - 1, "stored_bytes": 10**15}
LEAST_RATE, MAX_RATE = 0.001, 1_000_000
MAX_CALLERS = 50
COUNT_MS = 1_000
RETRY_OPEN_RUNS_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Quotas:
    """The quotas of one caller. 0 is no limit."""

    starts_per_second: float = 0
    polls_per_second: float = 0
    searches_per_minute: float = 0
    open_runs: int = 0
    stored_bytes: int = 0


QUOTA_FIELDS = tuple(Quotas.__dataclass_fields__)
NO_QUOTAS = Quotas()


def caller_of_user(user_id: UserKey) -> str:
    """Return the caller for a user: a person, or an application's own user."""
    return f"user {user_id}"[:MAX_CALLER_LENGTH]


def caller_of_client(client_id: str) -> str:
    """Return the caller for a Taskcluster client."""
    return f"client {client_id}"[:MAX_CALLER_LENGTH]


def caller_of(actor: Actor | None) -> str:
    """Return the caller for an actor, "" for the engine itself."""
    if actor is None:
        return ""
    return ANONYMOUS if actor.user_id is None else caller_of_user(actor.user_id)


def current_caller() -> str:
    """Return the caller for the current actor, "" for the engine itself."""
    return caller_of(current_actor())


def quotas_of(caller: str) -> Quotas:
    """Return the quotas of a caller: its own, otherwise the default."""
    if not caller or caller == ANONYMOUS:
        return NO_QUOTAS
    cache = current_cache()
    if not cache.has_quotas:
        return NO_QUOTAS
    if cache.quotas is None:
        cache.quotas = _read_quotas()
    quotas: Mapping[str, Quotas] = cache.quotas
    return quotas.get(caller) or quotas.get("", NO_QUOTAS)


def _read_quotas() -> dict[str, Quotas]:
    """Return the complete quotas of each caller that has its own, and the default as those of ""."""
    rows = {caller_of_row(row): row for row in CallerQuota.objects.all()}
    default = _merge(NO_QUOTAS, rows.get(""))
    return {caller: _merge(default, row) for caller, row in rows.items()} | {"": default}


def caller_of_row(row: CallerQuota) -> str:
    """Return the caller whose quotas the row has, "" for the default."""
    if row.user_id is not None:
        return caller_of_user(row.user_id)
    return caller_of_client(row.client_id) if row.client_id is not None else ""


def _merge(default: Quotas, row: CallerQuota | None) -> Quotas:
    own = {name: getattr(row, name, None) for name in QUOTA_FIELDS}
    return replace(default, **{name: value for name, value in own.items() if value is not None})


class Rate(NamedTuple):
    """A kind of request that is limited. `period_ms`: the period of its limit, `noun`: how errors name it."""

    name: str
    field: str
    period_ms: int
    noun: str


STARTS = Rate("starts", "starts_per_second", 1_000, "starts per second")
POLLS = Rate("polls", "polls_per_second", 1_000, "polls per second")
SEARCHES = Rate("searches", "searches_per_minute", 60_000, "searches per minute")
RATES = (STARTS, POLLS, SEARCHES)


@dataclass(slots=True)
class TokenLease:
    """The tokens of one bucket that this process has taken."""

    limit: float = 0
    tokens: int = 0
    size: int = 1
    expires_at: int = 0
    refused_until: int = 0
    lock: Lock = field(default_factory=Lock)


class TokenLeases:
    """The leases of this process by caller and resource."""

    def __init__(self) -> None:
        self.leases: dict[tuple[str, str], TokenLease] = {}
        self.lock = Lock()

    def find(self, caller: str, resource: str) -> TokenLease:
        """Return the lease on a bucket, which may be new."""
        with self.lock:
            if len(self.leases) >= MAX_CACHED:
                self.leases.clear()
            return self.leases.setdefault((caller, resource), TokenLease())


_leases = process_state.slot(TokenLeases)


def take_token(caller: str, rate: Rate, limit: float) -> None:
    """Take one token of a caller.

    Raises:
        QuotaExceeded: when no token is left
        Busy: when another request of the caller takes too long to count.
    """
    lease = _leases.value.find(caller, rate.name)
    with _lock(lease):
        now = clock.now()
        if lease.limit != limit:
            lease.limit, lease.tokens, lease.refused_until = limit, 0, 0
        if now < lease.refused_until:
            raise _refusal(rate, limit, lease.refused_until - now)
        if not lease.tokens or not 0 <= lease.expires_at - now <= LEASE_MS:
            _renew(lease, caller, rate, now)
        lease.tokens -= 1


@contextmanager
def _lock(lease: TokenLease) -> Iterator[None]:
    # Without a timeout, two transactions that count one caller in different orders could wait for each other for ever.
    if not lease.lock.acquire(timeout=MAX_WAIT_SECONDS):
        raise Busy("The quota of the caller cannot be checked now.")
    try:
        yield
    finally:
        lease.lock.release()


def _renew(lease: TokenLease, caller: str, rate: Rate, now: int) -> None:
    """Return unused tokens to the bucket and take new ones."""
    is_used_up = not lease.tokens and now <= lease.expires_at
    size = min(lease.size * 2, max(1, int(lease.limit * MAX_SHARE))) if is_used_up else 1
    unused, lease.tokens = lease.tokens, 0
    granted, wait_ms = _exchange(caller, rate, lease.limit, size, unused)
    if not granted:
        lease.size, lease.refused_until = 1, now + wait_ms
        raise _refusal(rate, lease.limit, wait_ms)
    lease.tokens, lease.size, lease.expires_at = granted, size, now + LEASE_MS


def _exchange(caller: str, rate: Rate, limit: float, wanted: int, unused: int) -> tuple[int, int]:
    """Put `unused` tokens into the bucket and take up to `wanted`.

    Returns how many were taken, and the milliseconds until the next token if none was.
    """
    now, capacity, per_ms = clock.now(), max(1.0, limit), limit / rate.period_ms
    with transaction.atomic():
        buckets = TokenBucket.objects.select_for_update()
        bucket, _ = buckets.get_or_create(
            caller=caller, resource=rate.name, defaults={"tokens": capacity, "updated_at": now}
        )
        earned = max(0, now - bucket.updated_at) * per_ms
        available = min(capacity, bucket.tokens + unused + earned)
        granted = min(wanted, int(available))
        if granted:
            bucket.tokens, bucket.updated_at = available - granted, max(now, bucket.updated_at)
            bucket.save(update_fields=["tokens", "updated_at"])
    return granted, math.ceil((1 - available) / per_ms)


def _refusal(rate: Rate, limit: float, wait_ms: int) -> QuotaExceeded:
    return QuotaExceeded(f"The caller's quota of {limit:g} {rate.noun} is used up.", math.ceil(wait_ms / 1000))


def delete_idle_buckets() -> None:
    """Delete the rows of buckets that were not used for a while. They are full."""
    TokenBucket.objects.filter(updated_at__lt=clock.now() - IDLE_MS).delete()


def save_quotas(kind: str, name: str, values: Mapping[str, float | None], by: str) -> None:
    """Save the quotas of a caller, or the default of all callers.

    `name`: the id or the name of an application, the name of a user, or the id of a Taskcluster client. `values`: by
    the fields of `CallerQuota`; None is the default's quota, 0 is no limit.

    Raises:
        Invalid: when a value is out of range, or several applications have the name.
    """
    owner = _find_owner(kind, name.strip())
    facts = {field: _check_value(field, values.get(field)) for field in QUOTA_FIELDS}
    with transaction.atomic():
        was = CallerQuota.objects.select_for_update().filter(**owner).first()
        before = {field: getattr(was, field, None) for field in QUOTA_FIELDS}
        row = was or CallerQuota(**owner)
        for field, value in facts.items():
            setattr(row, field, value)
        row.updated_at, row.updated_by = clock.now(), by[:255]
        row.save()
        record_access_change("quota", _audit_id(row), "save", by, before=before, after=facts)


def delete_quotas(caller: str, by: str) -> None:
    """Delete the quotas of a caller, so that the default applies. For "" delete the default."""
    with transaction.atomic():
        row = next((row for row in CallerQuota.objects.select_for_update() if caller_of_row(row) == caller), None)
        if row is None:
            raise NotFound("The caller has no quotas of its own.")
        record_access_change("quota", _audit_id(row), "remove", by)
        row.delete()


def _audit_id(row: CallerQuota) -> str:
    return caller_of_row(row) or "all callers"


def _find_owner(kind: str, name: str) -> dict[str, Any]:
    """Return the columns that identify a caller."""
    if kind not in KINDS:
        raise Invalid(f"The kind of caller must be one of: {', '.join(KINDS)}.")
    if kind == EVERY_CALLER:
        return {"user_id": None, "client_id": None}
    if kind == CLIENT:
        if not Client.objects.filter(pk=name).exists():
            raise NotFound(f"There is no client {name[:200]!r}.")
        return {"user_id": None, "client_id": name}
    return {"user_id": _find_application_user(name) if kind == APPLICATION else _find_user(name), "client_id": None}


def _find_application_user(name: str) -> UserKey:
    by_id = Application.objects.filter(pk=name).values_list("user_id", flat=True)
    found = list(by_id or Application.objects.filter(name=name).values_list("user_id", flat=True)[:2])
    if not found:
        raise NotFound(f"There is no application {name[:200]!r}.")
    if len(found) > 1:
        raise Invalid(f"Several applications are named {name[:200]!r}. Enter the id.")
    return found[0]


def _find_user(name: str) -> UserKey:
    found = users_named(name).filter(application__isnull=True).values_list("pk", flat=True)
    if not found:
        raise NotFound(f"There is no user {name[:200]!r}.")
    return found[0]


def _check_value(field: str, value: float | None) -> float | None:
    most = WHOLE_NUMBERS.get(field, MAX_RATE)
    if value is None or value == 0:
        return value
    if not math.isfinite(value) or not (1 if field in WHOLE_NUMBERS else LEAST_RATE) <= value <= most:
        raise Invalid(f"The quota {field} must be 0 (no limit) to {most}.")
    return int(value) if field in WHOLE_NUMBERS else value


class RateUse(NamedTuple):
    """The tokens of one rate as of a time in milliseconds."""

    tokens: float
    updated_at: int


def _is_open_run_of_user() -> str:
    """Return the condition of the index, word for word: SQLite does not use it otherwise."""
    nobody = "0" if users_have_numbers() else "''"
    return f"status IN ('PAUSED', 'RUNNING') AND NOT (starter_id = {nobody})"


def count_open_runs(user_id: UserKey, limit: int) -> int:
    """Return the number of open runs that have the permissions of a user, counted up to `limit`."""
    sql = f"SELECT 1 FROM conductor_run WHERE starter_id = %s AND {_is_open_run_of_user()} LIMIT %s"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM ({sql}) AS found", [user_id, limit])
        return int(cursor.fetchone()[0])


def open_runs_by_user(user_ids: Sequence[UserKey]) -> dict[UserKey, int]:
    """Return the number of open runs that have the permissions of each of these users."""
    if not user_ids:
        return {}
    marks = ", ".join(["%s"] * len(user_ids))
    sql = f"SELECT starter_id, count(*) FROM conductor_run WHERE starter_id IN ({marks}) AND {_is_open_run_of_user()}"
    with connection.cursor() as cursor:
        cursor.execute(f"{sql} GROUP BY starter_id", user_ids)
        return dict(cursor.fetchall())


def recent_callers() -> list[str]:
    """Return the callers whose requests were last counted, at most MAX_CALLERS."""
    newest = TokenBucket.objects.values("caller").annotate(at=Max("updated_at")).order_by("-at")
    return list(newest.values_list("caller", flat=True)[:MAX_CALLERS])


def rate_use(callers: Sequence[str]) -> dict[tuple[str, str], RateUse]:
    """Return the tokens of these callers, by caller and resource."""
    rows = TokenBucket.objects.filter(caller__in=callers)
    return {(row.caller, row.resource): RateUse(row.tokens, row.updated_at) for row in rows}


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
        self.counts: dict[UserKey, RunCount] = {}
        self.lock = Lock()

    def require_fewer(self, user_id: UserKey, limit: int) -> None:
        """Raise QuotaExceeded unless a user has fewer open runs than `limit`."""
        now, known = clock.now(), self.counts.get(user_id)
        if known is None or not 0 <= now - known.counted_at < COUNT_MS:
            known = RunCount(count_open_runs(user_id, limit), now)
            with self.lock:
                if len(self.counts) >= MAX_CACHED:
                    self.counts.clear()
                self.counts[user_id] = known
        if known.count >= limit:
            raise QuotaExceeded(f"The caller's quota of {limit} open runs is used up.", RETRY_OPEN_RUNS_SECONDS)

    def add_one(self, user_id: UserKey) -> None:
        """Count a run that is being started."""
        with self.lock:
            if known := self.counts.get(user_id):
                known.count += 1


_counts = process_state.slot(OpenRunCounts)
