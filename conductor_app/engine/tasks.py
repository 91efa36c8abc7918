"""Commands on attempts: claim, report, renew."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TypeVar

from django.db import connection, transaction

from .. import clock, conf, notifications
from ..access.masking import decrypt_masked, masked_texts
from ..access.permissions import Target, task_target
from ..access.redaction import redact_verbatim
from ..core import reports
from ..core.decide import Command
from ..core.decision_context import DecisionContext
from ..core.effects import Effect
from ..core.errors import AlreadyResolved, PayloadMissing, RequestRefused
from ..core.reports import Report
from ..core.snapshot import Run
from ..models import Attempt, Task, TaskLog
from ..models.fields import dumps
from ..store import claims
from ..store.claimed_attempts import load_claimed
from ..store.rows import strip_nul
from ..telemetry import metrics
from . import payloads, throughput
from .change import RunCommand, change_run
from .delivery import deliver_after_commit
from .pollers import note_poll

log = logging.getLogger(__name__)

STORAGE_SECONDS = 30
"""How long a task waits whose input is kept in a storage that cannot be reached."""
LONGEST_NAP = 1.0
"""Seconds after which a waiting poll looks again, whatever it has heard: a lost hint costs no more."""
Taken = TypeVar("Taken")
HasLeft = Callable[[], bool]
"""Whether whoever wants to take something has gone meanwhile."""
LOGS_A_REPORT = 10
"""Log lines of one report that are kept (api §3.7)."""


def always_connected() -> bool:
    """Whoever takes within this process is there."""
    return False


def claim_tasks(
    task_type: str,
    *,
    worker: str = "",
    domain: str = "",
    count: int = 1,
    wait_ms: int = 100,
    has_left: HasLeft = always_connected,
) -> list[Attempt]:
    """Hand out up to `count` attempts of a type to a worker, waiting up to `wait_ms` for the first."""
    queue = f"{domain}:{task_type}" if domain else task_type
    worker = strip_nul(worker)[:255]
    note_poll(task_type, domain, worker)
    return long_poll(queue, wait_ms, lambda: claim_now(queue, worker, count), has_left)


def long_poll(
    queue: str, wait_ms: int, take: Callable[[], list[Taken]], has_left: HasLeft = always_connected
) -> list[Taken]:
    """What is taken from the queue, after waiting up to `wait_ms` for the first; some waits are refused.

    Nothing is taken for a worker that has left: it would wait there for the end of its lease.
    """
    if wait_ms <= 0 or notifications.count_waiting() >= conf.most_waiting_polls:
        return [] if has_left() else take()
    ends_at, is_woken = monotonic() + wait_ms / 1000, False
    while not has_left():
        with notifications.subscribe(queue) as waiter:
            taken = take()
            left = ends_at - monotonic()
            if taken or left <= 0 or notifications.is_closing():
                return taken
            nap = min(left, LONGEST_NAP, _seconds_until_next(queue) if wait_ms > 200 else LONGEST_NAP)
            # A waiting poll holds no connection (ARCHITECTURE §13).
            release_connection()
            with metrics.gauge_waiting():
                is_woken = waiter.wait(nap)
    if is_woken:
        # The hint was used up by somebody who has no use for it: whoever waits next shall look.
        notifications.announce([queue])
    return []


@metrics.CLAIM_SECONDS.of
def claim_now(queue: str, worker: str, count: int) -> list[Attempt]:
    """Hand out what the queue has now."""
    now = clock.now()
    found = claims.find_candidates(queue, worker, now, count)
    if not found:
        return []
    if all(candidate.is_plain for candidate in found):
        ids = claims.claim_unlimited(queue, worker, now, count, sorted({candidate.name for candidate in found}))
    else:
        ids = _claim_with_limits(queue, worker, count, now)
    taken = list(_with_inputs(load_claimed(ids))) if ids else []
    throughput.record_claims(taken)
    return taken


def _with_inputs(attempts: Iterable[Attempt]) -> Iterator[Attempt]:
    """The attempts with the inputs that are kept elsewhere: only one language's workers could fetch them.

    What their definitions mask is opened for the worker.
    """
    for attempt in attempts:
        if attempt.holds_sealed:
            attempt.masked = masked_texts(attempt.input)
            attempt.input, attempt.output = decrypt_masked(attempt.input), decrypt_masked(attempt.output)
        if attempt.input_path:
            try:
                attempt.input = payloads.load_unmasked_payload(attempt.input_path)
            except RequestRefused as refused:
                _postpone_claim(attempt, refused)
                continue
        yield attempt


def _postpone_claim(attempt: Attempt, why: RequestRefused) -> None:
    """What cannot be handed out without its input fails where that is lost, and else waits for the storage."""
    facts = {"attempt_id": attempt.id, "path": attempt.input_path}
    log.warning("input_not_read", extra={**facts, "why": why.message})
    if isinstance(why, PayloadMissing):
        said = Report("FAILED_FOR_GOOD", reason=f"Its input cannot be read: {why.message}", merges=True)
    else:
        said = Report("IN_PROGRESS", callback_seconds=STORAGE_SECONDS, merges=True, is_kept=False)
    try:
        report_task(attempt.run_id, attempt.id, said, "engine")
    except RequestRefused:
        # Its lease runs out, and it is handed out again.
        log.exception("input_not_read", extra=facts)


def _claim_with_limits(queue: str, worker: str, count: int, now: int) -> list[str]:
    """Hand out what has limits, or what is told of, in a transaction of its own."""
    # Delivering a message is a change of a run, and events report on tasks.
    with transaction.atomic():
        ids, telling = claims.claim_limited(queue, worker, now, count)
        if telling:
            transaction.on_commit(partial(deliver_after_commit, claims.write_start_messages(telling, now)))
    return ids


def _seconds_until_next(queue: str) -> float:
    """Seconds until the next attempt of the queue becomes visible."""
    moment = claims.next_visible_at(queue)
    now = clock.now()
    return LONGEST_NAP if moment is None or moment <= now else (moment - now) / 1000


def release_connection() -> None:
    """Hold no connection while waiting."""
    # A file that is open costs nothing; opening it again each second does.
    if connection.vendor != "sqlite" and not connection.in_atomic_block:
        connection.close()


Guard = Callable[[Target], None]
"""Raises Forbidden where whoever reports must not report on this task."""


@metrics.REPORT_SECONDS.of
def report_task(
    run_id: str,
    attempt_id: str,
    report: Report,
    by: str,
    logs: Sequence[tuple[str, int]] = (),
    output_path: str = "",
    guard: Guard | None = None,
) -> bool:
    """A worker says what came of its attempt; False where it is over already and nothing changes. Raises NotFound.

    `output_path`: where the output is kept, if it was uploaded before; raises Invalid where it is not there.
    """
    named: dict[tuple[str, str], str] = {}
    named_secrets: list[str] = []
    if output_path:
        # What was uploaded stays as it is.
        named[attempt_id, "output"] = output_path
        report = replace(report, output=payloads.load_client_payload(output_path, conf.task_payload_max_bytes))
        hear = reports.apply_report(attempt_id, report)
    else:
        hear = redact_report(attempt_id, enforce_output_limit(report), named_secrets)
    command = authorize_first(hear, attempt_id, guard)
    write_logs = (lambda now: add_logs(attempt_id, logs, now, named_secrets)) if logs else None
    try:
        change_run(
            RunCommand(run_id, command, by, attempts=[attempt_id], within_transaction=write_logs, payload_paths=named)
        )
    except AlreadyResolved:
        return False
    return True


def redact_report(attempt_id: str, report: Report, named: list[str]) -> Command:
    """The command of a report, without the secrets that its task was given; those are noted in `named`."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterable[Effect]:
        named[:] = reports.require_open_task(run, attempt_id).step_state.get("secrets", ())
        said = report
        if named:
            output, reason = redact_verbatim(report.output, named), redact_verbatim(report.reason, named)
            said = replace(report, output=output, reason=reason)
        return reports.apply_report(attempt_id, said)(run, ctx, now)

    return command


def enforce_output_limit(report: Report) -> Report:
    """The report, or a failure for good where its output is larger than a task's may be (execution §1.6)."""
    size, most = len(dumps(report.output) or ""), conf.task_payload_max_bytes
    if size <= most:
        return report
    reason = f"The output of {size} bytes is larger than the {most} bytes that a task may have."
    return replace(report, outcome="FAILED_FOR_GOOD", output={}, reason=reason, merges=False)


def report_by_ref(run_id: str, ref: str, said: Report, by: str) -> str | None:
    """Report on the open task with this reference, in any turn of a loop; its attempt's id, or None."""
    found = find_open_task(run_id, ref)
    if found is None or not report_task(run_id, found.attempt_id, said, by):
        return None
    return found.attempt_id


def find_open_task(run_id: str, ref: str) -> Task | None:
    """The open task with this reference: in the turn that it names, else the first one in any turn."""
    tasks = Task.objects.open().filter(run_id=run_id).order_by("seq")
    return next((task for task in tasks if str(task) == ref), None) or tasks.filter(ref=ref).first()


def authorize_first(command: Command, attempt_id: str, guard: Guard | None) -> Command:
    """The command, behind a guard that is shown the task: it is read by then, so that asking costs no statement."""
    if guard is None:
        return command

    def asked(run: Run, ctx: DecisionContext, now: int) -> Iterable[Effect]:
        task = reports.require_open_task(run, attempt_id)
        name = task.resolved_name
        guard(task_target(task.attempt.queue, task.attempt.domain, name, run.id, run.definition.name))
        return command(run, ctx, now)

    return asked


def renew_lease(run_id: str, attempt_id: str, by: str, guard: Guard | None = None, worker: str = "") -> None:
    """Extend the lease; nothing happens where the attempt is over. Raises NotFound."""
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
    """Keep a line that a worker logged; there need not be such an attempt (api §1.4)."""
    step_state = Task.objects.filter(attempts=attempt_id[:64]).values_list("step_state", flat=True).first() or {}
    add_logs(attempt_id, [(line, clock.now())], clock.now(), step_state.get("secrets", ()))


def add_logs(attempt_id: str, logs: Sequence[tuple[str, int]], now: int, named: Sequence[str] = ()) -> None:
    """Keep the first lines of a report, without the secrets `named`; a moment that is missing is now."""
    TaskLog.objects.bulk_create(
        TaskLog(attempt_id=attempt_id[:64], at=at or now, line=strip_nul(redact_verbatim(line, named)))
        for line, at in logs[:LOGS_A_REPORT]
    )
