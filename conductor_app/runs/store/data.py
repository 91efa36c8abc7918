"""The data that decisions request, loaded from rows."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from django.db.models import QuerySet

from ...access.secrets import all_variables
from ...core import data_requests
from ...core.data_requests import DataRequest, TaskOutcome
from ...core.decision_context import TASK_FACTS
from ...core.definition import Key
from ...core.masking import MARK
from ...core.primitives import JsonValue
from ...core.snapshot import Run, Task
from ...core.states import ATTEMPT
from ...core.step_types import STEP_TYPES
from ...core.step_types.waiting import PullWorkflowMessages
from ...db.fields import loads, loads_decrypted, loads_encrypted
from ...db.statements import execute, fetch, load_statements, placeholders, serialize
from ...settings import conf
from ...utils import process_state
from ..models import InboxMessage
from ..models import Run as RunRow
from .loading import fetch_tasks, load_tasks, load_tasks_at
from .rows import format_iteration_path, parse_iteration_path

MAX_ITEMS = 500_000
"""The maximum number of cached items per process, over all lists."""
ACTIVE_WORKER_MS = 10_000
"""A worker that has polled within this time counts as active."""
WAITING_TYPES = [type for type, kind in STEP_TYPES.items() if kind.waits_for_tasks]
NO_PATH = "''"
PATHS = {"input": "input_path", "output": "output_path"}
SELECT_OUTCOMES = (
    "SELECT t.ref, t.iteration_path, t.seq, t.status, a.reason, t.name, a.id, t.is_permissive, a.output, a.output_path "
    "FROM conductor_task t JOIN conductor_attempt a ON a.id = t.attempt_id WHERE t.run_id = %s AND "
)
DATA_SQL = load_statements("runs/store/data")
PAYLOADS_OF_ATTEMPTS = {"input": DATA_SQL["load_attempt_inputs"], "output": DATA_SQL["load_attempt_outputs"]}


@dataclass(frozen=True, slots=True)
class ExternalPayload:
    """Placeholder for a payload in blob storage."""

    path: str


@dataclass(frozen=True, slots=True)
class MaskedPayload:
    """A payload as stored, with encrypted parts."""

    value: JsonValue


class ChildResult(NamedTuple):
    """The end of a child run. Its output is as stored: the text, or a path in blob storage.

    `is_awaited`: the attempt that waits for it exists. A removed child counts as terminated.
    """

    id: str
    name: str
    version: int
    status: str
    reason: str
    output: str
    output_path: str
    is_awaited: bool


def load_child_result(run_id: str, attempt_id: str) -> ChildResult:
    [(name, *columns, is_awaited)] = fetch(*DATA_SQL["find_child_result"].bind(attempt_id=attempt_id, run_id=run_id))
    if name is None:
        return ChildResult(run_id, "?", 1, "TERMINATED", "The child workflow was removed.", "{}", "", bool(is_awaited))
    version, status, reason, output, output_path = columns
    return ChildResult(run_id, name, version, status, reason, output, output_path, bool(is_awaited))


Loader = Callable[[Run, list[Any], int], dict[DataRequest, Any]]
OneLoader = TypeVar("OneLoader", bound=Callable[[Run, Any, int], Any])
LOADERS: dict[type, Loader] = {}
"""Returns the data for all requests of a kind, at a time in epoch milliseconds."""


def _loads(kind: type) -> Callable[[Loader], Loader]:
    """Register the function as the loader of this kind of requests."""

    def register(load: Loader) -> Loader:
        LOADERS[kind] = load
        return load

    return register


def _loads_each(kind: type) -> Callable[[OneLoader], OneLoader]:
    """Register a function that returns the data for one request of this kind."""

    def register(load: OneLoader) -> OneLoader:
        LOADERS[kind] = lambda run, requests, now: {request: load(run, request, now) for request in requests}
        return load

    return register


def load_requested(run: Run, requests: Iterable[DataRequest], now: int) -> dict[DataRequest, Any]:
    """Return the data for all requests that rows can answer, with one query per kind of payload."""
    data: dict[DataRequest, Any] = {}
    by_type: dict[type, list[Any]] = {}
    for request in requests:
        by_type.setdefault(type(request), []).append(request)
    for kind, of_kind in by_type.items():
        if kind in LOADERS:
            data |= LOADERS[kind](run, of_kind, now)
    return data


def read_payload(text: str, path: str) -> Any:
    if path:
        return ExternalPayload(path)
    return MaskedPayload(loads_encrypted(text)) if MARK in text else loads(text)


class ItemListCache:
    """Lists, by the attempt with the list in its input. Inputs never change, so entries never expire."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._lists: OrderedDict[str, list[Any]] = OrderedDict()

    def keys(self) -> set[str]:
        """Return the attempts whose lists are cached."""
        with self._lock:
            return set(self._lists)

    def put(self, attempt_id: str, items: list[Any]) -> None:
        """Cache a list. Evicts the least recently used lists, but never this one."""
        with self._lock:
            self._lists[attempt_id] = items
            self._lists.move_to_end(attempt_id)
            while len(self._lists) > 1 and sum(map(len, self._lists.values())) > MAX_ITEMS:
                self._lists.popitem(last=False)

    def item(self, attempt_id: str, index: int) -> Any:
        """Return one item of a cached list."""
        with self._lock:
            self._lists.move_to_end(attempt_id)
            return self._lists[attempt_id][index]


item_lists = process_state.slot(ItemListCache)


@_loads(data_requests.RunPayload)
def _run_payloads(run: Run, requests: list[data_requests.RunPayload], now: int) -> dict[DataRequest, Any]:
    parts = sorted({request.part for request in requests})
    columns = [f"{part}, {PATHS.get(part, NO_PATH)}" for part in parts]
    [row] = fetch(f"SELECT {', '.join(columns)} FROM conductor_run WHERE id = %s", [run.id])
    pairs = zip(row[::2], row[1::2], strict=True)
    return {data_requests.RunPayload(part): read_payload(*pair) for part, pair in zip(parts, pairs, strict=True)}


@_loads(data_requests.AttemptPayload)
def _attempt_payloads(run: Run, requests: list[data_requests.AttemptPayload], now: int) -> dict[DataRequest, Any]:
    data: dict[DataRequest, Any] = {}
    for part, statement in PAYLOADS_OF_ATTEMPTS.items():
        ids = [request.attempt_id for request in requests if request.part == part]
        for start in range(0, len(ids), 500):
            chunk = ids[start : start + 500]
            rows = fetch(*statement.bind(ids=chunk))
            data |= {data_requests.AttemptPayload(id, part): read_payload(text, path) for id, text, path in rows}
    return data


@_loads(data_requests.TaskPart)
def _task_parts(run: Run, requests: list[data_requests.TaskPart], now: int) -> dict[DataRequest, Any]:
    data: dict[DataRequest, Any] = {}
    by_place: dict[tuple[Any, ...], list[data_requests.TaskPart]] = {}
    for request in requests:
        by_place.setdefault((request.within, request.is_deep), []).append(request)
    for (within, is_deep), together in by_place.items():
        data |= _newest_parts(run, within, is_deep, together, now)
    return data


def _newest_parts(
    run: Run, within: tuple[int, ...], is_deep: bool, requests: list[data_requests.TaskPart], now: int
) -> dict[DataRequest, Any]:
    refs = sorted({request.ref for request in requests})
    path_condition, path_params = _iteration_condition("t", within, is_deep)
    newer_path_condition, _ = _iteration_condition("n", within, is_deep)
    newest = (
        f"t.ref IN ({placeholders(refs)}){path_condition} AND NOT EXISTS (SELECT 1 FROM conductor_task n "
        f"WHERE n.run_id = t.run_id AND n.ref = t.ref AND n.seq > t.seq{newer_path_condition})"
    )
    rows = fetch_tasks(run.id, f" AND {newest}", [*refs, *path_params, *path_params])
    tasks = {task.key.ref: task for task in load_tasks(run, rows).values()}
    payloads = [
        data_requests.AttemptPayload(tasks[q.ref].attempt.id, q.part)
        for q in requests
        if q.part != "facts" and q.ref in tasks
    ]
    payloads_by_request = _attempt_payloads(run, payloads, now) if payloads else {}
    return {request: _task_part(request, tasks.get(request.ref), payloads_by_request, run) for request in requests}


def _iteration_condition(table: str, iteration_path: tuple[int, ...], is_deep: bool = True) -> tuple[str, list[str]]:
    """Return an SQL condition on the iteration path, and its parameters: equal, or if `is_deep` equal or below."""
    if not iteration_path:
        return "", []
    if not is_deep:
        return f" AND {table}.iteration_path = %s", [format_iteration_path(iteration_path)]
    return f" AND ({table}.iteration_path = %s OR {table}.iteration_path LIKE %s)", [
        format_iteration_path(iteration_path),
        f"{format_iteration_path(iteration_path)}.%",
    ]


def _task_part(
    request: data_requests.TaskPart, task: Task | None, payloads_by_request: dict[DataRequest, Any], run: Run
) -> Any:
    if task is None:
        return None
    if request.part == "facts":
        return {name: fact(run, task) for name, fact in TASK_FACTS.items()}
    return payloads_by_request[data_requests.AttemptPayload(task.attempt.id, request.part)]


@_loads_each(data_requests.JoinedOutcomes)
def _joined_outcomes(run: Run, request: data_requests.JoinedOutcomes, now: int) -> list[TaskOutcome] | str | None:
    where = "t.joined_by = %s AND NOT (t.joined_by = '') AND t.iteration_path = %s"
    params = [request.join.ref, format_iteration_path(request.join.iteration_path)]
    if _is_any_open(run, where, params, request.known):
        return None
    [(count,)] = fetch(f"SELECT COUNT(*) FROM conductor_task t WHERE t.run_id = %s AND {where}", [run.id, *params])
    if count - _count_existing(run, request.known) < request.missing:
        return data_requests.ABSENT
    return _load_outcomes(run, where, params, request.known)


def _count_existing(run: Run, known: frozenset[Key]) -> int:
    """Return the number of known tasks that have rows. Tasks that this decision creates have none yet."""
    return sum(1 for key in known if key in run.tasks)


@_loads_each(data_requests.IterationOutcomes)
def _iteration_outcomes(run: Run, request: data_requests.IterationOutcomes, now: int) -> list[TaskOutcome] | None:
    iteration_path = format_iteration_path((*request.loop.iteration_path, request.iteration))
    where = "t.loop_ref = %s AND NOT (t.loop_ref = '') AND t.iteration_path = %s"
    params = [request.loop.ref, iteration_path]
    if _is_any_open(run, where, params, request.known):
        return None
    return _load_outcomes(run, where, params, request.known)


@_loads_each(data_requests.StepOutcomes)
def _step_outcomes(run: Run, request: data_requests.StepOutcomes, now: int) -> list[TaskOutcome]:
    path_condition, path_params = _iteration_condition("t", request.loop.iteration_path)
    return _load_outcomes(run, f"t.ref = %s{path_condition}", [request.ref, *path_params], request.known)


@_loads_each(data_requests.OpenTaskInside)
def _is_open_inside(run: Run, request: data_requests.OpenTaskInside, now: int) -> bool:
    refs = sorted(request.refs)
    path_condition, path_params = _iteration_condition("t", (*request.scope.iteration_path, request.iteration))
    where = f"t.loop_ref IN ({placeholders(refs)}) AND NOT (t.loop_ref = ''){path_condition}"
    return _is_any_open(run, where, [*refs, *path_params], request.known)


@_loads(data_requests.ListItem)
def _list_items(run: Run, requests: list[data_requests.ListItem], now: int) -> dict[DataRequest, Any]:
    """Return items of lists. A list that is not cached is loaded as the payload that contains it."""
    unknown = sorted({request.attempt_id for request in requests} - item_lists.value.keys())
    payloads = (
        _attempt_payloads(run, [data_requests.AttemptPayload(id, "input") for id in unknown], now) if unknown else {}
    )
    data: dict[DataRequest, Any] = {}
    for request in requests:
        payload = payloads.get(data_requests.AttemptPayload(request.attempt_id, "input"))
        if isinstance(payload, ExternalPayload | MaskedPayload):
            data[request] = payload
        else:
            if payload is not None:
                item_lists.value.put(request.attempt_id, payload["items"])
            data[request] = item_lists.value.item(request.attempt_id, request.index)
    return data


def _is_any_open(run: Run, where: str, params: list[str], known: frozenset[Key]) -> bool:
    """Return True if a matching task outside the snapshot is open.

    `known`: the tasks in the snapshot. One row more than their number suffices to find another one.
    """
    rows = fetch(
        "SELECT t.ref, t.iteration_path FROM conductor_task t "
        f"WHERE t.run_id = %s AND {where} AND t.status = 'ACTIVE' LIMIT %s",
        [run.id, *params, len(known) + 1],
    )
    return any(Key(ref, parse_iteration_path(iteration_path)) not in known for ref, iteration_path in rows)


def _load_outcomes(run: Run, where: str, params: list[str], known: frozenset[Key]) -> list[TaskOutcome]:
    rows = fetch(f"{SELECT_OUTCOMES}{where}", [run.id, *params])
    return [
        TaskOutcome(
            Key(ref, parse_iteration_path(iteration_path)),
            seq,
            status,
            reason,
            name,
            id,
            status in ("COMPLETED", "COMPLETED_WITH_ERRORS", "SKIPPED") or bool(permissive),
            read_payload(output, path),
        )
        for ref, iteration_path, seq, status, reason, name, id, permissive, output, path in rows
        if Key(ref, parse_iteration_path(iteration_path)) not in known
    ]


@_loads_each(data_requests.RemainingTasks)
def _remaining_tasks(run: Run, request: data_requests.RemainingTasks, now: int) -> data_requests.RemainingSummary:
    known = request.known
    is_open = _is_any_open(run, "t.id <> ''", [], known)
    is_waiting_type = f"t.type NOT IN ({placeholders(WAITING_TYPES)})"
    is_at_work = is_open and _is_any_open(run, is_waiting_type, WAITING_TYPES, known)
    return data_requests.RemainingSummary(is_open, is_at_work, () if is_open else _permissive_failures(run, known))


def _permissive_failures(run: Run, known: frozenset[Key]) -> tuple[tuple[str, str, str], ...]:
    if not run.definition.has_permissive:
        return ()
    failed = _load_outcomes(run, "t.is_permissive AND t.status NOT IN ('ACTIVE', 'COMPLETED', 'SKIPPED')", [], known)
    return tuple((outcome.attempt_id, outcome.status, outcome.reason) for outcome in failed)


@_loads(data_requests.LastOutput)
def _last_output(run: Run, requests: list[data_requests.LastOutput], now: int) -> dict[DataRequest, Any]:
    rows = fetch(*DATA_SQL["find_last_output"].bind(run_id=run.id))
    return {request: (rows[0][0], read_payload(*rows[0][1:])) if rows else (0, {}) for request in requests}


@_loads(data_requests.TaskAt)
def _tasks_at(run: Run, requests: list[data_requests.TaskAt], now: int) -> dict[DataRequest, Any]:
    tasks = load_tasks_at(run, [request.key for request in requests])
    return {request: tasks.get(request.key) for request in requests}


@_loads_each(data_requests.ReferencesInUse)
def _references_in_use(run: Run, request: data_requests.ReferencesInUse, now: int) -> frozenset[str]:
    return frozenset(_used_references(run, request))


def _used_references(run: Run, request: data_requests.ReferencesInUse) -> Iterator[str]:
    refs = sorted(request.refs)
    path_params = () if request.iteration_path is None else (format_iteration_path(request.iteration_path),)
    where = "run_id = %s AND iteration_path = %s" if path_params else "run_id = %s"
    for start in range(0, len(refs), 500):
        chunk = refs[start : start + 500]
        sql = f"SELECT DISTINCT ref FROM conductor_task WHERE {where} AND ref IN ({placeholders(chunk)})"
        yield from (ref for (ref,) in fetch(sql, [run.id, *path_params, *chunk]))


@_loads_each(data_requests.ActiveDomains)
def _active_domains(run: Run, request: data_requests.ActiveDomains, now: int) -> frozenset[str]:
    since = now - ACTIVE_WORKER_MS
    rows = fetch(*DATA_SQL["find_active_domains"].bind(task_type=request.task_type, since=since))
    return frozenset(domain for (domain,) in rows)


@_loads_each(data_requests.CachedTaskOutput)
def _cached_task_output(run: Run, request: data_requests.CachedTaskOutput, now: int) -> Any:
    rows = _find_cached("find_task_output", request, now)
    return read_payload(*rows[0]) if rows else None


@_loads_each(data_requests.CachedRunOutput)
def _cached_run_output(run: Run, request: data_requests.CachedRunOutput, now: int) -> tuple[str, Any] | None:
    rows = _find_cached("find_run_output", request, now)
    return (rows[0][0], read_payload(*rows[0][1:])) if rows else None


def _find_cached(
    statement: str, request: data_requests.CachedTaskOutput | data_requests.CachedRunOutput, now: int
) -> list[tuple[Any, ...]]:
    return fetch(*DATA_SQL[statement].bind(digest=request.digest, name=request.name[:255], now=now))


@_loads_each(data_requests.IdempotencyLookup)
def _idempotency_holder(
    run: Run, request: data_requests.IdempotencyLookup, now: int
) -> data_requests.IdempotencyKeyHolder | None:
    holder = None
    statement = DATA_SQL["find_idempotency_holder"].bind(name=request.name, key=request.key)
    for id, status, parent_id, task_id, waits in fetch(*statement):
        holder = data_requests.IdempotencyKeyHolder(id, status, parent_id, task_id or "", waits in ATTEMPT.open)
    return holder


@_loads(data_requests.Environment)
def _environment_variables(run: Run, requests: list[data_requests.Environment], now: int) -> dict[DataRequest, Any]:
    return dict.fromkeys(requests, all_variables())


@_loads_each(data_requests.RunLimitReached)
def _is_own_limit_reached(run: Run, request: data_requests.RunLimitReached, now: int) -> bool:
    return is_run_limit_reached(request.name, request.key, request.limit, but=run.id)


def set_run_limit(run_id: str, key: str, is_held: bool) -> None:
    """Set the limit key of a run that has not started, and whether the limit holds the run back."""
    RunRow.objects.filter(pk=run_id, next_seq=1).update(limit_key=key, is_held=is_held)


def is_run_limit_reached(name: str, key: str, limit: int, but: str = "") -> bool:
    """Return True if a run that starts now must wait. Starts with the same key are serialized until the commit.

    `but`: a run that is not counted.
    """
    serialize(f"runs:{name}:{key}")
    return count_admitted_runs(name, key, but) >= limit or held_runs(name, key).exists()


def held_runs(name: str, key: str) -> QuerySet[RunRow]:
    """Return the runs that a rate limit holds, earliest first. They start before new runs."""
    return RunRow.objects.open().filter(name=name, limit_key=key, is_held=True).order_by("created_at", "id")


def count_admitted_runs(name: str, key: str, but: str = "") -> int:
    """Return the number of open runs with a rate limit key that the limit does not hold."""
    return RunRow.objects.open().filter(name=name, limit_key=key, is_held=False).exclude(pk=but).count()


INBOX_SQL = load_statements("runs/store/inbox")
WAITING_TYPE = PullWorkflowMessages.type
MESSAGE_LIFETIME_MS = 86_400_000
"""The lifetime of a message in the inbox, in milliseconds (execution §10.8)."""


@_loads_each(data_requests.InboxMessages)
def oldest_messages(run: Run, request: data_requests.InboxMessages, now: int) -> data_requests.InboxBatch:
    """Return the oldest valid messages that fit into the output of one task, and the number of messages after them."""
    which = {"after": request.after, "expired_at": now - MESSAGE_LIFETIME_MS, "count": request.count}
    rows = _within_output_limit(fetch(*INBOX_SQL["read_inbox"].bind(run_id=run.id, **which)))
    up_to = rows[-1][0] if rows else fetch(*INBOX_SQL["find_last_message"].bind(run_id=run.id))[0][0]
    [(remaining,)] = fetch(*INBOX_SQL["count_inbox"].bind(run_id=run.id, after=up_to))
    return data_requests.InboxBatch(tuple(_message_document(run, *row[1:]) for row in rows), up_to, remaining)


def _within_output_limit(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    size = 0
    for place, row in enumerate(rows):
        size += len(row[3])
        if place and size > conf.task_payload_max_bytes // 2:
            return rows[:place]
    return rows


def _message_document(run: Run, id: str, received_at: int, payload: str) -> dict[str, Any]:
    at = datetime.fromtimestamp(received_at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"id": id, "workflowId": run.id, "payload": loads_decrypted(payload), "receivedAt": at}


def inbox_readers(run_id: str) -> list[str]:
    """Return the attempts of the run that wait for messages."""
    rows = fetch(*INBOX_SQL["find_inbox_readers"].bind(run_id=run_id, type=WAITING_TYPE))
    return [id for (id,) in rows]


def delete_expired_messages(run_id: str, now: int) -> int:
    """Delete expired messages. Returns the number of remaining messages."""
    execute(*INBOX_SQL["delete_expired_messages"].bind(run_id=run_id, expired_at=now - MESSAGE_LIFETIME_MS))
    return fetch(*INBOX_SQL["count_inbox"].bind(run_id=run_id, after=0))[0][0]


def add_inbox_message(run_id: str, id: str, payload: Any, now: int, count: int) -> None:
    """Add a message to the inbox of a locked run. `count`: the number of messages including this one."""
    InboxMessage.objects.create(id=id, run_id=run_id, received_at=now, payload=payload)
    RunRow.objects.filter(pk=run_id).update(inbox=count)
