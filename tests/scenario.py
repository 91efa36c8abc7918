"""Runs of the real engine on a real database.

- `Scenario(clock, step("a"))` registers a definition and starts a run of it, with workers, operators and simulated
  time.
- `define_task`, `define_workflow`, `start_run`, `claim_next` and `claim_and_report` do one thing each, for tests of
  what pages and the API show of stored runs.
"""

from collections.abc import Iterable
from typing import Any

from django.test import TestCase

from conductor_app.core.decide import Report
from conductor_app.core.decision_context import conductor_status
from conductor_app.definitions import commands as definition_commands
from conductor_app.definitions import validation
from conductor_app.processes import sweeps
from conductor_app.runs.commands import control, repair
from conductor_app.runs.commands import start as run_starts
from conductor_app.runs.commands.start import StartRequest
from conductor_app.runs.models import Attempt, Run, Task
from conductor_app.runs.store import due_rows
from conductor_app.tasks.commands import reports as task_commands
from conductor_app.tasks.commands.claims import claim_tasks
from conductor_app.tasks.queries.waiting import GateVerdict, verdicts_on
from conductor_app.tasks.store import ClaimedAttempt
from conductor_app.utils import clock as product_clock
from tests.builders import Document, definition

ACTOR = "ann"


def run_commit_hooks():
    """Run commit hooks at the end of the block, although the test's own transaction stays open."""
    return TestCase.captureOnCommitCallbacks(execute=True)


def register_definitions(*documents: Document, tasks: Iterable[Document] = ()) -> None:
    """Keep task definitions, then workflow definitions."""
    if policies := list(tasks):
        definition_commands.save_tasks(policies, ACTOR)
    for document in documents:
        assert not (validation_errors := validation.validate_workflow(document)), validation_errors
        definition_commands.save_workflow(document, ACTOR, overwrite=True)


def define_task(name: str, **fields: Any) -> None:
    """Keep a task definition; by default with timeouts as in production, and three retries."""
    timeouts = {"timeoutSeconds": 3600, "responseTimeoutSeconds": 600, "ownerEmail": "team@example.com"}
    definition_commands.save_task({"name": name, **timeouts, **fields}, ACTOR)


def define_workflow(name: str, *steps: Document | list[Document], **fields: Any) -> None:
    """Keep a workflow definition with these steps."""
    register_definitions(definition(*steps, name=name, **fields))


def start_run(name: str, **request: Any) -> Run:
    """Start a run of a registered workflow."""
    return Run.objects.get(pk=run_starts.start_run(StartRequest(name=name, **request), ACTOR))


def start_run_of(*steps: Document | list[Document], name: str = "order", **request: Any) -> Run:
    """Register a workflow with these steps and start a run of it."""
    define_workflow(name, *steps)
    return start_run(name, **request)


def claim_next(queue: str, worker: str = "w7") -> ClaimedAttempt | None:
    """Claim the next attempt of the queue; return None if there is none."""
    claimed = claim_tasks(queue, worker=worker, wait_ms=0)
    return claimed[0] if claimed else None


def claim_and_report(queue: str, outcome: str = "COMPLETED", worker: str = "w7", **fields: Any) -> None:
    """Claim the next attempt of the queue and report on it."""
    attempt = claim_next(queue, worker)
    assert attempt is not None, f"no attempt is pending in queue {queue}"
    task_commands.report_task(attempt.run_id, attempt.id, Report(outcome, **fields), worker)


def newest_attempt_of(run: Run, ref: str) -> Attempt:
    """Return the newest attempt of a task by its reference, in any iteration."""
    return Attempt.objects.filter(run=run, task__ref=ref).order_by("-number").first()


def reload_run(run: Run) -> Run:
    """Read the run from the database again."""
    return Run.objects.get(pk=run.pk)


def explain_attempt(attempt_id: str) -> list[GateVerdict]:
    """Return the verdicts on an attempt by id. Empty if it is not pending."""
    attempt = Attempt.objects.defer_payloads().select_related("run").filter(pk=attempt_id).first()
    return verdicts_on(attempt, product_clock.now()) if attempt else []


class RunView:
    """One run as clients and operators see it."""

    def __init__(self, run_id: str) -> None:
        self.id = run_id

    @property
    def row(self) -> Run:
        return Run.objects.get(pk=self.id)

    @property
    def status(self) -> str:
        return Run.objects.values_list("status", flat=True).get(pk=self.id)

    @property
    def output(self) -> dict[str, Any]:
        return self.row.output

    @property
    def reason(self) -> str:
        return self.row.reason

    @property
    def statuses(self) -> dict[str, str]:
        """Return each task's status as clients see it, in order of creation."""
        rows = self._tasks()
        return {str(task): conductor_status(attempt.status, task.status) for task, attempt in rows}

    def _tasks(self) -> list[tuple[Task, Attempt]]:
        found = list(Task.objects.filter(run_id=self.id).order_by("seq"))
        attempts = Attempt.objects.in_bulk([task.attempt_id for task in found])
        return [(task, attempts[task.attempt_id]) for task in found]

    def task(self, ref: str) -> Attempt:
        """Return the newest attempt of a task, by reference and iteration: `pay`, `pay__2`."""
        return next(attempt for task, attempt in self._tasks() if str(task) == ref)

    def attempts(self, ref: str) -> list[str]:
        """Return the statuses of all attempts of a task, oldest first."""
        [task] = [task for task, _ in self._tasks() if str(task) == ref]
        return [conductor_status(a.status, task.status) for a in task.attempts.order_by("number")]

    def is_waiting_for(self, ref: str) -> bool:
        """Return whether the task is open."""
        return any(str(task) == ref and task.status == "ACTIVE" for task, _ in self._tasks())

    def child(self, ref: str) -> "RunView":
        """Return the child run of this task."""
        return RunView(self.task(ref).child_id)

    def reports(self, ref: str, outcome: str = "COMPLETED", **output: Any) -> bool:
        """Report on a task by its reference, without a worker. Return whether the report was accepted."""
        with run_commit_hooks():
            return bool(task_commands.report_by_ref(self.id, ref, Report(outcome, output), ACTOR))

    def pause(self) -> None:
        with run_commit_hooks():
            control.pause_run(self.id, ACTOR)

    def resume(self) -> None:
        with run_commit_hooks():
            control.resume_run(self.id, ACTOR)

    def terminate(self, reason: str = "", with_failure: bool = False) -> None:
        with run_commit_hooks():
            control.terminate_run(self.id, ACTOR, reason, with_failure)

    def retry(self, **said: Any) -> None:
        with run_commit_hooks():
            repair.retry(self.id, ACTOR, **said)

    def restart(self, **said: Any) -> None:
        with run_commit_hooks():
            repair.restart(self.id, ACTOR, **said)

    def rerun(self, ref: str = "", **said: Any) -> None:
        """Rerun from a task of this run, or from its start."""
        self.rerun_from(self.task(ref).id if ref else "", **said)

    def rerun_from(self, attempt_id: str, **said: Any) -> None:
        """Rerun from a task of this run or of a descendant."""
        with run_commit_hooks():
            repair.rerun(self.id, ACTOR, attempt_id=attempt_id, **said)

    def skip(self, ref: str, input: dict[str, Any] | None = None, output: dict[str, Any] | None = None) -> None:
        with run_commit_hooks():
            repair.skip_step(self.id, ref, ACTOR, input=input, output=output)

    def upgrade(self, *steps: Document | list[Document], version: int = 2, **asked: Any) -> None:
        """Register another version of its definition with these steps and move the run to it."""
        register_definitions(definition(*steps, name=self.row.name, version=version))
        with run_commit_hooks():
            repair.upgrade_run(self.id, self.row.name, version, ACTOR, **asked)

    def jump(self, ref: str, **input: Any) -> None:
        with run_commit_hooks():
            repair.jump_to_step(self.id, ref, ACTOR, input=input)


class Scenario(RunView):
    """A definition is registered with its policies, and a run of it started."""

    def __init__(
        self,
        clock: Any,
        *steps: Document | list[Document],
        tasks: Iterable[Document] = (),
        others: Iterable[Document] = (),
        input: dict[str, Any] | None = None,
        start: dict[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        """Register the definitions and start a run.

        `fields` belong to the definition, `start` to the request; `others` are child definitions.
        """
        self.clock, self._workers = clock, {}
        document = definition(*steps, **fields)
        register_definitions(*others, document, tasks=tasks)
        self.began = clock.now()
        super().__init__(self.starts(document["name"], input, **(start or {})).id)

    def starts(self, name: str, input: dict[str, Any] | None = None, **request: Any) -> RunView:
        """Start another run."""
        with run_commit_hooks():
            return RunView(run_starts.start_run(StartRequest(name, input=input or {}, **request), ACTOR))

    def worker(self, task_type: str, id: str = "worker", domain: str = "") -> "Worker":
        """Return the worker of this type; the same object on each call."""
        return self._workers.setdefault((task_type, id, domain), Worker(task_type, id, domain))

    def complete(self, *task_types: str) -> "Scenario":
        """Let workers complete one task of each type, in this order. The output names the type."""
        for task_type in task_types:
            self.worker(task_type).completes(by=task_type)
        return self

    def later(self, seconds: float) -> "Scenario":
        """Advance the time; due timers are handled on time."""
        until = self.clock.now() + round(seconds * 1000)
        while (moment := due_rows.next_due_moment()) is not None and moment <= until:
            self._at(moment)
            if not self._sweep():
                break
        self._at(until)
        self._sweep()
        return self

    def at(self, seconds: float) -> "Scenario":
        """Advance the time to this many seconds after the start."""
        return self.later(seconds - (self.clock.now() - self.began) / 1000)

    def _at(self, moment: int) -> None:
        self.clock.advance(seconds=max(moment - self.clock.now(), 0) / 1000)

    def _sweep(self) -> int:
        with run_commit_hooks():
            return sweeps.sweep_once()

    def queue(self, queue: str) -> list[str]:
        """Return the references of the tasks that a worker would be given, in order."""
        found = Attempt.objects.pending(queue).filter(visible_at__lte=self.clock.now()).select_related("task")
        return [f"{a.task}, attempt {a.number + 1}" for a in found.order_by("-priority", "visible_at", "id")]

    def seconds(self, moment: int | None) -> float | None:
        """Return a moment in seconds since the start."""
        return None if moment is None else (moment - self.began) / 1000


class Worker:
    """Polls one queue, holds at most one attempt, and reports on it."""

    def __init__(self, task_type: str, id: str, domain: str) -> None:
        self.task_type, self.id, self.domain = task_type, id, domain
        self.held: Attempt | None = None

    def polls(self, count: int = 1) -> list[str]:
        """Poll and return the references; the worker keeps the first task."""
        with run_commit_hooks():
            taken = claim_tasks(self.task_type, worker=self.id, domain=self.domain, count=count, wait_ms=0)
        self.held = taken[0] if taken else self.held
        return [str(attempt.task) for attempt in taken]

    def says(self, outcome: str, output: dict[str, Any] | None = None, reason: str = "", **said: Any) -> bool:
        """Report on the claimed task, after a poll if there is none. Return whether the report was accepted."""
        if self.held is None:
            assert self.polls(), f"nothing waits for a worker of {self.task_type}"
        report = Report(outcome, output or {}, reason, worker=self.id, **said)
        with run_commit_hooks():
            is_accepted = task_commands.report_task(self.held.run_id, self.held.id, report, ACTOR)
        self._last, self.held = self.held, None
        return is_accepted

    def completes(self, **output: Any) -> bool:
        return self.says("COMPLETED", output)

    def fails(self, reason: str = "no luck") -> bool:
        return self.says("FAILED", reason=reason)

    def fail_terminally(self, reason: str = "no luck at all") -> bool:
        return self.says("FAILED_FOR_GOOD", reason=reason)

    def in_progress(self, callback_seconds: int = 0, **output: Any) -> bool:
        return self.says("IN_PROGRESS", output, callback_seconds=callback_seconds)

    def extend_lease(self) -> None:
        """Extend the lease of the claimed task."""
        with run_commit_hooks():
            task_commands.renew_lease(self.held.run_id, self.held.id, ACTOR)

    def report_again(self, outcome: str = "COMPLETED", **output: Any) -> bool:
        """Repeat a report on the last reported attempt."""
        with run_commit_hooks():
            return task_commands.report_task(self._last.run_id, self._last.id, Report(outcome, output), ACTOR)
