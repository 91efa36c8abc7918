"""Commands on claimed attempts: report, renew the lease, and log."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...access.authentication import Target, task_target
from ...access.secrets import redact_verbatim
from ...core import decide
from ...core.data_requests import DataRequest
from ...core.decide import Report
from ...core.decision_context import Command, DecisionContext
from ...core.effects import Effect
from ...core.errors import AlreadyResolved, NotFound
from ...core.snapshot import Run
from ...payloads import commands as payload_storage
from ...runs.commands.change import RunCommand, change_run
from ...runs.commands.group_commit import ChooseFinalQuery
from ...runs.commands.repair import enforce_output_limit, find_open_task
from ...runs.models import Attempt, Task
from ...settings import conf
from ...telemetry import metrics
from ...utils import clock, fault_points
from .. import store
from ..secrets import redact_report, secrets_of_log, secrets_to_redact

LOGS_A_REPORT = 10
"""The maximum number of stored log lines of one report (api §3.7)."""
MAX_LOG_LINE_LENGTH = 64_000
Guard = Callable[[Target], None]
"""Raises Forbidden if the reporter has no permission for this task."""


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Options of a report.

    `logs`: lines for the task's log, with their times in epoch milliseconds. `output_path`: path of an output that was
    uploaded before. `guard`: checks the permission of the reporter. `final_query`: as in `RunCommand`.
    """

    logs: Sequence[tuple[str, int]] = ()
    output_path: str = ""
    guard: Guard | None = None
    final_query: ChooseFinalQuery | None = None


NO_OPTIONS = ReportOptions()


def report_task(run_id: str, attempt_id: str, report: Report, by: str, options: ReportOptions = NO_OPTIONS) -> bool:
    """Apply a worker's report to its attempt. Returns False if the attempt was resolved before; nothing changes then.

    Raises:
        Invalid: when the uploaded output is missing, invalid or too large.
        Forbidden: when the guard refuses the reporter.
    """
    with metrics.REPORT_SECONDS.measure() as measured:
        named: dict[tuple[str, str], str] = {}
        output_path = options.output_path
        if output_path:
            named[attempt_id, "output"] = output_path
            output = payload_storage.load_client_payload(output_path, conf.task_payload_max_bytes)
            report = replace(report, output=output)
        else:
            report = enforce_output_limit(report)
        change = RunCommand(
            run_id,
            redacted_report(attempt_id, report, named),
            by,
            attempts=[attempt_id],
            payload_paths=named,
            authorize=authorization(attempt_id, options.guard),
            write_logs=partial(write_redacted_logs, attempt_id, options.logs) if options.logs else None,
            final_query=options.final_query,
        )
        try:
            change_run(change)
        except AlreadyResolved:
            return False
        fault_points.reach("reported")
        measured.has_result = True
        return True


def release_claimed(attempt: store.ClaimedAttempt, worker: str) -> bool:
    """Return a claimed attempt to its queue, unfinished. Returns False if it was resolved before."""
    release = Report("IN_PROGRESS", worker=worker, merges=True, is_kept=False, lease=attempt.scheduled_at)
    return report_task(attempt.run_id, attempt.id, release, worker)


def authorization(attempt_id: str, guard: Guard | None) -> Callable[[Run], None] | None:
    """Return what checks the permission for an attempt. The task is loaded at that point, so it needs no query."""
    return None if guard is None else partial(require_permission, attempt_id, guard)


def require_permission(attempt_id: str, guard: Guard, run: Run) -> None:
    """Call the guard with the task of an attempt.

    Raises:
        AlreadyResolved: when the attempt has ended.
        Forbidden: when the guard refuses the reporter.
    """
    task = decide.require_open_task(run, attempt_id)
    attempt, name = task.attempt, task.step.name
    guard(task_target(attempt.queue, attempt.domain, name, run.id, run.definition.name))


def redacted_report(attempt_id: str, report: Report, uploads: dict[tuple[str, str], str] | None = None) -> Command:
    """Return the command that applies a report with the secrets that the reporter may know redacted.

    `uploads`: the paths of uploaded payloads. An output with a secret is stored redacted in place of the uploaded one.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterable[Effect]:
        redacted, values = report, secrets_to_redact(decide.require_open_task(run, attempt_id))
        if values is not None:
            redacted = redact_report(report, ctx.require(values).values())
            if uploads and redacted.output != report.output:
                uploads.clear()
        return decide.apply_report(attempt_id, redacted)(run, ctx, now)

    return command


def write_redacted_logs(
    attempt_id: str, logs: Sequence[tuple[str, int]], run: Run, data: Mapping[DataRequest, Any], now: int
) -> None:
    """Save the log lines of a report, with the secrets that its command has read redacted."""
    values = secrets_to_redact(decide.require_open_task(run, attempt_id))
    add_logs(attempt_id, logs, now, () if values is None else data[values].values())


def report_by_ref(run_id: str, ref: str, report: Report, by: str) -> str | None:
    """Report on the open task with this reference, in any iteration.

    Returns the attempt id, or None if the task has ended: a repeated report changes nothing.

    Raises:
        NotFound: when there is no such run, or it has no task with this reference.
    """
    found = find_open_task(run_id, ref)
    if found is None:
        parts = ref.split("__")
        tasks = Task.objects.filter(run_id=run_id, ref__in=["__".join(parts[: at + 1]) for at in range(len(parts))])
        if not any(ref in (task.ref, str(task)) for task in tasks):
            raise NotFound(f"Found no running task {ref} of workflow {run_id} to update")
    if found is None or not report_task(run_id, found.attempt_id, report, by):
        return None
    return found.attempt_id


def renew_lease(run_id: str, attempt_id: str, by: str, guard: Guard | None = None, worker: str = "") -> bool:
    """Extend the lease of an attempt, if it is open. Returns False if it has ended, or another worker has it.

    Raises:
        Forbidden: when the guard refuses the caller.
    """
    try:
        change_run(
            RunCommand(
                run_id,
                decide.renew_lease(attempt_id, worker),
                by,
                attempts=[attempt_id],
                authorize=authorization(attempt_id, guard),
            )
        )
    except AlreadyResolved:
        return False
    return True


def add_log(attempt_id: str, line: str) -> None:
    """Save a log line of a worker."""
    found = Attempt.objects.filter(pk=attempt_id[:64]).values_list("task__step_state", "queue", "domain").first()
    if found is None:
        raise NotFound(f"No such task found by id: {attempt_id}")
    step_state, queue, domain = found
    add_logs(attempt_id, [(line, clock.now())], clock.now(), secrets_of_log(step_state, queue, domain))


def add_logs(attempt_id: str, logs: Sequence[tuple[str, int]], now: int, secrets: Iterable[str] = ()) -> None:
    """Save the first log lines of a report with these secrets redacted. A line without a time gets `now`.

    Long lines are cut, because a report must not fail for them.
    """
    lines = [(_cut_line(redact_verbatim(line, secrets)), at or now) for line, at in logs[:LOGS_A_REPORT]]
    store.add_lines(attempt_id, lines)


def _cut_line(line: str) -> str:
    return line if len(line) <= MAX_LOG_LINE_LENGTH else f"{line[:MAX_LOG_LINE_LENGTH]}…"
