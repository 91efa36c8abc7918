"""The values of scripts, the operators on them, and the functions that a parsed script consists of.

Numbers are int where they are whole, so `5.0` becomes 5. Objects and arrays are dicts and lists of the inputs, which
no script changes. NaN, infinity, -0 and whole numbers beyond 2⁵³ are refused.
"""

import math
import re
from collections.abc import Callable
from typing import Any, Final

MAX_SAFE_INTEGER = 2**53 - 1
MAX_TEXT_LENGTH = 10_000
MAX_RESULT_SIZE = 10_000
"""The maximum size of a result: each value counts as 1, and a text as 1 more for every 100 characters."""
MAX_RESULT_DEPTH = 50

OBJECT_PROPERTIES = frozenset(
    {
        "toString", "toLocaleString", "valueOf", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable",
        "__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "constructor",
    }
)  # fmt: skip
"""The properties that every object inherits."""
NOT_A_NUMBER = float("nan")
_WHOLE = re.compile(r"[1-9][0-9]{0,14}|0")
_LETTER = re.compile(r"[A-HJ-Za-z]")


class NeedsQuickJS(Exception):
    """A script or an operation is not part of the subset that is evaluated in this process."""


class Undefined:
    """The type of `undefined`."""

    __slots__ = ()


UNDEFINED: Final = Undefined()
_TYPES: dict[type, str] = {
    Undefined: "undefined",
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    dict: "object",
    list: "object",
}


def value_of_input(value: Any) -> Any:
    """Return a value from the inputs as scripts see it."""
    kind = type(value)
    if kind is str:
        return _checked_text(value)
    if kind is int:
        return _checked_number(value)
    if kind is float:
        return _checked_number(value)
    if kind not in _TYPES:
        raise NeedsQuickJS
    return value


def result_of(value: Any) -> Any:
    """Return the result of a script as JSON."""
    return _copy(value, [MAX_RESULT_SIZE], 0)


def _member_of(value: Any, key: Any) -> Any:
    """Return `value[key]`."""
    kind = type(value)
    if kind is dict:
        name = key if type(key) is str else _number_text(key)
        if name in value and name != "__proto__":
            return value_of_input(value[name])
        if name in OBJECT_PROPERTIES:
            raise NeedsQuickJS
        return UNDEFINED
    if kind is list or kind is str:
        if key == "length":
            return len(value) if kind is list else _length(value)
        index = int(key) if type(key) is str and _WHOLE.fullmatch(key) else key
        if type(index) is int and index >= 0 and (kind is list or value.isascii()):
            return value_of_input(value[index]) if index < len(value) else UNDEFINED
    raise NeedsQuickJS


def type_name(value: Any) -> str:
    """Return `typeof value`."""
    name = _TYPES[type(value)]
    return "object" if name == "null" else name


def is_truthy(value: Any) -> bool:
    """Return True if a condition with this value holds."""
    return value is not UNDEFINED and (bool(value) or type(value) in (dict, list))


def is_nullish(value: Any) -> bool:
    """Return True for `null` and `undefined`."""
    return value is None or value is UNDEFINED


def strictly_equal(left: Any, right: Any) -> bool:
    """Return `left === right`."""
    kind = _TYPES[type(left)]
    if kind != _TYPES[type(right)]:
        return False
    if kind == "object":
        # The inputs may contain one object in two places, which are two objects for a script.
        raise NeedsQuickJS
    return bool(left == right)


def loosely_equal(left: Any, right: Any) -> bool:
    """Return `left == right`."""
    if is_nullish(left) or is_nullish(right):
        return is_nullish(left) and is_nullish(right)
    if _TYPES[type(left)] == _TYPES[type(right)]:
        return strictly_equal(left, right)
    return _number_of(left) == _number_of(right)


def is_less(left: Any, right: Any) -> bool:
    """Return `left < right`."""
    left, right = _comparable(left, right)
    return bool(left < right)


def is_at_most(left: Any, right: Any) -> bool:
    """Return `left <= right`."""
    left, right = _comparable(left, right)
    return bool(left <= right)


def add(left: Any, right: Any) -> Any:
    """Return `left + right`, a sum or a text."""
    if type(left) is str or type(right) is str:
        text = _text_of(left) + _text_of(right)
        if len(text) > MAX_TEXT_LENGTH:
            raise NeedsQuickJS
        return text
    return _checked_number(_number_of(left) + _number_of(right))


def subtract(left: Any, right: Any) -> int | float:
    """Return `left - right`."""
    return _checked_number(_number_of(left) - _number_of(right))


def multiply(left: Any, right: Any) -> int | float:
    """Return `left * right`."""
    one, other = _number_of(left), _number_of(right)
    product = one * other
    # The product of 0 and a negative number is -0.
    if product == 0 and (one < 0 or other < 0):
        raise NeedsQuickJS
    return _checked_number(product)


def divide(left: Any, right: Any) -> int | float:
    """Return `left / right`."""
    return _checked_number(_number_of(left) / _divisor(right))


def remainder(left: Any, right: Any) -> int | float:
    """Return `left % right`, which has the sign of `left`."""
    return _checked_number(math.fmod(_number_of(left), _divisor(right)))


def negate(value: Any) -> int | float:
    """Return `-value`."""
    number = _number_of(value)
    if number == 0:
        raise NeedsQuickJS
    return _checked_number(-number)


def to_number(value: Any) -> int | float:
    """Return `+value`."""
    return _checked_number(_number_of(value))


def _checked_number(number: int | float) -> int | float:
    if type(number) is float:
        if not number.is_integer():
            # NaN and infinity are no integers.
            if math.isfinite(number):
                return number
            raise NeedsQuickJS
        if number == 0 and math.copysign(1, number) < 0:
            raise NeedsQuickJS
        number = int(number)
    if -MAX_SAFE_INTEGER <= number <= MAX_SAFE_INTEGER:
        return number
    raise NeedsQuickJS


def _checked_text(text: str) -> str:
    """Return the text if JavaScript and Python agree about its characters, and it is quickly determined."""
    if text.isascii():
        return text
    if len(text) > MAX_TEXT_LENGTH or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise NeedsQuickJS
    return text


def _length(text: str) -> int:
    """Return the length in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def _number_of(value: Any) -> int | float:
    """Return the number that an operator makes of a value, which may be NaN."""
    kind = type(value)
    if kind is int or kind is float:
        return value
    if kind is bool:
        return int(value)
    if value is None or value == "":
        return 0
    if value is UNDEFINED:
        return NOT_A_NUMBER
    if kind is str:
        if _WHOLE.fullmatch(value):
            return int(value)
        # Other texts than `Infinity` that begin with a letter are not numbers.
        if _LETTER.match(value):
            return NOT_A_NUMBER
    raise NeedsQuickJS


def _divisor(value: Any) -> int | float:
    number = _number_of(value)
    if number == 0:
        raise NeedsQuickJS
    return number


def _text_of(value: Any) -> str:
    """Return the text that `+` makes of a value."""
    kind = type(value)
    if kind is str:
        return value
    if kind is bool:
        return "true" if value else "false"
    if value is None:
        return "null"
    return "undefined" if value is UNDEFINED else _number_text(value)


def _number_text(value: Any) -> str:
    """Return a number as text. Smaller numbers have another notation in Python than in JavaScript."""
    if type(value) is int:
        return str(value)
    if type(value) is float and abs(value) >= 1e-4:
        return repr(value)
    raise NeedsQuickJS


def _comparable(left: Any, right: Any) -> tuple[Any, Any]:
    """Return the texts or numbers that an order operator compares."""
    if type(left) is str and type(right) is str:
        # JavaScript compares UTF-16 units, and Python characters.
        if left.isascii() and right.isascii():
            return left, right
        raise NeedsQuickJS
    return _number_of(left), _number_of(right)


def _copy(value: Any, budget: list[int], depth: int) -> Any:
    """Return a copy of the value, within the budget and the depth."""
    value = value_of_input(value)
    budget[0] -= 1 + (len(value) // 100 if type(value) is str else 0)
    if budget[0] < 0 or depth > MAX_RESULT_DEPTH:
        raise NeedsQuickJS
    if value is UNDEFINED:
        return None
    if type(value) is list:
        return [_copy(each, budget, depth + 1) for each in value]
    if type(value) is dict:
        return {_copied_name(name, budget): _copy(each, budget, depth + 1) for name, each in value.items()}
    return value


def _copied_name(name: Any, budget: list[int]) -> str:
    # JavaScript moves names that are array indexes to the front.
    if type(name) is not str or name == "__proto__" or name[:1].isdigit():
        raise NeedsQuickJS
    budget[0] -= len(name) // 100
    return _checked_text(name)


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
            if is_optional and is_nullish(value):
                return UNDEFINED
            value = _member_of(value, key(frame))
        return value

    return run
