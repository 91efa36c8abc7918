"""State that a task keeps for its step type between two decisions, besides its payloads.

`TaskState` lists the keys of tasks of every type. A step type with further keys extends it in its own module. The
store writes a state as JSON.
"""

from collections.abc import Mapping
from typing import Any, TypedDict


class TaskState(TypedDict, total=False):
    """State that tasks of every type may have."""

    name: str
    """The name of the task that the input of a DYNAMIC step named."""
    input: dict[str, Any]
    """The inputs that an operator set for the rerun of this task."""
    given: dict[str, Any]
    """The inputs that an operator set when control jumped to this task."""
    secrets: list[str]
    """Names of the secrets that the author of the step named in its inputs."""
    stop: dict[str, Any]
    """The last stop at a breakpoint."""
    first_number: int
    """The number of the first attempt since a rerun entered the task; earlier attempts do not count as tries."""
    former_workers: dict[str, list[str]]
    """Workers that held earlier leases, by attempt id."""
    is_left: bool
    """True if control does not leave the task again, because an operator moved it to another step."""
    cached_as: str
    """The digest under which the output is cached."""
    document: dict[str, Any]
    loops: list[str]
    """Of the first task of a dynamic branch: the document of the branch, and the loops around it."""


StepState = Mapping[str, Any]
"""State of a task whose type the reader does not know."""
