"""Frozen values, copied with some fields changed."""

from typing import Any, TypeVar

Value = TypeVar("Value")


def fast_replace(value: Value, **changes: Any) -> Value:
    """The value with other fields, as `dataclasses.replace`, in a tenth of its time; raises TypeError.

    A decision copies twenty values of up to thirty fields each. For dataclasses without slots and without fields that
    are worked out when one is made.
    """
    if not changes.keys() <= type(value).__dataclass_fields__.keys():  # type: ignore[attr-defined]
        raise TypeError(f"{type(value).__name__} has no field {', '.join(changes)}.")
    copy = object.__new__(type(value))
    copy.__dict__.update(value.__dict__)
    copy.__dict__.update(changes)
    return copy
