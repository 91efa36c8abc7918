"""Differences between two JSON values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.utils.differences import MAX_DIFFERENCES, MISSING, find_differences

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 2}, [("a", "changed")]),
        ({"a": 1}, {}, [("a", "removed")]),
        ({}, {"a": None}, [("a", "added")]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3, 4]}}, [("a.b[1]", "changed"), ("a.b[2]", "added")]),
        ({"a": True}, {"a": 1}, [("a", "changed")]),
        ([1], {"0": 1}, [("", "changed")]),
    ],
)
def test_each_place_that_differs_is_named(before, after, expected):
    assert [(each.path, each.kind) for each in find_differences(before, after)] == expected


@given(JSON)
def test_a_value_does_not_differ_from_itself(value):
    assert find_differences(value, value) == []


def test_the_number_of_listed_differences_is_limited():
    assert len(find_differences({}, dict.fromkeys(map(str, range(1000)), 1))) == MAX_DIFFERENCES
    assert find_differences({}, {"a": 1})[0].before is MISSING
