"""Commands on attempts: claim, report and renew; long polls.

Long polls: claims that wait for work without a database connection.

Commands on attempts: claim, report and renew.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from random import random
from time import monotonic
from typing import TypeVar

from django.db import transaction

from ... import notifications
from ...access.authentication import Target, task_target
from ...access.secrets import decrypt_masked, load_secrets, masked_texts, redact_verbatim
from ...core import commands, reports
from ...core.data_requests import SecretValues
from ...core.decision_context import Command, DecisionContext
from ...core.effects import Effect
from ...core.errors import AlreadyResolved, Conflict, NotFound, PayloadMissing, RequestRefused
from ...core.reports import Report
from ...core.snapshot import Run
from ...core.states import LEASED
from ...db.fields import strip_nul
from ...db.transient_errors import FaultTolerance
from ...notifications import LOCAL_CALLER, PendingWait, Waiter, WaitingClient, WaitSteps, wait_in_thread
from ...payloads import commands as payload_storage
from ...runs.commands.change import RunCommand, change_run
from ...runs.commands.messages import deliver_after_commit
from ...runs.commands.repair import enforce_output_limit, find_open_task
from ...runs.models import Attempt, Task
from ...settings import conf
from ...taskcluster.commands.change import change_task
from ...taskcluster.core import decisions as standalone_reports
from ...telemetry import metrics
from ...utils import clock, fault_points, process_state
from ...utils.process_state import Slot
from .. import store as claims
from .. import store as task_logs
from .. import throughput
from ..store import ClaimedAttempt, load_claimed
from .pollers import LOOKUPS, record_poll, release_connection

SHORT_WAIT_MS = 200
"""The maximum wait of a poll whose queue is not looked up in the meantime. It claims again at its end instead."""
MOST_EARLY = 0.1
"""The share of its wait by which a poll may end early."""
Taken = TypeVar("Taken")


@dataclass(frozen=True, slots=True)
class LongPoll:
    """A poll of a queue, for up to `count` attempts, that waits up to `wait_ms` milliseconds for the first."""

    queue: str
    wait_ms: int
    count: int = 1
    client: WaitingClient = LOCAL_CALLER


def begin_poll(poll: LongPoll, take: Callable[[], list[Taken]]) -> WaitSteps[list[Taken]]:
    """Return what `take` claims from the queue, at once or when the poll is woken.

    Returns earlier if too many requests are waiting. Nothing is claimed for a client that has disconnected: the attempt
    would be blocked until its lease expires.
    """
    if poll.client.has_left():
        return []
    seconds = notifications.limit_wait(poll.client, poll.wait_ms / 1000)
    if seconds <= 0:
        return take()
    # Polls that begin together, such as after a restart, would end and begin together for a long time.
    ends_at = monotonic() + seconds * (1 - random() * MOST_EARLY)
    with notifications.subscribe(poll.queue, most=poll.count, client=poll.client) as waiter:
        taken = [] if _is_known_to_be_empty(poll) else take()
        waiter.finish_claim(len(taken))
        while not taken and (yield from _wait(poll, waiter, ends_at)):
            taken = take()
            if waiter.finish_claim(len(taken)):
                LOOKUPS.value.repeat(poll.queue)
        return taken


def _is_known_to_be_empty(poll: LongPoll) -> bool:
    """Return True if a lookup for other polls has found nothing, and this poll waits for the next one."""
    return poll.wait_ms > SHORT_WAIT_MS and notifications.WAITERS.value.is_empty(poll.queue, monotonic())


def _wait(poll: LongPoll, waiter: Waiter, ends_at: float) -> Generator[PendingWait, bool, bool]:
    """Wait for a notification without a database connection. Returns True if the poll must claim again."""
    left, is_short = ends_at - monotonic(), poll.wait_ms <= SHORT_WAIT_MS
    if left <= 0 or notifications.is_closing():
        return False
    if not is_short:
        LOOKUPS.value.watch(poll.queue)
    release_connection()
    with metrics.gauge_waiting():
        is_woken = yield PendingWait(waiter, left)
    # A poll that does not claim passes its notification on when it unsubscribes.
    return (is_woken or is_short) and not (poll.client.has_left() or notifications.is_closing())


log = logging.getLogger(__name__)

STORAGE_SECONDS = 30
"""Delay of an attempt whose input is in a storage that cannot be reached."""
LOGS_A_REPORT = 10
"""The maximum number of stored log lines of one report (api §3.7)."""
MAX_LOG_LINE_LENGTH = 64_000
"""The maximum number of characters of a stored log line."""
NOT_DELIVERED = "The reply to the worker failed."
Rendered = TypeVar("Rendered")


def claim_tasks(
    task_type: str, *, worker: str = "", domain: str = "", count: int = 1, wait_ms: int = 100
) -> list[ClaimedAttempt]:
    """Claim up to `count` attempts of a type for a worker, waiting up to `wait_ms` milliseconds for the first."""
    return wait_in_thread(begin_claim(task_type, worker=worker, domain=domain, count=count, wait_ms=wait_ms))


def begin_claim(
    task_type: str,
    *,
    worker: str = "",
    domain: str = "",
    count: int = 1,
    wait_ms: int = 100,
    client: WaitingClient = LOCAL_CALLER,
) -> WaitSteps[list[ClaimedAttempt]]:
    """Return the steps of a claim of up to `count` attempts, which waits up to `wait_ms` milliseconds for the first."""
    queue = f"{domain}:{task_type}" if domain else task_type
    worker = strip_nul(worker)[:255]
    record_poll(task_type, domain, worker)
    return _claim_steps(LongPoll(queue, wait_ms, count, client), worker)


def _claim_steps(poll: LongPoll, worker: str) -> WaitSteps[list[ClaimedAttempt]]:
    ids: list[str] = []

    def take() -> list[ClaimedAttempt]:
        taken = claim_now(poll.queue, worker, poll.count)
        ids.extend(attempt.id for attempt in taken)
        return taken

    with releasing_undelivered(ids, worker):
        return (yield from begin_poll(poll, take))


@metrics.CLAIM_SECONDS.of
def claim_now(queue: str, worker: str, count: int) -> list[ClaimedAttempt]:
    """Claim up to `count` attempts that the queue has now."""
    release_again()
    now = clock.now()
    ids, attempts, is_limited = claims.claim_unlimited(queue, worker, now, count)
    if is_limited:
        ids, attempts = _claim_with_limits(queue, worker, count, now), None
    if not ids:
        return []
    with releasing_undelivered(ids, worker):
        taken = list(_with_inputs(load_claimed(ids) if attempts is None else attempts))
        throughput.record_claims(taken)
        fault_points.reach("claimed")
        return taken


@contextmanager
def releasing_undelivered(ids: Collection[str], worker: str) -> Iterator[None]:
    """Release claimed attempts if the block raises an exception, because their worker does not receive them.

    Otherwise no worker would have them until their leases expire.
    """
    try:
        yield
    except BaseException:
        if ids:
            _release_claims(frozenset(ids), worker)
        raise


_unreleased: Slot[deque[tuple[frozenset[str], str]]] = process_state.slot(lambda: deque(maxlen=1_000))
"""Claims that could not be released either: their ids and their worker. The next claim of this process tries again."""


def _release_claims(ids: frozenset[str], worker: str) -> None:
    try:
        for run_id, task_id, number, id in FaultTolerance().repeat(partial(_held_by, ids, worker)):
            with suppress(NotFound, Conflict):
                if run_id:
                    change_run(RunCommand(run_id, commands.release_lease(id), "engine", NOT_DELIVERED, attempts=[id]))
                else:
                    change_task(task_id, standalone_reports.release_lease(number, worker))
    except Exception:
        log.exception("claim_not_released", extra={"attempts": sorted(ids)[:50], "worker": worker})
        _unreleased.value.append((ids, worker))


def _held_by(ids: Collection[str], worker: str) -> list[tuple[str | None, str, int, str]]:
    """Return the run, task, number and id of each of these attempts that the worker holds."""
    held = Attempt.objects.filter(pk__in=ids, status=LEASED, worker=worker)
    return list(held.values_list("run_id", "task_id", "number", "id"))


def release_again() -> None:
    """Release the claims of this process that could not be released before."""
    unreleased = _unreleased.value
    for _ in range(len(unreleased)):
        with suppress(IndexError):
            _release_claims(*unreleased.popleft())


def render_delivered(render: Callable[[list[ClaimedAttempt]], Rendered]) -> Callable[[list[ClaimedAttempt]], Rendered]:
    """Return the function that renders the reply to a claim, and releases the attempts if that raises an exception."""

    def render_or_release(attempts: list[ClaimedAttempt]) -> Rendered:
        ids, worker = [attempt.id for attempt in attempts], attempts[0].worker if attempts else ""
        with releasing_undelivered(ids, worker):
            return render(attempts)

    return render_or_release


def _with_inputs(attempts: Iterable[ClaimedAttempt]) -> Iterator[ClaimedAttempt]:
    """Yield the attempts with inputs from blob storage loaded and masked values decrypted.

    The server loads the inputs because only one SDK can fetch them itself.
    """
    for attempt in attempts:
        if attempt.has_masked_values:
            attempt.masked = masked_texts(attempt.input)
            attempt.input, attempt.output = decrypt_masked(attempt.input), decrypt_masked(attempt.output)
        if attempt.input_path:
            try:
                attempt.input = payload_storage.load_unmasked_payload(attempt.input_path)
            except RequestRefused as refused:
                _postpone_claim(attempt, refused)
                continue
        yield attempt


def _postpone_claim(attempt: ClaimedAttempt, why: RequestRefused) -> None:
    """Fail an attempt whose input is missing, or release it with a delay if the storage cannot be reached."""
    facts = {"attempt_id": attempt.id, "path": attempt.input_path}
    log.warning("input_not_read", extra={**facts, "why": why.message})
    if isinstance(why, PayloadMissing):
        report = Report("FAILED_FOR_GOOD", reason=f"Its input cannot be read: {why.message}", merges=True)
    else:
        report = Report("IN_PROGRESS", callback_seconds=STORAGE_SECONDS, merges=True, is_kept=False)
    try:
        report_task(attempt.run_id, attempt.id, report, "engine")
    except RequestRefused:
        # The lease expires, and workers can claim the attempt again.
        log.exception("input_not_read", extra=facts)


def _claim_with_limits(queue: str, worker: str, count: int, now: int) -> list[str]:
    """Claim attempts that have limits, or whose start is published, in a transaction."""
    with transaction.atomic():
        ids, published = claims.claim_limited(queue, worker, now, count)
        if published:
            transaction.on_commit(partial(deliver_after_commit, claims.write_start_messages(published, now)))
    return ids


Guard = Callable[[Target], None]
"""Raises Forbidden if the reporter has no permission for this task."""


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Options of a report.

    `logs`: lines for the task's log, with their times in epoch milliseconds. `output_path`: path of an output that was
    uploaded before. `guard`: checks the permission of the reporter.
    """

    logs: Sequence[tuple[str, int]] = ()
    output_path: str = ""
    guard: Guard | None = None


NO_OPTIONS = ReportOptions()


@metrics.REPORT_SECONDS.of
def report_task(run_id: str, attempt_id: str, report: Report, by: str, options: ReportOptions = NO_OPTIONS) -> bool:
    """Apply a worker's report to its attempt. Returns False if the attempt was resolved before; nothing changes then.

    Raises:
        NotFound: when there is no such run or attempt.
        Invalid: when the uploaded output is missing, invalid or too large.
        Forbidden: when the guard refuses the reporter.
    """
    named: dict[tuple[str, str], str] = {}
    output_path = options.output_path
    if output_path:
        named[attempt_id, "output"] = output_path
        report = replace(report, output=payload_storage.load_client_payload(output_path, conf.task_payload_max_bytes))
    else:
        report = enforce_output_limit(report)
    redacted = RedactedReport(attempt_id, report, options.logs, is_output_uploaded=bool(output_path))
    command = authorize_first(redacted, attempt_id, options.guard)
    write_logs = redacted.write_logs if options.logs else None
    try:
        change_run(
            RunCommand(run_id, command, by, attempts=[attempt_id], within_transaction=write_logs, payload_paths=named)
        )
    except AlreadyResolved:
        return False
    fault_points.reach("reported")
    return True


class RedactedReport:
    """The command of a report, and its log lines, with the secrets of the task redacted.

    `is_output_uploaded`: the output is stored as it was uploaded, without redaction.
    """

    def __init__(
        self, attempt_id: str, report: Report, logs: Sequence[tuple[str, int]] = (), *, is_output_uploaded: bool = False
    ) -> None:
        self._attempt_id, self._report, self._logs = attempt_id, report, logs
        self._is_output_uploaded = is_output_uploaded
        # Known once the task is loaded.
        self._secrets: Collection[str] = ()

    def __call__(self, run: Run, ctx: DecisionContext, now: int) -> Iterable[Effect]:
        report, names = self._report, reports.require_open_task(run, self._attempt_id).step_state.get("secrets")
        if names:
            secrets = self._secrets = ctx.require(SecretValues(frozenset(names))).values()
            output = report.output if self._is_output_uploaded else redact_verbatim(report.output, secrets)
            report = replace(report, output=output, reason=redact_verbatim(report.reason, secrets))
        return reports.apply_report(self._attempt_id, report)(run, ctx, now)

    def write_logs(self, now: int) -> None:
        """Save the log lines. Called after the command."""
        add_logs(self._attempt_id, self._logs, now, self._secrets)


def report_by_ref(run_id: str, ref: str, report: Report, by: str) -> str | None:
    """Report on the open task with this reference, in any iteration.

    Returns the attempt id, or None if the task has ended: a repeated report changes nothing.

    Raises:
        NotFound: when there is no such run, or it has no task with this reference.
    """
    found = find_open_task(run_id, ref)
    if found is None:
        _require_task(run_id, ref)
    if found is None or not report_task(run_id, found.attempt_id, report, by):
        return None
    return found.attempt_id


def _require_task(run_id: str, ref: str) -> None:
    parts = ref.split("__")
    tasks = Task.objects.filter(run_id=run_id, ref__in=["__".join(parts[: at + 1]) for at in range(len(parts))])
    if not any(ref in (task.ref, str(task)) for task in tasks):
        raise NotFound(f"Found no running task {ref} of workflow {run_id} to update")


def authorize_first(command: Command, attempt_id: str, guard: Guard | None) -> Command:
    """Return a command that calls the guard first. The task is loaded at that point, so the check needs no query."""
    if guard is None:
        return command

    def guarded(run: Run, ctx: DecisionContext, now: int) -> Iterable[Effect]:
        task = reports.require_open_task(run, attempt_id)
        name = task.step.name
        guard(task_target(task.attempt.queue, task.attempt.domain, name, run.id, run.definition.name))
        return command(run, ctx, now)

    return guarded


def renew_lease(run_id: str, attempt_id: str, by: str, guard: Guard | None = None, worker: str = "") -> None:
    """Extend the lease of an attempt, if it is open.

    Raises:
        NotFound: when there is no such run or attempt.
        Forbidden: when the guard refuses the caller.
    """
    try:
        change_run(
            RunCommand(
                run_id,
                authorize_first(reports.renew_lease(attempt_id, worker), attempt_id, guard),
                by,
                attempts=[attempt_id],
            )
        )
    except AlreadyResolved:
        return


def add_log(attempt_id: str, line: str) -> None:
    """Save a log line of a worker.

    Raises:
        NotFound: when there is no such attempt.
    """
    step_state = Task.objects.filter(attempts=attempt_id[:64]).values_list("step_state", flat=True).first()
    if step_state is None:
        raise NotFound(f"No such task found by id: {attempt_id}")
    secrets = load_secrets(step_state.get("secrets", ()))
    add_logs(attempt_id, [(line, clock.now())], clock.now(), secrets.values())


def add_logs(attempt_id: str, logs: Sequence[tuple[str, int]], now: int, secrets: Iterable[str] = ()) -> None:
    """Save the first log lines of a report with these secrets redacted. A line without a time gets `now`.

    Long lines are cut, because a report must not fail for them.
    """
    lines = [(_cut_line(redact_verbatim(line, secrets)), at or now) for line, at in logs[:LOGS_A_REPORT]]
    task_logs.add_lines(attempt_id, lines)


def _cut_line(line: str) -> str:
    return line if len(line) <= MAX_LOG_LINE_LENGTH else f"{line[:MAX_LOG_LINE_LENGTH]}…"
