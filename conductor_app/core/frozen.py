"""Frozen values, copied with some fields changed."""

from typing import Any, TypeVar

Value = TypeVar("Value")


def fast_replace(value: Value, **changes: Any) -> Value:
    """Return a copy of the value with some fields changed, ten times as fast as `dataclasses.replace`.

    A decision copies twenty values of up to thirty fields each. Only for dataclasses without slots and without
    computed fields.

    Raises:
        TypeError: when there is no such field.
    """
    if not changes.keys() <= type(value).__dataclass_fields__.keys():  # type: ignore[attr-defined]
        raise TypeError(f"{type(value).__name__} has no field {', '.join(changes)}.")
    copy = object.__new__(type(value))
    copy.__dict__.update(value.__dict__)
    copy.__dict__.update(changes)
    return copy
