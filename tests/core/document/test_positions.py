"""Positions of validation errors in a JSON text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core.document.json_positions import TextPositions, keys_of
from tests.hypothesis_profile import property_settings

TEXT = """{
  "name": "order",
  "tasks": [
    {
      "name": "a, b: {c}",
      "inputs": {}
    },
    {"name": "x",
     "list": [1,
              [2, 3]]}
  ],
  "cases": {"a b": [true]},
  "last": "\\"quoted\\""
}"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("name", 2),
        ("tasks", 3),
        ("tasks[0]", 4),
        ("tasks[0].name", 5),
        ("tasks[1].name", 8),
        ("tasks[1].list[0]", 9),
        ("tasks[1].list[1][1]", 10),
        ("cases[a b][0]", 12),
        ("cases['a b'][0]", 12),
        ("last", 13),
        ("tasks[0].missing", 4),
        ("tasks[7].name", 3),
        ("nowhere", 1),
        ("", 1),
    ],
)
def test_a_path_has_the_position_of_its_value_or_of_the_closest_enclosing_one(path, line):
    assert TextPositions(TEXT).of(path).line == line


def marked_text(text: str, path: str) -> str:
    """Return the part of the text that is marked for the path."""
    position = TextPositions(text).of(path)
    return text.split("\n")[position.line - 1][position.column : position.column + position.length]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("name", '"order"'),
        ("tasks", '"tasks"'),
        ("tasks[0]", "{"),
        ("tasks[1].list[1]", "["),
        ("cases[a b][0]", "true"),
    ],
)
def test_a_scalar_is_marked_itself_and_a_container_by_its_key(path, expected):
    assert marked_text(TEXT, path) == expected


def test_columns_are_counted_like_in_browsers():
    position = TextPositions('{"a": "𝄞𝄞", "b": 7}').of("b")

    assert (position.column, position.length) == (19, 1)


@pytest.mark.parametrize("text", ["", " ", "]", '{"a": [1, ', '{"a" "b": {', "[,,]", '{"a": "open', "}{", ",:,"])
def test_invalid_json_is_read_up_to_the_error(text):
    TextPositions(text).of("a[0]")


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.from_regex(r"[a-z ]{1,5}", fullmatch=True), inner, max_size=3)
    ),
    max_leaves=12,
)


@property_settings(40)
@given(DOCUMENTS, st.sampled_from([None, 1, 3]))
def test_every_scalar_of_every_document_is_marked_at_its_position(value, indent):
    text = json.dumps({"root": value}, indent=indent, ensure_ascii=True)

    def check(value, path):
        if isinstance(value, dict | list):
            for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
                check(inner, f"{path}[{key}]")
        else:
            assert json.loads(marked_text(text, path)) == value

    check(value, "root")


def test_a_path_is_split_into_its_keys():
    assert keys_of("tasks[0].decisionCases[a.b][1]['x y'].z") == ("tasks", "0", "decisionCases", "a.b", "1", "x y", "z")
