"""What the core cannot know and asks for. A decision that meets an unanswered question stops and hands it back."""

from dataclasses import dataclass
from typing import Any

from .definition import Key


@dataclass(frozen=True, slots=True)
class DataRequest:
    """One thing asked. `is_lasting`: its answer stays true when others change the run."""

    is_lasting = False


@dataclass(frozen=True, slots=True)
class WholeRun(DataRequest):
    """All tasks of the run are needed: read it anew as a whole."""


@dataclass(frozen=True, slots=True)
class TaskAt(DataRequest):
    """Is there a task with this key? Answer: the Task, or None."""

    key: Key


@dataclass(frozen=True, slots=True)
class ReferencesInUse(DataRequest):
    """Which of these references have a task already? `turn`: in this turn alone; None is any. Answer: frozenset."""

    refs: frozenset[str]
    iteration_path: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class RunPayload(DataRequest):
    """The run's `input`, `output` or `variables`."""

    part: str


@dataclass(frozen=True, slots=True)
class AttemptPayload(DataRequest):
    """The `input` or `output` of one attempt."""

    attempt_id: str
    part: str


@dataclass(frozen=True, slots=True)
class TaskPart(DataRequest):
    """The `input`, `output` or `facts` (names as expressions spell them) of a reference's newest task, else None.

    `within`: its turns, where only one item of a FOR_EACH is looked at; `is_deep`: those with which its turns begin.
    """

    ref: str
    part: str
    within: tuple[int, ...] = ()
    is_deep: bool = False


@dataclass(frozen=True, slots=True)
class JoinedOutcomes(DataRequest):
    """What the tasks joined by this JOIN came to, those with the `known` keys left out.

    Answer: a list of Outcome; None as long as one of them is open; ABSENT where fewer than `missing` exist.
    """

    join: Key
    known: frozenset[Key]
    missing: int


ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class IterationOutcomes(DataRequest):
    """What the tasks in one turn of a loop came to, those with the `known` keys left out.

    Answer: a list of Outcome, or None as long as one of them is open.
    """

    loop: Key
    iteration: int
    known: frozenset[Key]


@dataclass(frozen=True, slots=True)
class StepOutcomes(DataRequest):
    """What the tasks of one step came to in all turns of the loop around it, those with the `known` keys left out.

    Answer: a list of Outcome.
    """

    loop: Key
    ref: str
    known: frozenset[Key]


@dataclass(frozen=True, slots=True)
class OpenTaskInside(DataRequest):
    """Is a task open in one turn of a step, however deep, besides the `known` ones? `refs`: the steps inside it."""

    scope: Key
    iteration: int
    refs: frozenset[str]
    known: frozenset[Key]


@dataclass(frozen=True, slots=True)
class ListItem(DataRequest):
    """One of the `items` in the input of an attempt, counted from 0. Such a list never changes."""

    attempt_id: str
    index: int
    is_lasting = True


@dataclass(frozen=True, slots=True)
class RemainingTasks(DataRequest):
    """Is any task open besides the `known` ones? Answer: Remainder."""

    known: frozenset[Key]


@dataclass(frozen=True, slots=True)
class LastOutput(DataRequest):
    """The output of the task created last, those with the `known` keys left out. Answer: (seq, output)."""

    known: frozenset[Key]


@dataclass(frozen=True, slots=True)
class InboxMessages(DataRequest):
    """The oldest `count` messages to the run, of those with a number above `after`. Answer: Taken."""

    count: int
    after: int


@dataclass(frozen=True, slots=True)
class ScriptEvaluation(DataRequest):
    """The value of a script. `inputs`: JSON text of what the script calls `$`; in Python its members are variables.

    Answer: ScriptAnswer.
    """

    language: str
    source: str
    inputs: str
    is_lasting = True


@dataclass(frozen=True, slots=True)
class SchemaCheck(DataRequest):
    """A value held against a JSON schema; both are JSON text. Answer: pairs of place and complaint, none if it fits."""

    schema: str
    value: str
    is_lasting = True


@dataclass(frozen=True, slots=True)
class StoredPayloadContent(DataRequest):
    """A payload that is kept outside the rows. It is asked by the engine on the core's behalf."""

    path: str
    is_lasting = True


@dataclass(frozen=True, slots=True)
class DefinitionByName(DataRequest):
    """The definition with this name and version (None: the newest). Answer: Definition, or None."""

    name: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class InlineDefinition(DataRequest):
    """A definition given in place. `document`: JSON text. Answer: Definition, or the text of the complaint."""

    document: str


@dataclass(frozen=True, slots=True)
class TaskDefinitionByName(DataRequest):
    """The task definition with this name, as a document. Answer: dict, or None."""

    name: str


@dataclass(frozen=True, slots=True)
class CachedTaskOutput(DataRequest):
    """The kept result of tasks of this name, by the digest of its key. Answer: an output, or None."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class CachedRunOutput(DataRequest):
    """The kept output of runs of this name, by the digest of its key. Answer: (run id, output), or None."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class IdempotencyLookup(DataRequest):
    """The run of this definition that holds an idempotency key. Answer: KeyHolder, or None."""

    name: str
    key: str


@dataclass(frozen=True, slots=True)
class ActiveDomains(DataRequest):
    """The domains in which a worker has lately polled for this task type. Answer: frozenset of names."""

    task_type: str


@dataclass(frozen=True, slots=True)
class Environment(DataRequest):
    """An allowed environment value (execution §9.2), or None. An empty name asks for all of them."""

    name: str


@dataclass(frozen=True, slots=True)
class IdempotencyKeyHolder:
    """A run with an idempotency key. `parent_task`: the task that waits or waited for it, if it is still there."""

    id: str
    status: str
    parent_id: str = ""
    parent_task: str = ""
    is_awaited: bool = False


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """What a finished task came to, as joins and loops want to know it."""

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
    """Messages from a run's inbox. `up_to`: the last of them, or of those too old; `left`: how many follow."""

    messages: tuple[dict[str, Any], ...]
    up_to: int
    left: int


@dataclass(frozen=True, slots=True)
class RemainingSummary:
    """What is left in a run besides the tasks already known."""

    is_open: bool = False
    is_at_work: bool = False  # one is open that does not just wait for others
    permissive_failures: tuple[tuple[str, str, str], ...] = ()  # attempt id, status, reason


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """What a script came to."""

    value: Any = None
    error: str = ""
    timed_out: bool = False


class DataRequired(Exception):
    """Raised where a decision cannot go on without answers."""

    def __init__(self, data_requests: set[DataRequest] | frozenset[DataRequest]) -> None:
        self.data_requests = frozenset(data_requests)
        super().__init__(self.data_requests)
