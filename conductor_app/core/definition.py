"""Structure of step types: the bodies of a step, its fields, and how control flows through it.

A step type states all of this in its own module, without a run. Validation, layout, lint, diagrams and commands read
it here, so they support a new type as soon as it is registered.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

from .ai_names import NamedUse

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
    """Control ends with the step."""


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
    icon: ClassVar[str] = ""
    """The icon in diagrams, if it is not that of the flow: a symbol of `static/ops/icons.svg`, without `step-`."""
    item_type: ClassVar[str] = ""
    """The type of the step that the engine adds between this one and its body, one for each iteration."""
    fields: ClassVar[tuple[Any, ...]] = ()
    """Specifications of fields that only this type has (`FieldSpec`)."""
    required_fields: ClassVar[tuple[str, ...]] = ()
    """Fields of the step that must not be empty."""
    required_inputs: ClassVar[tuple[str, ...]] = ()
    """Inputs of which at least one is required."""
    output_members: ClassVar[Mapping[str, Any]] = {}
    """The members of the output, if the type fixes them: nested mappings, None for any value."""
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
    """True if it is the join that a fork requires."""
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

    def named_objects(self, inputs: Any) -> Iterator[NamedUse]:
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


def as_steps(value: Any) -> list[Any]:
    """Return the value if it is a list, otherwise an empty list."""
    return value if isinstance(value, list) else []


def body_at(step: Document, field: str, *, name: str = "", label: str = "", phase: int | None = None) -> Body:
    """Return the body in a field that holds a list of steps."""
    return Body(name or field, (field,), field, as_steps(step.get(field)), label, phase)


STEP_STRUCTURES: dict[str, StepStructure] = {}
"""The registered types by name."""
FORK = "FORK"
"""The `taskType` of tasks of every fork."""
DEFAULT_TYPE = "SIMPLE"
"""The type of a step without a type."""


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
