"""JSON schemas of authors and starters cannot keep a process of the server busy, or end it."""

import json

import pytest

from conductor_app.core.data_requests import SchemaCheck
from conductor_app.core.schemas import is_checked_quickly
from conductor_app.definitions.schemas import check_against_schema
from conductor_app.scripts import pool


def check(schema, value):
    return check_against_schema(SchemaCheck(json.dumps(schema), json.dumps(value)))


def doubled(levels, keyword):
    """Return a schema whose check visits 2 ** levels subschemas."""
    steps = {f"a{n}": {keyword: [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/a0", "$defs": {**steps, f"a{levels}": {"type": "object"}}}


def unevaluated(levels):
    schema = {"properties": {"a": {"const": 1}}}
    for _ in range(levels):
        schema = {"allOf": [schema], "unevaluatedProperties": False}
    return schema


RECURSIVE = {"anyOf": [{"properties": {"a": {"$ref": "#"}}, "required": ["missing"]}] * 2}
NESTED = {"a": None}
for _ in range(60):
    NESTED = {"a": NESTED}
SLOW = {
    "references": (doubled(40, "allOf"), {}),
    "recursion into the value": (RECURSIVE, NESTED),
    "properties that no other keyword has evaluated": (unevaluated(40), {"a": 1}),
}


@pytest.mark.parametrize("case", SLOW)
def test_a_check_of_exponential_time_ends_in_a_helper_process(monkeypatch, case):
    monkeypatch.setattr(pool, "EVALUATION_SECONDS", 0.3)
    schema, value = SLOW[case]

    [(path, message)] = check(schema, value)

    assert (path, message.partition(":")[0]) == ("", "the schema cannot be used")


QUICK = [
    {
        "properties": {"a": {"$ref": "#/$defs/x~1y"}, "b": {"$ref": "#/$defs/x~1y"}},
        "$defs": {"x/y": {"type": "string"}},
    },
    {"$id": "https://example.org/a", "type": "object", "unevaluatedProperties": False, "properties": {"$ref": {}}},
    doubled(8, "anyOf"),
    True,
]


@pytest.mark.parametrize("schema", QUICK)
def test_ordinary_schemas_are_checked_without_a_helper_process(schema):
    assert is_checked_quickly(schema)


@pytest.mark.parametrize(
    "schema", [{"$ref": "#"}, {"$ref": "#a"}, {"$dynamicRef": "#a"}, {"$ref": "other"}, {"a": {"$id": "x"}}, RECURSIVE]
)
def test_references_that_are_not_followed_are_left_to_a_helper_process(schema):
    assert not is_checked_quickly(schema)


def test_a_helper_process_reports_the_same_violations():
    tree = {"type": "object", "properties": {"left": {"$ref": "#"}, "size": {"type": "integer"}}}

    assert check(tree, {"left": {"left": {"size": 1}}}) == ()
    assert check(tree, {"left": {"left": {"size": "x"}}}) == (
        (".left.left.size", 'the value is not of type "integer"'),
    )
    assert "remote references are not supported" in check({"$ref": "file:///etc/passwd"}, {})[0][1]
