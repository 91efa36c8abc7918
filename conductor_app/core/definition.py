"""Workflow definitions, steps and policies as frozen values, and what step types declare about the steps of documents.

A step type states its bodies, its fields and how control flows through it in its own module, without a run. Validation,
layout, lint, diagrams and commands read that here, so they support a new type as soon as it is registered.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple, TypeGuard

from .primitives import JsonValue

RETRY, TIME_OUT_RUN, ALERT_ONLY = "RETRY", "TIME_OUT_WF", "ALERT_ONLY"
FIXED, LINEAR, EXPONENTIAL = "FIXED", "LINEAR_BACKOFF", "EXPONENTIAL_BACKOFF"


class Key(NamedTuple):
    """Identity of a task in its run: the step's reference and the iteration of each loop around it, outermost first."""

    ref: str
    iteration_path: tuple[int, ...] = ()

    def __str__(self) -> str:
        return "__".join((self.ref, *map(str, self.iteration_path)))


MAX_ITERATIONS_IN_NAME = 60
ITERATION_SUFFIX = re.compile(r"(.+)__(\d{1,9})", re.DOTALL)


def possible_keys(name: str) -> Iterator[Key]:
    """Yield the keys that a task's name may stand for: `a__2` itself, or `a` in iteration 2, if both may exist."""
    key = Key(name)
    yield key
    while len(key.iteration_path) < MAX_ITERATIONS_IN_NAME and (found := ITERATION_SUFFIX.fullmatch(key.ref)):
        key = Key(found[1], (int(found[2]), *key.iteration_path))
        yield key


@dataclass(frozen=True, slots=True)
class Schema:
    """JSON schema of a payload, as text. The text is empty if the document names a schema that does not exist."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Policy:
    """Retries, delays, timeouts and limits of a task. Durations are in seconds unless named otherwise; 0 is off."""

    name: str = ""
    retries: int = 0
    logic: str = FIXED
    delay_seconds: int = 60
    scale: int = 1
    max_delay_seconds: int = 0
    jitter_ms: int = 0
    total_seconds: int = 0
    timeout_seconds: int = 0
    lease_seconds: int = 0
    poll_seconds: int = 0
    timeout_policy: str = TIME_OUT_RUN
    concurrent_limit: int = 0
    rate_count: int = 0
    rate_seconds: int = 1
    input_template: Mapping[str, Any] = field(default_factory=dict)
    input_schema: Schema | None = None
    output_schema: Schema | None = None
    requeues_on_lost_lease: bool = False  # a lost lease is not a failure: a built-in worker's process stopped
    isolation_group: str = ""  # only built-in workers that serve this group execute it,
    name_space: str = ""  # or only the part of the installation with this name


@dataclass(frozen=True, eq=False)
class Step:
    ref: str
    name: str
    type: str
    document: Mapping[str, Any]
    policy: Policy
    inputs: Mapping[str, Any] = field(default_factory=dict)
    follower: str | None = None
    bodies: Mapping[str, str | None] = field(default_factory=dict)
    """The reference of the first step of each body, by the name of the body; None if it is empty."""
    heads: tuple[str, ...] = ()
    """References of the first steps of the bodies that are not empty."""
    loops: tuple[str, ...] = ()
    inside: frozenset[str] = frozenset()
    joins: tuple[str, ...] = ()
    joined_by: tuple[str, ...] = ()
    optional: bool = False
    permissive: bool = False
    start_delay: int = 0
    async_complete: bool = False
    secrets: frozenset[str] = frozenset()  # secrets that the author names in the inputs; data cannot name any
    runtime_metadata: tuple[str, ...] = ()  # secrets and variables that the task definition requests for its tasks
    is_authored: bool = True  # part of a saved or given definition, not produced by an input or an output
    is_named_by_input: bool = False  # a DYNAMIC step with the type and the name of the task that its input named

    @property
    def is_fatal(self) -> bool:
        """Return True if the failure of this step fails the run."""
        return not (self.optional or self.permissive)


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits that stop a run which would never end. 0 means no limit.

    `max_depth`: levels of sub-workflows and failure workflows below a started run. `max_tasks`: tasks and retries that
    a run creates. `max_iterations`: iterations of one loop. `max_history`: decisions about a run, of which each is an
    entry of its history. `max_value_bytes`: the size of a value that expressions compose. `max_forked_tasks`: branches
    of one dynamic fork.
    """

    max_depth: int = 100
    max_tasks: int = 200_000
    max_iterations: int = 100_000
    max_history: int = 500_000
    max_value_bytes: int = 0
    max_forked_tasks: int = 10_000


DEFAULT_LIMITS = RunLimits()


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """Parsed definition of a workflow. It never changes."""

    name: str
    version: int
    document: Mapping[str, Any]
    steps: Mapping[str, Step]
    first: str | None
    hash: str = ""
    timeout_seconds: int = 0
    times_out: bool = False
    output_parameters: Mapping[str, Any] = field(default_factory=dict)
    has_permissive: bool = False
    input_schema: Schema | None = None
    output_schema: Schema | None = None
    publishes_listener_events: bool = False  # a listener is subscribed to its runs or tasks
    publishes_task_events: bool = False  # the server's listener receives every change of a task's status
    limits: RunLimits = DEFAULT_LIMITS
    allowed_secrets: frozenset[str] | None = None  # the secrets that its steps may name; None: any
    breakpoints: tuple[Mapping[str, Any], ...] = ()  # for the runs that start with it, see breakpoints.py

    def step(self, ref: str) -> Step | None:
        return self.steps.get(ref)


INTEGRATION_TARGET, MODEL_TARGET, PROMPT_TARGET = "INTEGRATION_PROVIDER", "INTEGRATION", "PROMPT"
"""The target types of permissions on integrations, their models (`integration:model`) and prompts."""

INTEGRATION_INPUTS = ("llmProvider", "embeddingModelProvider", "vectorDB")
MODEL_INPUTS = {"llmProvider": "model", "embeddingModelProvider": "embeddingModel"}
PROMPT_INPUTS = ("promptName", "prompt", "instructions", "instructionsTemplate")
"""The inputs that have the name of a prompt or its text: the text itself is used if there is no prompt of that name."""
MAX_PROMPT_NAME_LENGTH = 255
TYPE_PREFIXES = ("LLM_", "GENERATE_")
"""The prefixes of task types that call models or search vectors."""
MCP_TYPE_PART, MCP_INPUT = "_MCP_TOOL", "mcpServer"
"""A part of each task type that calls an MCP server, and the input with its address or the name of its integration."""


class NamedUse(NamedTuple):
    """An integration, model or prompt that a step names. `input`: the input with the name."""

    target_type: str
    name: str
    input: str


def named_uses(task_type: Any, inputs: JsonValue) -> Iterator[NamedUse]:
    """Yield the integrations, models and prompts that the inputs of a task name. Expressions are omitted.

    An integration whose model is an expression, or that has none, is yielded without its model.
    """
    if not isinstance(task_type, str) or not isinstance(inputs, Mapping):
        return
    if MCP_TYPE_PART in task_type and is_integration_name(name := inputs.get(MCP_INPUT)):
        yield NamedUse(INTEGRATION_TARGET, name, MCP_INPUT)
    if not task_type.startswith(TYPE_PREFIXES):
        return
    for input in INTEGRATION_INPUTS:
        if is_name(name := inputs.get(input)):
            model = inputs.get(MODEL_INPUTS.get(input, ""))
            yield (
                NamedUse(MODEL_TARGET, f"{name}:{model}", input)
                if is_name(model)
                else NamedUse(INTEGRATION_TARGET, name, input)
            )
    for input in PROMPT_INPUTS:
        name = inputs.get(input)
        if is_name(name) and len(name) <= MAX_PROMPT_NAME_LENGTH and "\n" not in name:
            yield NamedUse(PROMPT_TARGET, name, input)


def is_name(value: object) -> TypeGuard[str]:
    """Return True for a text that can be the name of an object: not empty, without an expression and without NUL."""
    return isinstance(value, str) and bool(value) and "${" not in value and "\0" not in value


def is_integration_name(value: object) -> TypeGuard[str]:
    """Return True for the name of an MCP server's integration. It has no colon, unlike an address."""
    return is_name(value) and ":" not in value


Document = Mapping[str, Any]


class Flow(StrEnum):
    """How control flows through a step."""

    LEAF = "leaf"
    """The step contains no steps."""
    CHOICE = "choice"
    """Control enters one body. The last step of the body continues with what follows the step."""
    FORK = "fork"
    """Control enters all bodies at once. A join follows the step."""
    DYNAMIC_FORK = "dynamic fork"
    """Like FORK, with bodies from the input of the task."""
    JOIN = "join"
    """The step waits for other steps outside it."""
    LOOP = "loop"
    """Control enters the body once in each iteration. The step is open until the last iteration has ended."""
    PHASES = "phases"
    """Control enters one body after another; the iteration is the number of the phase."""
    END = "end"


class Body(NamedTuple):
    """One sequence of steps inside a step.

    `name`: unique within the step. `path`: the keys and indexes that lead to it in the document. `place`: the path in
    error messages. `label`: for diagrams. `phase`: its phase, in a step with phases. `is_final`: control enters it
    last, however the other bodies ended. `is_optional`: a document without steps for it leaves it out.
    """

    name: str
    path: tuple[str | int, ...]
    place: str
    steps: list[Any]
    label: str = ""
    phase: int | None = None
    is_final: bool = False
    is_optional: bool = False


class StepStructure:
    """The part of a step type that concerns documents."""

    type: ClassVar[str] = ""
    flow: ClassVar[Flow] = Flow.LEAF
    label: ClassVar[str] = ""
    """Its name in words."""
    icon: ClassVar[str] = ""
    """The icon in diagrams, if it is not that of the flow: a symbol of `static/ops/icons.svg`, without `step-`."""
    item_type: ClassVar[str] = ""
    """The type of the step that the engine adds between this one and its body, one for each iteration."""
    fields: ClassVar[tuple[Any, ...]] = ()
    """Specifications of fields that only this type has (`FieldSpec`)."""
    required_fields: ClassVar[tuple[str, ...]] = ()
    """Fields of the step that must not be empty."""
    required_inputs: ClassVar[tuple[str, ...]] = ()
    output_members: ClassVar[Mapping[str, Any]] = {}
    """The members of the output, if the type fixes them: nested mappings, None for any value."""
    output_sample: ClassVar[Mapping[str, Any]] = {}
    """An output as its tasks have it, which a test of a definition begins with."""
    script_field: ClassVar[str] = ""
    """Location of the script: a field, or `inputParameters.` and the name of an input."""
    allows_python: ClassVar[bool] = False
    """True if `evaluatorType`, beside the script, may select Python."""
    policy_defaults: ClassVar[Mapping[str, Any]] = {}
    """The policy of its tasks without a task definition, as the fields of one, where it differs from the default."""
    names_task: ClassVar[bool] = False
    """True if the task has the type that its name names, or waits for a worker of this name."""
    is_built_in: ClassVar[bool] = False
    """True if a worker of this server executes it."""
    naming_inputs: ClassVar[tuple[str, ...]] = ()
    """The inputs that are names of objects and nothing else."""
    receiving_inputs: ClassVar[tuple[str, ...] | None] = None
    """The inputs that decide who receives the others: addresses, connections, names, code. None if a worker decides."""
    calls_models: ClassVar[bool] = False
    """True if its worker calls models, each call of which is in the journal."""
    is_isolated: ClassVar[bool] = False
    """True if its tasks wait in the queue of their isolation group and name space (execution §5.2)."""
    shows_isolation_group: ClassVar[bool] = False
    """True if its tasks show the isolation group of their definition without using it."""
    is_forked_by_type: ClassVar[bool] = False
    """True if a dynamic fork names the tasks that it creates after this type, if the input contains no name."""
    checks_bodies: ClassVar[bool] = True
    """True if the steps inside it are validated by their types (api §3.4: clients rely on that they are not)."""
    ends_forks: ClassVar[bool] = False
    missing_join: ClassVar[str] = ""
    """Reason for the failure of a run that reaches the step if no join follows it. The wording is Conductor's."""
    forwards_failures: ClassVar[bool] = False
    """True if it fails only because another step did, whose failure is the one to show."""
    result_comes_from_outside: ClassVar[bool] = False
    """True if a simulation needs an outcome for its tasks from the user."""

    @property
    def iterates(self) -> bool:
        """Return True if each step inside belongs to an iteration of this one."""
        return self.flow in (Flow.LOOP, Flow.PHASES)

    @property
    def runs_by_name(self) -> bool:
        """Return True if a task of another step is of this type because it has its name."""
        return self.flow in (Flow.LEAF, Flow.END) and not self.names_task

    @property
    def forks(self) -> bool:
        """Return True if branches start at the step, so that a join must follow it."""
        return self.flow in (Flow.FORK, Flow.DYNAMIC_FORK)

    def bodies(self, step: Document) -> Iterator[Body]:
        """Yield the bodies in the order of the document, empty ones included. Tolerates malformed documents."""
        return iter(())

    def absent_bodies(self, step: Document) -> Iterator[Body]:
        """Yield the optional bodies that the document leaves out, without steps."""
        return iter(())

    def check(self, step: Document, template: Document) -> Iterator[str]:
        """Yield the errors of a step: names of missing fields, or complete sentences.

        `step`: normalized. `template`: the input template of the task definition.
        """
        yield from (name for name in self.required_fields if not step.get(name))
        sources = (step["inputParameters"], template)
        if self.required_inputs and not any(name in inputs for name in self.required_inputs for inputs in sources):
            yield f"inputParameters.{self.required_inputs[0]}"

    def named_workflows(self, step: Document) -> Iterator[Any]:
        """Yield the workflows that the step starts, as written: names, expressions, or invalid values."""
        return iter(())

    def inline_definitions(self, step: Document) -> Iterator[tuple[str, Any]]:
        """Yield the definitions that the step writes in place for runs that it starts, with their places in it."""
        return iter(())

    def named_objects(self, inputs: JsonValue) -> Iterator[NamedUse]:
        """Yield the databases, integrations, models and prompts that inputs name. Expressions are left out."""
        return iter(())

    def script_inputs(self, step: Document) -> set[str]:
        """Return the names that the script can read besides the step's inputs."""
        return set()

    def max_iterations(self, step: Document) -> int:
        """Return the number of iterations that the document allows; 0 if it does not limit them."""
        return 0

    def conductor_type(self, name: str) -> str:
        """Return the `taskType` of a task of this type and this name (execution §1.5)."""
        return FORK if self.forks else self.type

    def needs_simulated_result(self, step: Document) -> bool:
        """Return True if a simulation needs an outcome for the step from the user."""
        return self.result_comes_from_outside


def as_steps(value: JsonValue) -> list[Any]:
    """Return the value if it is a list, otherwise an empty list."""
    return value if isinstance(value, list) else []


def body_at(step: Document, field: str, *, name: str = "", label: str = "", phase: int | None = None) -> Body:
    """Return the body in a field that holds a list of steps."""
    return Body(name or field, (field,), field, as_steps(step.get(field)), label, phase)


STEP_STRUCTURES: dict[str, StepStructure] = {}
FORK = "FORK"
"""The `taskType` of tasks of every fork."""
DEFAULT_TYPE = "SIMPLE"


def structure_of(type: str) -> StepStructure:
    """Return the structure of a step type. Workers execute types that are not registered."""
    return STEP_STRUCTURES.get(type) or STEP_STRUCTURES[DEFAULT_TYPE]


def written_type(step: Document) -> str:
    """Return the type in a step's document."""
    return str(step.get("type") or DEFAULT_TYPE)


def type_of(step: Document) -> str:
    """Return the type of a step's document. A SIMPLE step with the name of a type that runs by name is of that type."""
    written = written_type(step)
    name = step.get("name") if written == DEFAULT_TYPE else None
    return name if isinstance(name, str) and runs_by_name(name) else written


def runs_by_name(name: str) -> bool:
    """Return True if the name of a task makes it one of this type, without a step of the type (execution §8.1)."""
    structure = STEP_STRUCTURES.get(name)
    return structure is not None and structure.runs_by_name


def is_reserved_name(name: str) -> bool:
    """Return True for the name of a type that only a step of that type can execute: with steps inside, or a join."""
    structure = STEP_STRUCTURES.get(name)
    return name == FORK or (structure is not None and not (structure.runs_by_name or structure.names_task))


def structure_of_step(step: Document) -> StepStructure:
    """Return the structure of the type of a step's document."""
    return structure_of(type_of(step))


def types_where(flag: str) -> frozenset[str]:
    """Return the registered types for which an attribute is true."""
    return frozenset(type for type, structure in STEP_STRUCTURES.items() if getattr(structure, flag))


MAX_DEPTH = 60


class StepLevel(NamedTuple):
    """A step within its sequence: the references before it and after it."""

    before: tuple[str, ...]
    ref: str
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PathLevel:
    """One level of the path to a step: its index in the sequence, and the index of the body with the next level."""

    index: int
    body: int = -1
    flow: Flow | None = None


@dataclass(frozen=True, slots=True)
class StepSpot:
    """A step in a document. `path`: for messages. `levels`: outermost first. `follows`: the step before."""

    step: Document
    path: str
    levels: tuple[PathLevel, ...]
    follows: Document | None = None

    @property
    def ref(self) -> str:
        found = self.step.get("taskReferenceName")
        return found if isinstance(found, str) else ""

    @property
    def name(self) -> str:
        found = self.step.get("name")
        return found if isinstance(found, str) else ""


def bodies_of(step: Document) -> Iterator[Body]:
    return structure_of_step(step).bodies(step)


def walk(steps: JsonValue, path: str = "tasks", levels: tuple[PathLevel, ...] = ()) -> Iterator[StepSpot]:
    """Yield all steps in the order of the document, nested ones included, down to MAX_DEPTH."""
    before = None
    for index, step in enumerate(steps if isinstance(steps, list) else ()):
        if not isinstance(step, Mapping):
            continue
        here = f"{path}[{index}]"
        yield StepSpot(step, here, (*levels, PathLevel(index)), before)
        before = step
        if len(levels) < MAX_DEPTH:
            structure = structure_of_step(step)
            for number, body in enumerate(structure.bodies(step)):
                yield from walk(body.steps, f"{here}.{body.place}", (*levels, PathLevel(index, number, structure.flow)))


def worker_tasks(document: Document) -> set[str]:
    """Return the names of the tasks of a workflow's document that workers execute."""
    return {spot.name for spot in walk(document.get("tasks")) if spot.name and type_of(spot.step) == DEFAULT_TYPE}


def references_inside(step: Document) -> tuple[str, ...]:
    """Return the references of all steps inside a step, in the order of the document."""
    return tuple(spot.ref for body in bodies_of(step) for spot in walk(body.steps))


def path_to_step(steps: Sequence[Document], ref: str) -> tuple[StepLevel, ...]:
    """Return the path to a step, outermost level first, its own level last; empty if there is no such step."""
    refs = tuple(str(step.get("taskReferenceName")) for step in steps)
    for index, step in enumerate(steps):
        level = StepLevel(refs[:index], refs[index], refs[index + 1 :])
        if refs[index] == ref:
            return (level,)
        for body in bodies_of(step):
            if inner := path_to_step(body.steps, ref):
                return (level, *inner)
    return ()


def body_with(step: Document, ref: str) -> Body | None:
    """Return the body of a step that contains a reference at any depth, or None."""
    return next((body for body in bodies_of(step) if path_to_step(body.steps, ref)), None)


def phase_of(step: Document, ref: str) -> int | None:
    """Return the phase in which a step executes a step inside it; None if the step has no phases."""
    body = body_with(step, ref)
    return body.phase if body else None


def map_bodies(step: Document, change: Callable[[list[Any]], list[Any]]) -> dict[str, Any]:
    """Return a copy of a step whose non-empty bodies are changed."""
    changed: Any = dict(step)
    for body in bodies_of(step):
        if body.steps:
            changed = replace_at(changed, body.path, change(body.steps))
    return changed


def replace_at(value: Any, keys: tuple[str | int, ...], item: Any) -> Any:
    """Return a copy of the value with the item at the keys. Missing members are created."""
    if not keys:
        return item
    key, rest = keys[0], keys[1:]
    if isinstance(value, list) and isinstance(key, int):
        return [*value[:key], replace_at(value[key], rest, item), *value[key + 1 :]]
    members = value if isinstance(value, Mapping) else {}
    return {**members, key: replace_at(members.get(key), rest, item)}
