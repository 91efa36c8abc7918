"""What a task keeps for its step between two decisions, beside its payloads.

`TaskState` lists what tasks of every type may keep. A step type that keeps more extends it in its own module. The store
writes a state as JSON.
"""

from collections.abc import Mapping
from typing import Any, TypedDict


class TaskState(TypedDict, total=False):
    """State that tasks of every type may have."""

    type: str
    name: str
    """The type and the name of the task that a DYNAMIC step resolved to."""
    input: dict[str, Any]
    """The inputs that an operator gave to the rerun of this task."""
    given: dict[str, Any]
    """The inputs that an operator gave when control jumped to this task."""
    secrets: list[str]
    """Names of the secrets that the author of the step has written into its inputs."""
    first_number: int
    """The number of the first attempt since a rerun entered the task; earlier attempts do not count as tries."""
    former_workers: dict[str, list[str]]
    """Workers that have held earlier leases, by attempt id."""
    is_left: bool
    """Control does not leave the task again: an operator has taken it elsewhere."""
    cached_as: str
    """The digest under which the output is cached."""
    document: dict[str, Any]
    loops: list[str]
    """Of the first task of a dynamic branch: the document of the branch, and the loops around it."""


StepState = Mapping[str, Any]
"""The state of a task whose type is not known to the reader."""
