"""Where in a JSON text the path of a validation_error stands."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core.document.json_positions import TextPositions, keys_of
from tests.tries import property_settings

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
def test_a_path_is_found_on_its_line_or_at_the_nearest_thing_around_it(path, line):
    assert TextPositions(TEXT).of(path).line == line


def marked(text: str, path: str) -> str:
    """What of the text is marked."""
    place = TextPositions(text).of(path)
    return text.split("\n")[place.line - 1][place.column : place.column + place.length]


@pytest.mark.parametrize(
    ("path", "stretch"),
    [
        ("name", '"order"'),
        ("tasks", '"tasks"'),
        ("tasks[0]", "{"),
        ("tasks[1].list[1]", "["),
        ("cases[a b][0]", "true"),
    ],
)
def test_a_plain_value_is_marked_as_it_stands_and_anything_else_by_its_key(path, stretch):
    assert marked(TEXT, path) == stretch


def test_columns_are_counted_as_browsers_count():
    place = TextPositions('{"a": "𝄞𝄞", "b": 7}').of("b")

    assert (place.column, place.length) == (19, 1)


@pytest.mark.parametrize("text", ["", " ", "]", '{"a": [1, ', '{"a" "b": {', "[,,]", '{"a": "open', "}{", ",:,"])
def test_a_text_that_is_no_json_is_read_as_far_as_it_goes(text):
    TextPositions(text).of("a[0]")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.from_regex(r"[a-z ]{1,5}", fullmatch=True), inner, max_size=3)
    ),
    max_leaves=12,
)


@property_settings(40)
@given(ANYTHING, st.sampled_from([None, 1, 3]))
def test_every_plain_value_of_every_document_is_marked_where_it_stands(value, indent):
    text = json.dumps({"root": value}, indent=indent, ensure_ascii=True)

    def check(value, path):
        if isinstance(value, dict | list):
            for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
                check(inner, f"{path}[{key}]")
        else:
            assert json.loads(marked(text, path)) == value

    check(value, "root")


def test_a_path_is_taken_apart_into_its_keys():
    assert keys_of("tasks[0].decisionCases[a.b][1]['x y'].z") == ("tasks", "0", "decisionCases", "a.b", "1", "x y", "z")
