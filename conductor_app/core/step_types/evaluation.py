"""The value of an expression in one of the expression languages."""

from typing import Any

from ..data_requests import ScriptResult
from ..decision_context import DecisionContext
from ..expressions import ScriptLanguage, evaluator


def value_of(expression: Any, language: str, inputs: dict[str, Any], ctx: DecisionContext) -> ScriptResult:
    """What the expression comes to in its language, with the inputs as `$`, in Python as variables."""
    if not isinstance(expression, str) or not expression.strip():
        return ScriptResult(error="The expression is empty: write one in the step's 'expression'.")
    found = evaluator(language)
    if found is None:
        return ScriptResult(
            error=f"Unknown evaluatorType '{language}': use javascript, graaljs, python or value-param."
        )
    if isinstance(found, ScriptLanguage):
        return ctx.script(found.language, expression, inputs)
    return ScriptResult(value=found.evaluate(expression, inputs))
