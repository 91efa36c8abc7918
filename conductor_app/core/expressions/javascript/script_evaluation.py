"""The functions that a parsed script consists of: each evaluates a part of it in a frame."""

from collections.abc import Callable
from typing import Any

from . import script_values as values
from .script_values import UNDEFINED

Frame = dict[str, Any]
"""The variables of a call and `$`, by name."""
Evaluate = Callable[[Frame], Any]
EMPTY: Any = object()
"""The completion of a statement without a value."""


def give_nothing(frame: Frame) -> Any:
    return EMPTY


def give_undefined(frame: Frame) -> Any:
    return UNDEFINED


def give(value: Any) -> Evaluate:
    return lambda frame: value


def define(evaluate: Evaluate) -> Evaluate:
    """Return the evaluation with `undefined` in place of no value."""

    def run(frame: Frame) -> Any:
        value = evaluate(frame)
        return UNDEFINED if value is EMPTY else value

    return run


def discard_value(evaluate: Evaluate) -> Evaluate:
    def run(frame: Frame) -> Any:
        evaluate(frame)
        return EMPTY

    return run


def store_value(name: str, evaluate: Evaluate) -> Evaluate:
    def run(frame: Frame) -> Any:
        frame[name] = value = evaluate(frame)
        return value

    return run


def evaluate_all(statements: list[Evaluate]) -> Evaluate:
    """Return the evaluation of statements of a script: the last value counts."""
    if len(statements) == 1:
        return statements[0]

    def run(frame: Frame) -> Any:
        completion = EMPTY
        for statement in statements:
            value = statement(frame)
            if value is not EMPTY:
                completion = value
        return completion

    return run


def evaluate_until_return(statements: list[Evaluate]) -> Evaluate:
    """Return the evaluation of statements of a function, where only `return` has a value."""

    def run(frame: Frame) -> Any:
        for statement in statements:
            value = statement(frame)
            if value is not EMPTY:
                return value
        return EMPTY

    return run


def choose_operand(operands: list[Evaluate], decides: Callable[[Any], bool]) -> Evaluate:
    """Return the evaluation of a short-circuit operator: the first operand that decides, or the last one."""
    if len(operands) == 1:
        return operands[0]

    def run(frame: Frame) -> Any:
        for operand in operands:
            value = operand(frame)
            if decides(value):
                break
        return value

    return run


def read_path(base: Evaluate, keys: list[tuple[bool, Evaluate]]) -> Evaluate:
    def run(frame: Frame) -> Any:
        value = base(frame)
        for is_optional, key in keys:
            if is_optional and values.is_nullish(value):
                return UNDEFINED
            value = values.member_of(value, key(frame))
        return value

    return run
