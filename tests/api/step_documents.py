"""Steps as documents."""

from typing import Any

Step = dict[str, Any]


def simple(name: str, **fields: Any) -> Step:
    """Work for a worker."""
    return {"name": name, "taskReferenceName": name, "type": "SIMPLE", **fields}


def step(kind: str, ref: str, **fields: Any) -> Step:
    """A step of any type."""
    return {"name": ref, "taskReferenceName": ref, "type": kind, **fields}
