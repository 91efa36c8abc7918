"""Values of expressions in the expression languages."""

from typing import Any

from ..data_requests import ScriptResult
from ..decision_context import DecisionContext
from ..expressions import ScriptLanguage, evaluator


def value_of(
    expression: Any, language: str, inputs: dict[str, Any], ctx: DecisionContext, field: str = "expression"
) -> ScriptResult:
    """Return the value of the expression, which reads the inputs as `$`, or, in Python, as variables.

    `field`: where the step has the expression.
    """
    if not isinstance(expression, str) or not expression.strip():
        return ScriptResult(error=f"The expression is empty. Set the '{field}' of the step.")
    found = evaluator(language)
    if found is None:
        return ScriptResult(
            error=f"Unknown evaluatorType '{language}'. Use javascript, graaljs, python or value-param."
        )
    if isinstance(found, ScriptLanguage):
        return ctx.script(found.language, expression, inputs)
    return ScriptResult(value=found.evaluate(expression, inputs))
