"""Steps as documents."""

from typing import Any

Step = dict[str, Any]


def simple(name: str, **fields: Any) -> Step:
    """Return a task that a worker executes."""
    return {"name": name, "taskReferenceName": name, "type": "SIMPLE", **fields}


def step(kind: str, ref: str, **fields: Any) -> Step:
    """Return a step of any type."""
    return {"name": ref, "taskReferenceName": ref, "type": kind, **fields}
