"""Forms derived from JSON schemas, and the values parsed from submitted forms."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core.schemas import build_form, fits_form, parse_form, split_document
from tests.hypothesis_profile import property_settings

SCHEMA = {
    "type": "object",
    "required": ["order"],
    "properties": {
        "order": {"type": "string", "title": "Order number", "description": "As printed", "maxLength": 20},
        "way": {"enum": ["express", "standard", 3], "default": "standard"},
        "amount": {"type": "number", "minimum": 0},
        "parcels": {"type": "integer"},
        "gift": {"type": "boolean"},
        "placed": {"type": "string", "format": "date"},
        "note": {"type": "string", "maxLength": 2000},
        "address": {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}},
        "lines": {"type": "array"},
    },
}
FORM = build_form(SCHEMA)


def find_field(name):
    return next(each for each in FORM if each.key == name)


def parse(**form_data):
    return parse_form(FORM, {f"input.{name}": text for name, text in form_data.items()})


def test_each_value_gets_the_field_of_its_kind():
    kinds = {each.key: each.kind for each in FORM}

    assert kinds == {
        "order": "text", "way": "choice", "amount": "number", "parcels": "whole", "gift": "yes_no", "placed": "date",
        "note": "long", "address": "group", "lines": "json",
    }  # fmt: skip


def test_titles_descriptions_requirements_and_limits_become_part_of_the_form():
    order = find_field("order")

    assert (order.label, order.help, order.is_required) == ("Order number", "As printed", True)
    assert order.limits == {"maxlength": 20} and find_field("amount").limits == {"min": 0}
    assert find_field("address").fields[0].name == "input.address.city" and find_field("address").fields[0].is_required


def test_form_values_become_a_document():
    form_data = {
        "order": "4711",
        "way": "3",
        "amount": "12.50",
        "parcels": "2",
        "gift": "false",
        "lines": '[{"sku": 1}]',
    }

    document, errors = parse(**form_data, **{"address.city": "Bonn"})

    assert errors == {}
    assert document == {
        "order": "4711", "way": 3, "amount": 12.5, "parcels": 2, "gift": False, "address": {"city": "Bonn"},
        "lines": [{"sku": 1}],
    }  # fmt: skip


def test_empty_form_fields_are_omitted():
    assert parse(order="", amount=" ") == ({}, {})


@pytest.mark.parametrize(
    ("name", "text", "validation_error"),
    [
        ("amount", "many", "Enter a number."),
        ("amount", "true", "Enter a number."),
        ("parcels", "2.5", "Enter a whole number."),
        ("gift", "maybe", "Select one of the choices."),
        ("way", "air", "Select one of the choices."),
        ("lines", "[1,", "This is not valid JSON at line 1, column 4."),
        ("lines", "[" * 100_000, "This is not valid JSON."),
    ],
)
def test_an_invalid_form_value_is_reported_at_its_field(name, text, validation_error):
    assert parse(**{name: text}) == ({}, {f"input.{name}": validation_error})


def test_a_document_survives_the_form_unchanged():
    document = {"order": "4711", "way": 3, "amount": 12.5, "gift": True, "address": {"city": "Bonn"}, "lines": [1]}

    assert parse_form(FORM, split_document(FORM, document)) == (document, {})


@pytest.mark.parametrize(
    ("document", "fits"),
    [
        ({"order": "1", "address": {"city": "Bonn"}, "note": None}, True),
        ({"order": "", "address": {}, "lines": []}, True),
        ({"order": "1", "colour": "red"}, False),
        ({"address": {"city": "Bonn", "zip": "53111"}}, False),
        ({"order": 1}, False),
        ({"parcels": "two"}, False),
    ],
)
def test_a_form_shows_a_document_only_if_it_has_a_field_for_every_value(document, fits):
    assert fits_form(FORM, document) is fits


@pytest.mark.parametrize(
    ("text", "value"),
    [("4711", 4711), ('"4711"', "4711"), ("red", "red"), ('{"a": [1]}', {"a": [1]}), ("true", True), ("- 5", "- 5")],
)
def test_a_field_without_a_type_takes_text_numbers_and_json(text, value):
    fields = build_form({"properties": {"any": {"title": "Any", "default": ""}}})

    assert fields[0].kind == "typed" and parse_form(fields, {"input.any": text}) == ({"any": value}, {})
    assert parse_form(fields, split_document(fields, {"any": value})) == ({"any": value}, {})
    assert parse_form(fields, {"input.any": "[1,\n  2;"})[1] == {
        "input.any": "Not valid JSON at line 2, column 4. To enter it as text, put it in quotes."
    }


@pytest.mark.parametrize("schema", [None, {}, [], {"properties": []}, {"properties": {}}, {"type": "array"}, "x"])
def test_a_schema_without_members_has_no_form(schema):
    assert build_form(schema) == ()


PARTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["string", "object", "integer", "boolean", "date"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "enum", "required", "default", "maxLength", "title", "format"]),
            inner,
        )
    ),
    max_leaves=12,
)


@property_settings(40)
@given(PARTS, st.dictionaries(st.text(max_size=4), PARTS, max_size=3))
def test_every_schema_has_a_form_that_can_be_parsed(schema, document):
    fields = build_form({"properties": {"a": schema, "b": schema}})

    parse_form(fields, split_document(fields, json.loads(json.dumps(document))))
