"""What the steps with cases share: how a value names a case, and where control goes from the step."""

from collections.abc import Iterator
from typing import Any

from ..definition import Key
from ..snapshot import Task


def case_text(value: Any) -> str:
    """The value as the text that names a case: null, true, 1, 1.5."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def case_inputs(case: str, head: str | None) -> dict[str, str]:
    """The inputs that tell which case was chosen."""
    return {"case": case} | ({"hasChildren": "true"} if head else {})


def case_successor(task: Task) -> Iterator[Key]:
    """The head of the chosen case, or what follows the step where that case is empty."""
    target = task.step_state.get("head") or task.step.follower
    if target and task.lets_control_pass:
        yield Key(target, task.key.iteration_path)
