"""Handlers of outbox messages, by subject."""

from ..core import commands
from ..core.decide import child_ended, child_lost, no_command
from ..core.errors import Conflict, NotFound
from ..core.events import started_command
from ..core.states import RUN
from ..events.commands import handlers, intake
from ..payloads import commands as payloads
from ..runs.commands.change import RunCommand, change_run
from ..runs.commands.messages import Handler, register_handlers
from ..runs.commands.run_limits import admit, start_held_runs
from ..runs.documents import workflows as failed_execution
from ..runs.models import OVERDUE_RUN, OVERDUE_TASK, Attempt, Message, Run
from ..runs.store import data, due_rows, loading, outbox
from ..runs.store.data import load_child_result
from ..runs.store.loading import reason_not_to_begin
from ..tasks.commands.reports import add_logs
from ..utils import clock


def _begin_child(message: Message) -> None:
    """Take the first steps of a run that another run started. In a tree that has ended or is too large, end it."""
    if reason := reason_not_to_begin(message.to):
        change_run(RunCommand(message.to, commands.terminate_if_open(reason), "engine", reason, consumes=message.pk))
        return
    if message.facts.get("is_limited"):
        admit(message.to)
    if about := message.facts.get("about"):
        # Done before the first decision, because the first step may read it.
        _attach_failed_execution(message.to, about)
    change_run(RunCommand(message.to, commands.no_command, "engine", consumes=message.pk))


def _attach_failed_execution(run_id: str, about: str) -> None:
    """Put the failed execution into the input of its failure workflow (execution §6)."""
    if document := failed_execution.failed_execution_document(about):
        loading.set_input(run_id, {**payloads.load_stored_input(run_id), "failedWorkflow": document})


def _child_ended(message: Message) -> None:
    """Resolve the task that waits for a child run with the child's result."""
    _end_waiting_task(message, message.facts["child"], message.to, message.facts["attempt"])


def _end_waiting_task(message: Message, child_id: str, run_id: str, attempt: str) -> None:
    """Resolve the task that waits for this child with the child's result."""
    child = load_child_result(child_id, attempt)
    if not child.is_awaited:
        raise NotFound
    if child.status in RUN.open:
        # The child was reopened since. It sends this message again when it ends.
        outbox.consume(message.pk)
        return
    facts = {
        "id": child.id,
        "name": child.name,
        "version": child.version,
        "status": child.status,
        "reason": child.reason,
        "output": payloads.unmask_stored(child.output, child.output_path),
    }
    change_run(RunCommand(run_id, child_ended(attempt, facts), "engine", attempts=[attempt], consumes=message.pk))


def _resume_child(message: Message) -> None:
    """Resume a child run because its parent was reopened and waits for it.

    If the child cannot resume, the parent's task ends with the child's result. A deleted child is started again.
    """
    parent, attempt = message.facts["parent"], message.facts["attempt"]
    child = Run.objects.filter(pk=message.to).first()
    if child is None:
        change_run(
            RunCommand(parent, child_lost(attempt, message.to), "engine", attempts=[attempt], consumes=message.pk)
        )
    elif child.status in RUN.open or not is_awaited(message.to, attempt):
        outbox.consume(message.pk)
    else:
        reason = f"Its parent workflow {parent} was reopened."
        try:
            change_run(
                RunCommand(
                    message.to, commands.Retry(resumes=True, is_asked=True), "engine", reason, consumes=message.pk
                )
            )
        except Conflict:
            _end_waiting_task(message, child.id, parent, attempt)


def is_awaited(run_id: str, attempt_id: str) -> bool:
    """Return True if the attempt is open and waits for the run."""
    return bool(attempt_id) and Attempt.objects.open().filter(pk=attempt_id, child_id=run_id).exists()


def _terminate_child(message: Message) -> None:
    """Terminate a child run whose parent does not wait for it any more."""
    reason = message.facts.get("reason", "")
    awaited = Run.objects.filter(pk=message.to).values_list("parent_attempt_id", flat=True).first()
    if is_awaited(message.to, awaited or ""):
        # Both runs were reopened after this message was sent.
        outbox.consume(message.pk)
        return
    change_run(RunCommand(message.to, commands.terminate_if_open(reason), "engine", reason, consumes=message.pk))


def _child_reopened(message: Message) -> None:
    """Reopen the task that waits for a reopened child run."""
    attempt, child, how = (message.facts[name] for name in ("attempt", "child", "how"))
    repair = commands.ResumeParent(attempt, child, how, message.facts.get("asked") or {})
    note = f"Sub workflow {child} was {how}."
    change_run(
        RunCommand(
            message.to,
            repair,
            "engine",
            note,
            consumes=message.pk,
            within_transaction=lambda now: add_logs(attempt, [(note, now)], now),
        )
    )


def _publish_started(message: Message) -> None:
    """Publish the listener events of an attempt that a worker has claimed."""
    attempt = message.facts["attempt"]
    change_run(RunCommand(message.to, started_command(attempt), "engine", attempts=[attempt], consumes=message.pk))


def _start_held_runs(message: Message) -> None:
    """Start the earliest held runs of a run limit while there is room."""
    start_held_runs(message.facts["name"], message.facts["key"])
    outbox.consume(message.pk)


def _wake_inbox_step(message: Message) -> None:
    """Let the steps that wait for inbox messages read the inbox."""
    if attempts := data.inbox_readers(message.to):
        change_run(RunCommand(message.to, no_command, "engine", attempts=attempts, consumes=message.pk))
    else:
        outbox.consume(message.pk)


def _bring_timers_forward(message: Message) -> None:
    """Make timers due again that could not be handled, if an operator asks for it. Otherwise they were handled."""
    due_rows.bring_timers_forward(message, clock.now())
    outbox.consume(message.pk)


HANDLERS: dict[str, Handler] = {
    "begin": _begin_child,
    "child_ended": _child_ended,
    "child_reopened": _child_reopened,
    commands.RESUME: _resume_child,
    "terminate": _terminate_child,
    "release": _start_held_runs,
    "started": _publish_started,
    "event": intake.handle_internal_event,
    "act": handlers.run_action,
    "inbox": _wake_inbox_step,
    OVERDUE_RUN: _bring_timers_forward,
    OVERDUE_TASK: _bring_timers_forward,
}


def connect_handlers() -> None:
    """Register the handlers of all subjects."""
    register_handlers(HANDLERS)
