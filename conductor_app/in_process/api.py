"""The public functions: start, control and read workflows from the code of a Django project.

Each function is part of the caller's transaction if there is one: a workflow that is started within
`transaction.atomic()` exists if and only if the transaction commits, and its workers learn of it after the commit.
Without a transaction, each function commits on its own. All of them use the database of the app.

The module imports nothing of Django, so that models and `tasks.py` modules can import its functions at any time.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from .records import WorkflowRun

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser

IfExists = Literal["fail", "return", "fail_if_open"]
MAX_PRIORITY = 99
AUTHOR = "application"
"""The author of a change in the history, where the caller names none."""
_STRATEGIES = {"fail": "FAIL", "return": "RETURN_EXISTING", "fail_if_open": "FAIL_ON_RUNNING"}


def start_workflow(
    name: str,
    input: Mapping[str, Any] | None = None,
    *,
    version: int | None = None,
    correlation_id: str = "",
    idempotency_key: str | None = None,
    if_exists: IfExists = "fail",
    priority: int = 0,
    labels: Iterable[str] = (),
    starts_at: datetime | None = None,
    domains: Mapping[str, str] | None = None,
    definition: Mapping[str, Any] | None = None,
    by: "str | AbstractBaseUser" = AUTHOR,
) -> str:
    """Start a workflow, and return the id of its run.

    Within `transaction.atomic()`, the run exists if and only if the transaction commits. The id can be stored at once.

    `version`: of the definition, by default the newest. `idempotency_key`: at most one run of the workflow has it;
    `if_exists` says what happens if one does: "fail" raises Conflict, "return" returns the id of that run, and
    "fail_if_open" raises Conflict unless that run has ended. `starts_at`: the time of the first step; the run is
    created now. `domains`: the domain of the workers by task name. `definition`: a document to execute instead of a
    stored definition. `by`: a user, or a name, for the history.

    Raises:
        NotFound: when there is no such definition.
        ValidationFailed: when the document or the input violates a check or a schema.
        Invalid: when another value is invalid, or the input is too large.
        Conflict: when the idempotency key was used before, depending on `if_exists`.
        Busy: when concurrent starts with the same key prevent this one. Repeat the transaction.
    """
    from ..core.errors import Invalid
    from ..runs.commands.start import StartRequest, start_run

    if if_exists not in _STRATEGIES:
        raise Invalid(f"`if_exists` must be one of: {', '.join(_STRATEGIES)} (got {if_exists!r}).")
    if not 0 <= priority <= MAX_PRIORITY:
        raise Invalid(f"`priority` must be from 0 to {MAX_PRIORITY} (got {priority}).")
    request = StartRequest(
        _text(name, "name", 255),
        version,
        as_json(input, "input"),
        _text(correlation_id, "correlation_id", 512),
        priority,
        dict(domains or {}),
        None if definition is None else as_json(definition, "definition"),
        _text(idempotency_key or "", "idempotency_key", 255) or None,
        _STRATEGIES[if_exists],
        labels=tuple(labels),
        starts_at=milliseconds(starts_at),
    )
    with as_project():
        return start_run(request, _name_of(by))


def signal(
    run_id: str,
    output: Mapping[str, Any] | None = None,
    *,
    step: str = "",
    fails: bool = False,
    reason: str = "",
    by: "str | AbstractBaseUser" = AUTHOR,
) -> None:
    """Complete a task that waits in a workflow, with this output.

    `step`: the reference of the step; by default the first open WAIT task of the run or of its sub-workflows. `fails`:
    the task fails instead, with the reason.

    Raises:
        NotFound: when there is no such run, or no task of that step.
        Conflict: when no task waits.
        Invalid: when the output is not JSON.
    """
    from ..core.decide import Report
    from ..core.errors import NotAllowedInState
    from ..tasks.commands.reports import report_by_ref
    from ..tasks.commands.waits import signal_run

    report, author = Report("FAILED" if fails else "COMPLETED", as_json(output, "output"), reason), _name_of(by)
    with as_project():
        found = report_by_ref(run_id, step, report, author) if step else signal_run(run_id, report, author)
    if found is None:
        what = f"The task {step}" if step else "No task"
        raise NotAllowedInState(f"{what} of workflow {run_id} {'has ended' if step else 'waits for a signal'}.")


def pause(run_id: str, *, reason: str = "", by: "str | AbstractBaseUser" = AUTHOR) -> None:
    """Pause a workflow: it schedules nothing until it is resumed.

    Raises:
        NotFound: when there is no such run.
        Conflict: when the run is not running.
    """
    from ..runs.commands.control import pause_run

    with as_project():
        pause_run(run_id, _name_of(by), reason)


def resume(run_id: str, *, reason: str = "", by: "str | AbstractBaseUser" = AUTHOR) -> None:
    """Resume a paused workflow.

    Raises:
        NotFound: when there is no such run.
        Conflict: when the run is not paused.
    """
    from ..runs.commands.control import resume_run

    with as_project():
        resume_run(run_id, _name_of(by), reason)


def terminate(run_id: str, *, reason: str = "", by: "str | AbstractBaseUser" = AUTHOR) -> None:
    """Terminate a workflow: its open tasks are canceled and its sub-workflows terminated.

    Raises:
        NotFound: when there is no such run.
        Conflict: when the run is not open.
    """
    from ..runs.commands.control import terminate_run

    with as_project():
        terminate_run(run_id, _name_of(by), reason)


def retry(
    run_id: str, *, resume_children: bool = False, reason: str = "", by: "str | AbstractBaseUser" = AUTHOR
) -> None:
    """Try the failed tasks of an ended workflow again; with `resume_children` those of the sub-workflow that failed.

    Raises:
        NotFound: when there is no such run.
        Conflict: when the run is open or completed.
    """
    from ..runs.commands import repair

    with as_project():
        repair.retry(run_id, _name_of(by), reason, resume_children)


def rerun(
    run_id: str,
    *,
    step: str = "",
    input: Mapping[str, Any] | None = None,
    task_input: Mapping[str, Any] | None = None,
    reason: str = "",
    by: "str | AbstractBaseUser" = AUTHOR,
) -> None:
    """Continue an ended workflow from one of its steps, by default from the start.

    `step`: the reference of the step. `task_input`: another input for its task. `input`: another input of the workflow.

    Raises:
        NotFound: when there is no such run, or it has no task of that step.
        Conflict: when the run is open.
        Invalid: when an input is not JSON or too large, or `task_input` has no step.
    """
    from ..core.errors import Invalid
    from ..runs.commands import repair

    if task_input is not None and not step:
        raise Invalid("`task_input` requires `step`.")
    with as_project():
        repair.rerun(
            run_id,
            _name_of(by),
            reason,
            attempt_id=_newest_attempt(run_id, step) if step else "",
            task_input=None if task_input is None else as_json(task_input, "task_input"),
            input=None if input is None else as_json(input, "input"),
        )


def get_run(run_id: str, *, with_tasks: bool = False) -> WorkflowRun:
    """Return a workflow as it is now. Masked values are `***`.

    Raises:
        NotFound: when there is no such run.
        Busy: when the storage of large payloads cannot be reached.
    """
    from .reading import read_run

    _require_usable_transaction()
    return read_run(run_id, with_tasks)


def wait_for(run_id: str, timeout: float = 60.0, *, with_tasks: bool = False) -> WorkflowRun:
    """Wait until a workflow has ended, and return it. `timeout`: in seconds.

    Raises:
        NotFound: when there is no such run.
        TimeoutError: when the workflow has not ended within the timeout.
        TransactionManagementError: when it must wait within a transaction, in which it could not see the end.
    """
    from .reading import wait_until_ended

    _require_usable_transaction()
    return wait_until_ended(run_id, timeout, with_tasks)


@contextmanager
def as_project() -> Iterator[None]:
    """Act without the limits of a caller of the REST API: the code of the project is trusted."""
    from ..access.authentication import acting_as

    _require_usable_transaction()
    with acting_as(None):
        yield


def _require_usable_transaction() -> None:
    """Refuse a connection without autocommit outside of `atomic`: its transaction would be committed too early.

    Raises:
        TransactionManagementError: when the connection is in that state.
    """
    from django.db import connections
    from django.db.transaction import TransactionManagementError

    from ..db.database import alias

    connection = connections[alias()]
    if not connection.in_atomic_block and not connection.get_autocommit():
        raise TransactionManagementError(
            "Autocommit is off. Use transaction.atomic() for a transaction that includes workflows."
        )


def _name_of(by: "str | AbstractBaseUser") -> str:
    return (by if isinstance(by, str) else by.get_username()).replace("\0", "")[:255]


def _text(value: str, name: str, most: int) -> str:
    """Return a text that the database can store.

    Raises:
        Invalid: when it contains NUL or is too long.
    """
    from ..core.errors import Invalid

    if "\0" in value or len(value) > most:
        raise Invalid(f"`{name}` must have at most {most} characters, and no NUL.")
    return value


def milliseconds(moment: datetime | None) -> int:
    """Return a time in epoch milliseconds, 0 for None. A naive time is in the current time zone of Django."""
    from django.utils import timezone

    if moment is None:
        return 0
    aware = timezone.make_aware(moment) if timezone.is_naive(moment) else moment
    return round(aware.timestamp() * 1000)


def as_json(value: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    """Return a document as the plain values that the database will return: dates, UUIDs and decimals become texts.

    Raises:
        Invalid: when it is not a dictionary, or contains another type that JSON has no form for.
    """
    import json

    from django.core.serializers.json import DjangoJSONEncoder

    from ..core.errors import Invalid

    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Invalid(f"`{name}` must be a dictionary (got {type(value).__name__}).")
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(value), cls=DjangoJSONEncoder, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise Invalid(f"`{name}` is not JSON: {error}.") from None
    return plain


def _newest_attempt(run_id: str, step: str) -> str:
    from ..core.errors import NotFound
    from ..runs.documents.workflows import find_run
    from ..runs.models import Task

    find_run(run_id)
    tasks = Task.objects.filter(run_id=run_id).order_by("-seq")
    for task in tasks.filter(ref=step.split("__")[0]) if "__" in step else tasks.filter(ref=step):
        if str(task) == step or task.ref == step:
            return task.attempt_id
    raise NotFound(f"Workflow {run_id} has no task of the step {step!r}.")
