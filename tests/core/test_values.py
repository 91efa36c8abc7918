"""Copies of frozen values."""

from dataclasses import dataclass, field

import pytest

from conductor_app.core.frozen import fast_replace


@dataclass(frozen=True)
class Thing:
    name: str
    parts: tuple[str, ...] = ()
    facts: dict[str, int] = field(default_factory=dict)


def test_a_copy_has_the_fields_that_were_changed_and_shares_the_others():
    thing = Thing("a", ("x",), {"n": 1})

    copy = fast_replace(thing, name="b")

    assert copy == Thing("b", ("x",), {"n": 1})
    assert copy.facts is thing.facts


def test_a_copy_does_not_change_the_original():
    thing = Thing("a")

    fast_replace(thing, name="b")

    assert thing == Thing("a")


def test_a_field_that_the_value_does_not_have_is_refused():
    with pytest.raises(TypeError, match="Thing has no field nam"):
        fast_replace(Thing("a"), nam="b")
