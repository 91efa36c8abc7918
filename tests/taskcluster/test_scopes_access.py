"""Scopes, scope satisfaction, and the scope expressions of methods (taskcluster §6.5)."""

import pytest

from conductor_app.taskcluster.auth.scopes import (
    drop_covered,
    format_expression,
    is_satisfied,
    missing_scopes,
    render_expression,
    scope_set,
)

SATISFIED = {
    "the same": (["a:b"], "a:b", True),
    "another": (["a:b"], "a:c", False),
    "a beginning without a star": (["a:"], "a:b", False),
    "a beginning with a star": (["a:*"], "a:b", True),
    "nothing after the beginning": (["a:*"], "a:", True),
    "a narrower star": (["a:*"], "a:b*", True),
    "a wider star": (["a:b*"], "a:*", False),
    "a star in the middle is only a star": (["a:*:c"], "a:b:c", False),
    "everything": (["*"], "a:b", True),
    "nothing": ([], "a:b", False),
    "all of nothing": ([], {"AllOf": []}, True),
    "any of nothing": (["*"], {"AnyOf": []}, False),
    "all of two": (["a", "b"], {"AllOf": ["a", "b"]}, True),
    "one of two where all are needed": (["a"], {"AllOf": ["a", "b"]}, False),
    "one of two where any will do": (["b"], {"AnyOf": ["a", "b"]}, True),
    "any of which all": (["b", "c"], {"AnyOf": ["a", {"AllOf": ["b", "c"]}]}, True),
}


@pytest.mark.parametrize("case", SATISFIED)
def test_scopes_satisfy(case):
    scopes, expression, is_enough = SATISFIED[case]
    held = scope_set(scopes)

    assert is_satisfied(expression, held) is is_enough
    assert (missing_scopes(expression, held) is None) is is_enough


def test_the_missing_scopes_are_minimal():
    expression = {"AllOf": ["a", {"AnyOf": ["b", "c"]}, {"AnyOf": ["d", "a"]}]}

    assert missing_scopes(expression, scope_set(["a"])) == {"AnyOf": ["b", "c"]}
    assert missing_scopes(expression, scope_set([])) == expression


def test_an_expression_can_be_read_by_a_person():
    assert format_expression({"AllOf": ["a", {"AnyOf": ["b", "c"]}]}) == "all of:\n  a\n  any of:\n    b\n    c"


def test_a_template_is_filled_in():
    template = {"AllOf": ["queue:create:<queue>", {"for": "scope", "in": "scopes", "each": "<scope>"}]}

    assert render_expression(template, {"queue": "p/w", "scopes": ["x:*", "y"]}) == {
        "AllOf": ["queue:create:p/w", "x:*", "y"]
    }


def test_a_parameter_is_filled_in_as_it_is():
    assert render_expression("get:<name>", {"name": "<name>*"}) == "get:<name>*"


def test_a_condition_that_is_false_requires_no_scope():
    template = {"if": "private", "then": "get:<name>"}

    assert render_expression(template, {"private": False, "name": "a"}) == {"AllOf": []}
    assert render_expression(template, {"private": True, "name": "a"}) == "get:a"
    assert render_expression({"AnyOf": ["b", template]}, {"private": False, "name": "a"}) == {"AnyOf": ["b"]}
    assert render_expression(None, {}) == {"AllOf": []}


def test_scopes_covered_by_another_are_omitted():
    assert drop_covered(["a:b", "a:*", "b", "a:b*", "b", "a:", "b!"]) == ["a:*", "b", "b!"]
