"""Evaluation of simple JavaScript in this process, with exactly the results of QuickJS.

Most scripts of workflows compare, compute and select: `$.turns['iteration'] < 5`, `$.total > 10 ? 'large' : 'small'`.
A helper process for each of them would cost more than the rest of the decision. This package evaluates a subset of the
language (docs/reference/javascript.md) and refuses everything besides it: other syntax, values that Python and
JavaScript treat differently, and errors. QuickJS evaluates what is refused (`conductor_app/scripts`).

An evaluation is bounded: the subset has no loops and no recursion, and the lengths of sources, texts and results are
limited. `tests/scripts/test_in_process_results.py` compares the results with those of QuickJS.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from .script_parser import MAX_LENGTH, compile_script
from .script_values import NeedsQuickJS, result_of, value_of_input

MAX_CACHED_SCRIPTS = 500


def evaluate_in_process(source: str, inputs: Any) -> Any:
    """Return the value of a script as JSON. `inputs`: the value of `$`.

    Raises:
        NeedsQuickJS: when the script, or an operation with these inputs, is not part of the subset.
    """
    script = _compile(source) if len(source) <= MAX_LENGTH else None
    if script is None:
        raise NeedsQuickJS
    return result_of(script({"$": value_of_input(inputs)}))


@lru_cache(maxsize=MAX_CACHED_SCRIPTS)
def _compile(source: str) -> Callable[[dict[str, Any]], Any] | None:
    try:
        return compile_script(source)
    except NeedsQuickJS:
        return None


__all__ = ["NeedsQuickJS", "evaluate_in_process"]
