"""Text of values in Java's format."""

import pytest

from conductor_app.core.expressions import field_text, java_text, quote_value
from conductor_app.core.expressions.json_text import json_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1, "1"),
        (12345678901234567890, "12345678901234567890"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (0.000123, "1.23E-4"),
        (9999999.0, "9999999.0"),
        (10000000.0, "1.0E7"),
        (-123456789.125, "-1.23456789125E8"),
        (1e21, "1.0E21"),
        (1.5e300, "1.5E300"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        ("x", "x"),
        ({}, "{}"),
        ([], "[]"),
        ({"a": 1, "b": [None, {"c": "d"}]}, "{a=1, b=[null, {c=d}]}"),
    ],
)
def test_a_value_is_printed_as_java_prints_it(value, text):
    assert java_text(value) == text


def test_json_text_is_compact_and_not_escaped():
    assert json_text([{"ä": 'q"\n'}, 1.0, None]) == '[{"ä":"q\\"\\n"},1.0,null]'


@pytest.mark.parametrize(
    ("value", "text"),
    [("a'b", "a'b"), ("", ""), (None, ""), (True, "true"), (0, "0"), (1e7, "1.0E7"), ({"a": [None]}, '{"a":[null]}')],
)
def test_a_value_that_is_no_text_fills_a_field_of_text_as_json(value, text):
    assert field_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [("a'b", '"a\'b"'), (None, "null"), (True, "true"), ({"a": None, "é": [1.0]}, '{"a": null, "é": [1.0]}')],
)
def test_a_message_shows_a_value_as_json(value, text):
    assert quote_value(value) == text


@pytest.mark.parametrize("value", ["x" * 1000, ["x"] * 1_000_000, {"a": {"b": "x" * 1000}}])
def test_a_message_shows_the_beginning_of_a_long_value(value):
    assert len(quote_value(value)) == 100
