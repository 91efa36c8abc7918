"""Declare functions of a Django project as workers.

The module imports nothing of Django, so that a project can use the decorator in any module.
"""

import functools
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ..utils import process_state
from ..utils.process_state import Wiring

if TYPE_CHECKING:
    from ..core.decide import Report
    from ..tasks.store import ClaimedAttempt

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
DEFAULT_RETRIES = 3
DEFAULT_RETRY_SECONDS = 5
DEFAULT_LEASE_SECONDS = 60
POSITIONAL_ONLY = inspect.Parameter.POSITIONAL_ONLY
VAR_KEYWORD, VAR_POSITIONAL = inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL


class TaskFailed(Exception):
    """Raised by a function whose task must fail. Any other exception fails it as well, and the task is retried.

    `retries`: False if no further attempt would succeed. `output`: stored with the failed attempt.
    """

    def __init__(self, reason: str, *, retries: bool = False, output: Mapping[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.reason, self.retries, self.output = reason, retries, dict(output or {})


class TaskPostponed(Exception):
    """Raised by a function whose task must wait in its queue for some seconds, such as for another system.

    It is not a failure, and does not count as a retry.
    """

    def __init__(self, seconds: int, reason: str = "") -> None:
        super().__init__(reason)
        self.seconds, self.reason = seconds, reason


class TaskContext:
    """The task that a function executes. A function gets it in a parameter that is annotated with this class.

    `run_id`, `workflow`: of the workflow. `step`: the reference of the step. `attempt`: the number of the attempt, from
    one. `input`: the whole input of the task.
    """

    def __init__(
        self, *, run_id: str, workflow: str, step: str, attempt_id: str, attempt: int, input: Mapping[str, Any]
    ) -> None:
        self.run_id, self.workflow, self.step = run_id, workflow, step
        self.attempt_id, self.attempt, self.input = attempt_id, attempt, input
        self.is_canceled = False
        """True if the task has ended without this function, for example because its workflow was terminated. The result
        of the function is discarded."""

    def log(self, line: str) -> None:
        """Add a line to the log of the task. Within the transaction of an atomic function, it is undone with it."""
        from ..tasks.commands.reports import add_log

        add_log(self.attempt_id, line)


@dataclass(frozen=True)
class WorkerTask:
    """A function that executes the tasks of one name. Durations are in seconds; 0 is off.

    `on_end`: called with the report of an attempt after it is stored.
    """

    name: str
    function: Callable[..., Any]
    atomic: bool = False
    domain: str = ""
    retries: int = DEFAULT_RETRIES
    retry_seconds: int = DEFAULT_RETRY_SECONDS
    lease_seconds: int = DEFAULT_LEASE_SECONDS
    timeout_seconds: int = 0
    parameters: Mapping[str, inspect.Parameter] = field(default_factory=dict)
    on_end: "Callable[[Report], None] | None" = None

    def for_attempt(self, attempt: "ClaimedAttempt") -> "WorkerTask":
        """Return what executes a claimed attempt of the queue."""
        return self

    @property
    def queue(self) -> str:
        """Return the queue that the function serves."""
        return f"{self.domain}:{self.name}" if self.domain else self.name

    @property
    def place(self) -> str:
        """Return the full name of the function, with the line of a lambda, because those of a module share a name."""
        function = plain_function(self.function)
        line = f":{function.__code__.co_firstlineno}" if function.__name__ == "<lambda>" else ""
        return f"{function.__module__}.{function.__qualname__}{line}"

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(plain_function(self.function))

    @property
    def definition(self) -> dict[str, Any]:
        """Return the task definition that the arguments of the decorator describe."""
        return {
            "name": self.name,
            "description": (inspect.getdoc(plain_function(self.function)) or "").partition("\n")[0],
            "retryCount": self.retries,
            "retryLogic": "FIXED",
            "retryDelaySeconds": self.retry_seconds,
            "responseTimeoutSeconds": self.lease_seconds,
            "timeoutSeconds": self.timeout_seconds,
            "timeoutPolicy": "RETRY",
        }

    def arguments(self, context: TaskContext) -> dict[str, Any]:
        """Return the arguments of the function: the values of the input by name, and the context.

        Raises:
            TaskFailed: when the input lacks a parameter without a default.
        """
        accepts_all = any(each.kind is VAR_KEYWORD for each in self.parameters.values())
        named = {name for name, each in self.parameters.items() if each.kind is not VAR_KEYWORD}
        contexts = set(self._context_parameters())
        found = {name: value for name, value in context.input.items() if accepts_all or name in named}
        missing = [
            name for name in named - contexts - found.keys() if self.parameters[name].default is inspect.Parameter.empty
        ]
        if missing:
            raise TaskFailed(f"The input lacks what the task {self.name} requires: {', '.join(sorted(missing))}.")
        return found | dict.fromkeys(contexts, context)

    def _context_parameters(self) -> Iterator[str]:
        try:
            annotations = typing.get_type_hints(plain_function(self.function))
        except NameError:
            # An annotation of another parameter names what is imported for type checkers only.
            annotations = {name: each.annotation for name, each in self.parameters.items()}
        for name in self.parameters:
            if annotations.get(name) in (TaskContext, "TaskContext"):
                yield name


_registered: Wiring[Mapping[str, WorkerTask]] = process_state.wiring({})


def worker_task(
    name: str,
    *,
    atomic: bool = False,
    domain: str = "",
    retries: int = DEFAULT_RETRIES,
    retry_seconds: int = DEFAULT_RETRY_SECONDS,
    lease_seconds: int = DEFAULT_LEASE_SECONDS,
    timeout_seconds: int = 0,
) -> Callable[[FunctionT], FunctionT]:
    """Let a function execute the tasks of a name, in the processes of `manage.py conductor_worker`.

    The function gets the values of the task's input as keyword arguments, and returns its output: a dictionary,
    nothing, or another value, which becomes `{"result": value}`. It stays callable as before.

    `atomic`: the function and the report of its result are one transaction of the database of the app: what it writes
    there exists if and only if it has completed the task. `domain`: only tasks of that domain. The others are the task
    definition, which `conductor_worker` creates if there is none of this name: `lease_seconds` is the time after which
    a task is given to another process if this one does not respond; a running process extends it.

    Raises:
        ValueError: when the name or a duration is invalid, or another function has the name.
        TypeError: when the object is no function that returns, an atomic one is asynchronous, or a parameter cannot be
            passed by name.
    """
    if not name or ":" in name or "\0" in name or len(name) > 255:
        raise ValueError(f"The name of a task must have 1 to 255 characters and no colon (got {name!r}).")
    require_durations(
        name,
        retries=retries,
        retry_seconds=retry_seconds,
        lease_seconds=lease_seconds,
        timeout_seconds=timeout_seconds,
    )

    def register(function: FunctionT) -> FunctionT:
        parameters = _parameters_of(function, name)
        task = WorkerTask(
            name, function, atomic, domain, retries, retry_seconds, lease_seconds, timeout_seconds, parameters
        )
        if atomic and task.is_async:
            raise TypeError(f"The task {name} is atomic: its function must not be asynchronous.")
        if unnamed := [each.name for each in parameters.values() if each.kind in (POSITIONAL_ONLY, VAR_POSITIONAL)]:
            raise TypeError(f"The task {name} cannot pass the parameter {unnamed[0]} by name.")
        earlier = _registered.value.get(task.queue)
        if earlier is not None and earlier.place != task.place:
            raise ValueError(f"The tasks {task.queue} have two functions: {earlier.place}, {task.place}.")
        _registered.value = {**_registered.value, task.queue: task}
        return function

    return register


def plain_function(function: Any) -> Any:
    """Return the function whose code is executed: that of a method, a partial or an object that can be called."""
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    return function if inspect.isroutine(function) else type(function).__call__


def _parameters_of(function: Any, name: str) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of what will execute the tasks of a name.

    Raises:
        TypeError: when it cannot.
    """
    if isinstance(function, type) or not callable(function):
        raise TypeError(f"The task {name} needs a function (got {function!r}).")
    plain = plain_function(function)
    if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
        raise TypeError(f"The function of the task {name} must return its output instead of yielding values.")
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        raise TypeError(f"The parameters of {function!r} for the task {name} are unknown. Use a function.") from None
    owner = function.__qualname__.rpartition(".")[0] if inspect.isfunction(function) else ""
    if next(iter(parameters), "") in ("self", "cls") and owner and not owner.endswith("<locals>"):
        raise TypeError(
            f"The task {name} needs a function, but {function.__qualname__} is a method. "
            "Use a function outside of the class, or pass a bound method: worker_task(…)(instance.method)."
        )
    return parameters


def require_durations(name: str, **values: int) -> None:
    """Check the numbers of retries and the durations of a task.

    Raises:
        ValueError: when one is not a whole number, is negative, or contradicts another one.
    """
    for what, value in values.items():
        least = 1 if what == "lease_seconds" else 0
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"`{what}` of the task {name} must be a whole number of at least {least} (got {value!r}).")
    if values["timeout_seconds"] and values["lease_seconds"] > values["timeout_seconds"]:
        raise ValueError(f"`lease_seconds` of the task {name} must not exceed `timeout_seconds`.")


def find_tasks() -> dict[str, WorkerTask]:
    """Return the functions by the queues that they serve."""
    return dict(_registered.value)
