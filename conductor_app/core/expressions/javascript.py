"""Evaluation of simple JavaScript in this process, with exactly the results of QuickJS.

Most conditions compare inputs: `$.turns['iteration'] < 5 && $.status == 'OPEN'`. A helper process for each of them
would cost more than the rest of the decision. This module evaluates such expressions (docs/reference/expressions.md)
and refuses everything else: other syntax, values that Python and JavaScript treat differently, and errors. QuickJS
evaluates what is refused (`conductor_app/scripts`).

The operators of these expressions have the same precedence in Python, so that Python's parser reads them: `!` is
written as `~`, and `===` as `is`. `tests/scripts/test_in_process_results.py` compares the results with QuickJS's.
"""

import ast
import math
import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

MAX_CACHED_SCRIPTS = 500
MAX_LENGTH = 1_000
MAX_TEXT_LENGTH = 10_000
MAX_DEPTH = 24
"""The maximum number of expressions inside each other."""
MAX_SAFE_INTEGER = 2**53 - 1
OBJECT_PROPERTIES = frozenset(
    {
        "toString", "toLocaleString", "valueOf", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable",
        "__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "constructor",
    }
)  # fmt: skip
UNDEFINED: Final = object()
LITERALS = {"true": True, "false": False, "null": None, "undefined": UNDEFINED}


class NeedsQuickJS(Exception):
    """A script or an operation is not one that is evaluated in this process."""


def evaluate_in_process(source: str, inputs: Any) -> Any:
    """Return the value of a script as JSON. `inputs`: the value of `$`.

    Raises:
        NeedsQuickJS: when the script, or an operation with these inputs, is not a simple one.
    """
    script = _parse(source) if len(source) <= MAX_LENGTH else None
    if script is None:
        raise NeedsQuickJS
    expression, branches = script
    value = _evaluate(expression, inputs)
    if branches:
        return branches[0 if _is_truthy(value) else 1]
    if type(value) in (dict, list) or (type(value) is str and len(value) > MAX_TEXT_LENGTH):
        raise NeedsQuickJS
    return None if value is UNDEFINED else value


_IF = re.compile(
    r"\s*if\s*\((.*)\)\s*\{\s*(true|false)\s*;?\s*\}\s*else\s*\{\s*(true|false)\s*;?\s*\}\s*;?\s*", re.DOTALL | re.ASCII
)
_END = re.compile(r"\s*;\s*\Z", re.ASCII)
# With such a call, the inputs have the methods of Java's maps and lists (sandbox.js).
_JAVA_METHODS = re.compile(r"\.[\s\ufeff]*(?:get|size)[\s\ufeff]*\(")
_TOKEN = re.compile(
    r"""
    (?P<space> [ \t\n\r]+ )
    | (?P<number> (?:0|[1-9][0-9]*) (?:\.[0-9]+)? (?![\w$.]) )
    | (?P<text> "[^"\\\x00-\x1f\u2028\u2029\ud800-\udfff]*" | '[^'\\\x00-\x1f\u2028\u2029\ud800-\udfff]*' )
    | (?P<name> [A-Za-z_$][\w$]* )
    | (?P<mark> ===|!==|==|!=|<=|>=|&&|\|\||\+\+|--|\?\?|\?\.|[<>!+\-*/%().\[\]?:] )
    """,
    re.VERBOSE | re.ASCII,
)
_REFUSED = frozenset({"++", "--", "??", "?."})
_OPERATORS = {"===": "is", "!==": "is not", "&&": "and", "||": "or", "!": "~"}


@lru_cache(maxsize=MAX_CACHED_SCRIPTS)
def _parse(source: str) -> tuple[ast.expr, tuple[bool, bool] | None] | None:
    """Return the expression of a script, and the values of `if` and `else`; None for other scripts."""
    branches = None
    if found := _IF.fullmatch(source):
        source, branches = found[1], (found[2] == "true", found[3] == "true")
    try:
        expression = ast.parse(_to_python(source if branches else _END.sub("", source)), mode="eval").body
        _check(expression, MAX_DEPTH)
    except (NeedsQuickJS, SyntaxError, RecursionError, MemoryError):
        return None
    return expression, branches


def _to_python(source: str) -> str:
    """Return an expression in Python's syntax, with `$` and the literals as names."""
    if _JAVA_METHODS.search(source):
        raise NeedsQuickJS
    words: list[str] = []
    position = 0
    while position < len(source):
        found = _TOKEN.match(source, position)
        if found is None or found[0] in _REFUSED:
            raise NeedsQuickJS
        position, text = found.end(), found[0]
        if found.lastgroup == "text":
            words.append(f"({text[1:-1]!r})")
        elif found.lastgroup == "name" and words[-1:] != ["."] and text != "$" and text not in LITERALS:
            raise NeedsQuickJS
        elif found.lastgroup != "space":
            words.append("root" if text == "$" else _OPERATORS.get(text, text))
    return _order_choices(words)


def _order_choices(words: list[str]) -> str:
    """Return the words with `A if C else B` for `C ? A : B`. Inside brackets, `?` remains and is refused."""
    depth, question, open_choices = 0, None, 0
    for place, word in enumerate(words):
        depth += (word in ("(", "[")) - (word in (")", "]"))
        if depth < 0:
            raise NeedsQuickJS
        if depth == 0 and word == "?":
            question = place if question is None else question
            open_choices += 1
        elif depth == 0 and word == ":" and question is not None:
            open_choices -= 1
            if open_choices == 0:
                condition, one = " ".join(words[:question]), _order_choices(words[question + 1 : place])
                return f"({one}) if ({condition}) else ({_order_choices(words[place + 1 :])})"
    return " ".join(words)


def _check(node: ast.expr, depth: int) -> None:
    """Check an expression, also the parts that may not be evaluated."""
    if depth == 0:
        raise NeedsQuickJS
    match node:
        case ast.Constant() | ast.Name():
            return
        case ast.Attribute(value=inner) | ast.UnaryOp(op=ast.Invert() | ast.USub() | ast.UAdd(), operand=inner):
            parts = [inner]
        case ast.Subscript(value=left, slice=right):
            parts = [left, right]
        case ast.BoolOp(values=parts):
            pass
        case ast.IfExp(test=test, body=left, orelse=right):
            parts = [test, left, right]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            parts = [left, right]
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
            parts = [left, right]
        case _:
            raise NeedsQuickJS
    for part in parts:
        _check(part, depth - 1)


def _evaluate(node: ast.expr, root: Any) -> Any:
    match node:
        case ast.Constant(value=value):
            return _checked_value(value)
        case ast.Name(id=name):
            return root if name == "root" else LITERALS[name]
        case ast.Attribute(value=base, attr=name):
            return _member(_evaluate(base, root), name)
        case ast.Subscript(value=base, slice=key):
            return _member(_evaluate(base, root), _evaluate(key, root))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _COMPARISONS[type(op)](_evaluate(left, root), _evaluate(right, root))
        case ast.BoolOp(op=op, values=operands):
            value = None
            for operand in operands:
                value = _evaluate(operand, root)
                if _is_truthy(value) is isinstance(op, ast.Or):
                    break
            return value
        case ast.IfExp(test=test, body=left, orelse=right):
            return _evaluate(left if _is_truthy(_evaluate(test, root)) else right, root)
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return not _is_truthy(_evaluate(operand, root))
        case ast.UnaryOp(op=op, operand=operand):
            value = float(_number(_evaluate(operand, root)))
            return _checked_value(-value if isinstance(op, ast.USub) else value)
        case ast.BinOp(left=left, op=op, right=right):
            return _calculate(op, _evaluate(left, root), _evaluate(right, root))
    raise NeedsQuickJS


def _checked_value(value: Any) -> Any:
    """Return a value of the inputs, with whole numbers as int, if JavaScript and Python agree about it."""
    kind = type(value)
    if kind is float and value.is_integer() and (value or math.copysign(1, value) > 0):
        kind, value = int, int(value)
    if kind is int and -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        return value
    if kind is float and math.isfinite(value) and not value.is_integer():
        return value
    if kind is str and (value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)):
        return value
    if value is None or kind in (bool, dict, list):
        return value
    raise NeedsQuickJS


def _member(value: Any, key: Any) -> Any:
    """Return `value[key]`."""
    kind = type(value)
    if kind is dict and type(key) in (str, int):
        name = str(key)
        if name in value and name != "__proto__":
            return _checked_value(value[name])
        if name not in OBJECT_PROPERTIES:
            return UNDEFINED
    elif key == "length" and (kind is list or (kind is str and value.isascii())):
        return len(value)
    elif kind is list and type(key) is int and key >= 0:
        return _checked_value(value[key]) if key < len(value) else UNDEFINED
    raise NeedsQuickJS


def _is_truthy(value: Any) -> bool:
    return value is not UNDEFINED and (bool(value) or type(value) in (dict, list))


def _number(value: Any) -> int | float:
    if type(value) in (int, float):
        return value
    raise NeedsQuickJS


def _equal(left: Any, right: Any) -> bool:
    """Return `left == right`, which QuickJS decides for objects and for values of different types."""
    if left in (None, UNDEFINED) or right in (None, UNDEFINED):
        return left in (None, UNDEFINED) and right in (None, UNDEFINED)
    if {type(left), type(right)} <= {int, float} or type(left) is type(right) in (bool, str):
        return bool(left == right)
    raise NeedsQuickJS


def _identical(left: Any, right: Any) -> bool:
    """Return `left === right`."""
    if left in (None, UNDEFINED) or right in (None, UNDEFINED):
        return left is right
    return _equal(left, right)


def _order_operator(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def run(left: Any, right: Any) -> bool:
        # JavaScript compares UTF-16 units, and Python characters.
        if type(left) is str and type(right) is str and left.isascii() and right.isascii():
            return compare(left, right)
        return compare(_number(left), _number(right))

    return run


_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: _equal,
    ast.NotEq: lambda left, right: not _equal(left, right),
    ast.Is: _identical,
    ast.IsNot: lambda left, right: not _identical(left, right),
    ast.Lt: _order_operator(operator.lt),
    ast.Gt: _order_operator(operator.gt),
    ast.LtE: _order_operator(operator.le),
    ast.GtE: _order_operator(operator.ge),
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], int | float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: math.fmod,
}


def _calculate(op: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(op, ast.Add) and type(left) is str and type(right) is str:
        return left + right
    try:
        # As float, so that -0, NaN and numbers beyond the safe integers are recognized.
        return _checked_value(float(_ARITHMETIC[type(op)](float(_number(left)), float(_number(right)))))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise NeedsQuickJS from None
