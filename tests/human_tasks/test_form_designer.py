"""The designer of the form of a human task: rows become the JSON schema of the answer, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core.errors import Invalid
from conductor_app.core.human_tasks import ANSWER_SCHEMA_KEY, answer_schema
from conductor_app.core.schemas import format_typed
from conductor_app.human_tasks.pages.form_templates import design_schema, designed_fields, submitted_fields
from conductor_app.web.forms import parse_typed
from tests.hypothesis_profile import property_settings

SCHEMA = {
    "type": "object",
    "required": ["approved"],
    "properties": {
        "approved": {"type": "boolean", "title": "Approved?"},
        "grade": {"enum": ["a", "b", 3], "description": "kept"},
        "limit": {"type": "integer", "minimum": 1},
        "lines": {"type": "array", "items": {"type": "string"}},
        "address": {"type": "object", "properties": {"city": {"type": "string"}}},
        "day": {"type": "string", "format": "date"},
    },
    "additionalProperties": False,
}
INPUTS = {"total": 7, ANSWER_SCHEMA_KEY: {"displayName": "Approve", "jsonSchema": SCHEMA}}


def submit(inputs, **changes) -> dict:
    """Return the inputs after the rows are submitted with some values changed; None unticks a box."""
    posted = {}
    for row in designed_fields(inputs):
        values = {"name": row.name, "title": row.title, "kind": row.kind, "choices": row.choices, "was": row.was}
        posted |= {f"{row.prefix}.{key}": value for key, value in values.items()}
        posted |= {f"{row.prefix}.required": "on"} if row.is_required else {}
    posted |= {name.replace("__", ".").replace("row", "design."): value for name, value in changes.items()}
    rows = submitted_fields({name: value for name, value in posted.items() if value is not None})
    after = design_schema(inputs, rows)
    return after | ({"errors": [error for row in rows for error in row.errors]} if any(r.errors for r in rows) else {})


def test_rows_that_are_submitted_unchanged_change_nothing():
    assert submit(INPUTS) == INPUTS
    assert submit({"total": 7}) == {"total": 7}


def test_a_field_is_added_changed_and_removed():
    added = {"row6__name": "note", "row6__kind": "long", "row6__title": "Note", "row6__required": "on"}

    after = answer_schema(submit(INPUTS, **added, row0__name="ok", row0__required=None, row2__name=""))

    assert list(after["properties"]) == ["ok", "grade", "lines", "address", "day", "note"]
    assert after["properties"]["ok"] == {"type": "boolean", "title": "Approved?"}
    assert after["properties"]["note"] == {"type": "string", "maxLength": 2000, "title": "Note"}
    assert after["required"] == ["note"] and after["additionalProperties"] is False


def test_another_type_replaces_only_what_belongs_to_the_type():
    after = answer_schema(submit(INPUTS, row1__kind="text", row2__kind="choice", row2__choices="1, 2, many"))

    assert after["properties"]["grade"] == {"type": "string", "description": "kept"}
    assert after["properties"]["limit"] == {"minimum": 1, "enum": [1, 2, "many"]}


def test_the_first_field_creates_the_schema():
    after = submit({}, row0__name="approved", row0__kind="yes_no")

    assert after == {
        ANSWER_SCHEMA_KEY: {"jsonSchema": {"type": "object", "properties": {"approved": {"type": "boolean"}}}}
    }


def test_a_schema_in_a_template_stays_there():
    inputs = {ANSWER_SCHEMA_KEY: {"userFormTemplate": {"name": "t", "jsonSchema": SCHEMA}}}

    after = submit(inputs, row2__name="")

    assert "limit" not in after[ANSWER_SCHEMA_KEY]["userFormTemplate"]["jsonSchema"]["properties"]
    assert "jsonSchema" not in after[ANSWER_SCHEMA_KEY]


def test_a_name_twice_and_a_choice_without_choices_are_reported():
    assert submit(INPUTS, row2__name="approved")["errors"] == ["This name is used twice."]
    assert submit(INPUTS, row1__choices=" ,")["errors"] == ["Enter the choices, comma-separated."]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
).filter(lambda value: "\\u0000" not in repr(value) and "\x00" not in repr(value).replace("\\x00", "\x00"))


@given(JSON)
@property_settings(200)
def test_every_json_value_survives_a_text_field(value):
    assert parse_typed(format_typed(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a", "a"), ("", ""), ("3", 3), ("1.5", 1.5), ("true", True), ("null", None), ("${a.output}", "${a.output}"),
        ('"3"', "3"), ("[1]", [1]), ('{"a": 1}', {"a": 1}), ("3 apples", "3 apples"), ("-Infinity", "-Infinity"),
    ],
)  # fmt: skip
def test_a_text_is_read_as_its_json_value(text, value):
    assert parse_typed(text) == value


@pytest.mark.parametrize("text", ["{a}", "[1", '"half'])
def test_broken_json_is_refused(text):
    with pytest.raises(Invalid):
        parse_typed(text)
