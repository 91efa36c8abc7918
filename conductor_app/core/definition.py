"""Workflow definitions, steps and policies as frozen values. Successors are resolved when the document is parsed."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
    """One node of a definition."""

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
    entry of its history. `max_value_bytes`: the size of a value that expressions compose.
    """

    max_depth: int = 100
    max_tasks: int = 200_000
    max_iterations: int = 100_000
    max_history: int = 500_000
    max_value_bytes: int = 0


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
        """Return the step with this reference, or None."""
        return self.steps.get(ref)
