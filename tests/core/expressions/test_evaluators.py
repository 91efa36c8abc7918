"""The languages that a step may be written in."""

import pytest

from conductor_app.core.expressions import ScriptLanguage, evaluator


def test_value_param_gives_the_named_input():
    assert evaluator("value-param").evaluate("case", {"case": 7}) == 7


def test_value_param_gives_null_for_an_absent_input():
    assert evaluator("value-param").evaluate("case", {}) is None


@pytest.mark.parametrize(("name", "language"), [("javascript",) * 2, ("graaljs", "javascript"), ("python",) * 2])
def test_scripts_are_marked_for_somebody_else_to_run(name, language):
    assert evaluator(name) == ScriptLanguage(language)


def test_an_unknown_language_is_none():
    assert evaluator("cobol") is None
