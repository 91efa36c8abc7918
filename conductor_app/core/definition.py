"""Definition, Step and Policy as frozen values; who follows whom is laid out once, when the document is read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

RETRY, TIME_OUT_RUN, ALERT_ONLY = "RETRY", "TIME_OUT_WF", "ALERT_ONLY"
FIXED, LINEAR, EXPONENTIAL = "FIXED", "LINEAR_BACKOFF", "EXPONENTIAL_BACKOFF"


class Key(NamedTuple):
    """What finds a task in its run: the step's reference and the turn of each loop around it, outermost first."""

    ref: str
    iteration_path: tuple[int, ...] = ()

    def __str__(self) -> str:
        return "__".join((self.ref, *map(str, self.iteration_path)))


@dataclass(frozen=True, slots=True)
class Schema:
    """What a payload must look like: a JSON schema as text; an empty one is named by its author, but not known."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Policy:
    """What a task may cost and how often it is tried. Spans in seconds unless the name says otherwise; 0 is off."""

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
    requeues_on_lost_lease: bool = False  # a lost lease is no failure: a built-in worker's process went away
    isolation_group: str = ""  # only the built-in workers that serve this group,
    name_space: str = ""  # or the part of the installation with this name, do it


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
    """Those of the bodies that are not empty."""
    loops: tuple[str, ...] = ()
    inside: frozenset[str] = frozenset()
    joins: tuple[str, ...] = ()
    joined_by: tuple[str, ...] = ()
    optional: bool = False
    permissive: bool = False
    start_delay: int = 0
    async_complete: bool = False
    secrets: frozenset[str] = frozenset()  # those that its author names in its inputs; data cannot name any

    @property
    def is_fatal(self) -> bool:
        """Whether its failure is the failure of the run."""
        return not (self.optional or self.permissive)


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """A named, versioned plan; never edited in place."""

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
    publishes_listener_events: bool = False  # somebody is told of what becomes of its runs or of their tasks
    publishes_task_events: bool = False  # the server's listener hears of each status that a task comes to

    def step(self, ref: str) -> Step | None:
        """The step with this reference."""
        return self.steps.get(ref)
