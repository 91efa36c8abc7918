"""Names of the script languages that a step can use."""

import pytest

from conductor_app.core.expressions import ScriptLanguage, evaluator


def test_value_param_returns_the_named_input():
    assert evaluator("value-param").evaluate("case", {"case": 7}) == 7


def test_value_param_returns_null_for_an_absent_input():
    assert evaluator("value-param").evaluate("case", {}) is None


@pytest.mark.parametrize(("name", "language"), [("javascript",) * 2, ("graaljs", "javascript"), ("python",) * 2])
def test_script_languages_are_evaluated_by_helper_processes(name, language):
    assert evaluator(name) == ScriptLanguage(language)


def test_an_unknown_language_has_no_evaluator():
    assert evaluator("cobol") is None
