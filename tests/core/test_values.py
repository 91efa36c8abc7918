"""Copies of frozen values."""

from dataclasses import dataclass, field

import pytest

from conductor_app.core.primitives import fast_replace


@dataclass(frozen=True)
class Value:
    name: str
    parts: tuple[str, ...] = ()
    facts: dict[str, int] = field(default_factory=dict)


def test_a_copy_has_the_changed_fields_and_shares_the_others():
    value = Value("a", ("x",), {"n": 1})

    copy = fast_replace(value, name="b")

    assert copy == Value("b", ("x",), {"n": 1})
    assert copy.facts is value.facts


def test_a_copy_does_not_change_the_original():
    value = Value("a")

    fast_replace(value, name="b")

    assert value == Value("a")


def test_a_field_that_the_value_does_not_have_is_refused():
    with pytest.raises(TypeError, match="Value has no field nam"):
        fast_replace(Value("a"), nam="b")
