"""Data that a decision needs and the snapshot does not hold. The engine loads it and decides again."""

from dataclasses import dataclass
from typing import Any

from .definition import Key


@dataclass(frozen=True, slots=True)
class DataRequest:
    """One item of data. `is_lasting`: the value stays valid when other transactions change the run."""

    is_lasting = False


@dataclass(frozen=True, slots=True)
class WholeRun(DataRequest):
    """All tasks of the run: the snapshot must be read again in full."""


@dataclass(frozen=True, slots=True)
class TaskAt(DataRequest):
    """The task with this key. Value: Task, or None."""

    key: Key


@dataclass(frozen=True, slots=True)
class ReferencesInUse(DataRequest):
    """Those of the given references that have a task, in this iteration path or in any (None). Value: frozenset."""

    refs: frozenset[str]
    iteration_path: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class RunPayload(DataRequest):
    """The `input`, `output` or `variables` of the run."""

    part: str


@dataclass(frozen=True, slots=True)
class AttemptPayload(DataRequest):
    """The `input` or `output` of an attempt."""

    attempt_id: str
    part: str


@dataclass(frozen=True, slots=True)
class TaskPart(DataRequest):
    """The `input`, `output` or `facts` of the newest task of a reference. Value: JSON, or None.

    `facts` is an object with the field names that expressions use. `within`: the iteration path of the task, if an
    item of a FOR_EACH is meant. `is_deep`: the iteration path may continue after `within`.
    """

    ref: str
    part: str
    within: tuple[int, ...] = ()
    is_deep: bool = False


@dataclass(frozen=True, slots=True)
class JoinedOutcomes(DataRequest):
    """The outcomes of the tasks that a JOIN waits for, without those in `known`.

    Value: list of TaskOutcome; None while one of the tasks is open; ABSENT if fewer than `missing` of them exist.
    """

    join: Key
    known: frozenset[Key]
    missing: int


ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class IterationOutcomes(DataRequest):
    """The outcomes of the tasks in one iteration of a loop, without those in `known`.

    Value: list of TaskOutcome, or None while one of the tasks is open.
    """

    loop: Key
    iteration: int
    known: frozenset[Key]


@dataclass(frozen=True, slots=True)
class StepOutcomes(DataRequest):
    """The outcomes of the tasks of one step in all iterations of its loop, without those in `known`.

    Value: list of TaskOutcome.
    """

    loop: Key
    ref: str
    known: frozenset[Key]


@dataclass(frozen=True, slots=True)
class OpenTaskInside(DataRequest):
    """Whether a task is open in one iteration of a step, at any depth, besides those in `known`. Value: bool.

    `refs`: the steps inside the step.
    """

    scope: Key
    iteration: int
    refs: frozenset[str]
    known: frozenset[Key]


@dataclass(frozen=True, slots=True)
class ListItem(DataRequest):
    """One element of `items` in the input of an attempt, by its index from 0. Such a list never changes."""

    attempt_id: str
    index: int
    is_lasting = True


@dataclass(frozen=True, slots=True)
class RemainingTasks(DataRequest):
    """The tasks of the run besides those in `known`. Value: RemainingSummary."""

    known: frozenset[Key]


@dataclass(frozen=True, slots=True)
class LastOutput(DataRequest):
    """The output of the most recently created task, without those in `known`. Value: (seq, output)."""

    known: frozenset[Key]


@dataclass(frozen=True, slots=True)
class InboxMessages(DataRequest):
    """The oldest `count` inbox messages of the run with a number above `after`. Value: InboxBatch."""

    count: int
    after: int


@dataclass(frozen=True, slots=True)
class ScriptEvaluation(DataRequest):
    """The result of a script. Value: ScriptResult.

    `inputs`: JSON text of the object that the script reads as `$`, or, in Python, as variables. `definition`: the name
    of the workflow definition or event handler that it is part of. `starter_id`: of the run. Starters and their
    definitions share the helper processes fairly.
    """

    language: str
    source: str
    inputs: str
    definition: str = ""
    starter_id: int | str = 0
    is_lasting = True


@dataclass(frozen=True, slots=True)
class SchemaCheck(DataRequest):
    """The violations of a JSON schema by a value, both as JSON text. Value: pairs of path and message."""

    schema: str
    value: str
    is_lasting = True


@dataclass(frozen=True, slots=True)
class StoredPayloadContent(DataRequest):
    """A payload stored outside its row. The engine requests it on behalf of the core."""

    path: str
    is_lasting = True


@dataclass(frozen=True, slots=True)
class DefinitionByName(DataRequest):
    """The definition with this name and version (None: the newest). Value: Definition, or None."""

    name: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class InlineDefinition(DataRequest):
    """A definition inside an input. Value: Definition, or the error message.

    `document`: JSON text. `allowed_secrets`: the secrets that it may name, or None for those of its author.
    """

    document: str
    allowed_secrets: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class TaskDefinitionByName(DataRequest):
    """The task definition with this name, as a document. Value: dict, or None."""

    name: str


@dataclass(frozen=True, slots=True)
class CachedTaskOutput(DataRequest):
    """The cached output of tasks with this name, by the digest of its key. Value: an output, or None."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class CachedRunOutput(DataRequest):
    """The cached output of runs with this name, by the digest of its key. Value: (run id, output), or None."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class IdempotencyLookup(DataRequest):
    """The run of this definition that holds an idempotency key. Value: IdempotencyKeyHolder, or None."""

    name: str
    key: str


@dataclass(frozen=True, slots=True)
class ActiveDomains(DataRequest):
    """The domains in which workers recently polled for this task type. Value: frozenset of names."""

    task_type: str


@dataclass(frozen=True, slots=True)
class Environment(DataRequest):
    """The environment values by name (execution §9.2). Every run may read them."""


@dataclass(frozen=True, slots=True)
class SecretValues(DataRequest):
    """The values of secrets, which a report is searched for. Value: dict by name, without missing secrets."""

    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class RunLimitReached(DataRequest):
    """Whether the open runs of a definition with this rate limit key, besides this run, reach the limit. Value: bool.

    Runs that start with the same key are serialized until the commit.
    """

    name: str
    key: str
    limit: int


WORKFLOW_TARGET, CONNECTION_TARGET = "WORKFLOW_DEF", "INTEGRATION"
"""The target types of permissions on workflows and databases."""
PUBLIC_VARIABLES = ("NETFLIX_ENV", "NETFLIX_STACK")
"""The environment values that definitions may also read by their bare names."""


@dataclass(frozen=True, slots=True)
class UsePermission(DataRequest):
    """Whether the starter of the run may use an object that data names. Value: an error message, "" if it may.

    A name in a definition needs no such check: authors use what the server has.
    """

    target_type: str
    name: str


@dataclass(frozen=True, slots=True)
class IdempotencyKeyHolder:
    """Run with an idempotency key. `parent_task`: the task that waits or waited for it, if it still exists."""

    id: str
    status: str
    parent_id: str = ""
    parent_task: str = ""
    is_awaited: bool = False


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """Outcome of a task for joins and loops."""

    key: Key
    seq: int
    status: str
    reason: str
    name: str
    attempt_id: str
    lets_control_pass: bool
    output: Any


@dataclass(frozen=True, slots=True)
class InboxBatch:
    """Messages from a run's inbox.

    `up_to`: number of the last message, delivered or expired. `left`: number of messages after it.
    """

    messages: tuple[dict[str, Any], ...]
    up_to: int
    left: int


@dataclass(frozen=True, slots=True)
class RemainingSummary:
    """Tasks of a run that are not in the snapshot."""

    is_open: bool = False
    is_at_work: bool = False  # True if an open task does not merely wait for other tasks
    permissive_failures: tuple[tuple[str, str, str], ...] = ()  # attempt id, status, reason


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """Result of a script: its value, or its error."""

    value: Any = None
    error: str = ""
    timed_out: bool = False


class DataRequired(Exception):
    """A decision needs data that is not loaded."""

    def __init__(self, data_requests: set[DataRequest] | frozenset[DataRequest]) -> None:
        self.data_requests = frozenset(data_requests)
        super().__init__(self.data_requests)
