"""Conditions of event handlers, and templates of their actions over the payload (execution §10.6)."""

import pytest

from conductor_app.core.events import expand_json_texts, is_true, observed_values, resolve_event_template

PAYLOAD = {"status": "paid", "order": {"lines": [{"sku": "a"}], "total": 3}, "odd name": 1}


def test_json_texts_are_parsed_and_other_texts_stay():
    payload = {"a": '{"b": [1]}', "c": ["[2]", "x", "{broken"], "d": 1, "e": "NaN", "f": "true"}

    assert expand_json_texts(payload) == {"a": {"b": [1]}, "c": [[2], "x", "{broken"], "d": 1, "e": "NaN", "f": True}


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("$.status == 'paid' && $.order.total > 2", {"$.status": "paid", "$.order.total": 3}),
        ("$.order.lines[0].sku === 'a'", {"$.order.lines[0].sku": "a"}),
        ("$['odd name'] == 1", {"$['odd name']": 1}),
        ("$.missing.thing == null", {"$.missing.thing": None}),
        ("$.order.lines[7] == null", {"$.order.lines[7]": None}),
        ("$.status.toUpperCase() == 'PAID'", {"$.status": "paid"}),
        ("true", {}),
    ],
)
def test_a_condition_is_returned_with_the_values_it_names(condition, values):
    assert observed_values(condition, PAYLOAD) == values


def test_long_values_are_cut():
    [value] = observed_values("$.a", {"a": "x" * 10_000}).values()

    assert len(value) == 501


@pytest.mark.parametrize(
    ("value", "is_accepted"), [(True, True), (1, True), (0, False), (False, False), (None, False), ("true", False)]
)
def test_a_true_condition_accepts_an_event(value, is_accepted):
    assert is_true(value) is is_accepted


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("${status}", "paid"),
        ("${order}", PAYLOAD["order"]),
        ("${order.total}", 3),
        ("${order.lines[0].sku}", "a"),
        ("${missing}", None),
        ("${missing.thing}", None),
        ("order is ${status}", "order is paid"),
        ({"deep": ["${order.total}"]}, {"deep": [3]}),
    ],
)
def test_actions_read_the_payload(template, value):
    assert resolve_event_template(template, PAYLOAD, 1_000) == value


def test_a_payload_that_is_no_object_has_no_fields():
    assert resolve_event_template("${status}", [1], 1_000) is None
