"""Evaluation of simple JavaScript in this process, with exactly the results of QuickJS.

Most scripts of workflows compare, compute and select: `$.turns['iteration'] < 5`, `$.total > 10 ? 'large' : 'small'`.
A helper process for each of them would cost more than the rest of the decision. This module evaluates a subset of the
language (docs/reference/javascript.md) and refuses everything besides it: other syntax, values that Python and
JavaScript treat differently, and errors. QuickJS evaluates what is refused (`conductor_app/scripts`).

A script is a list of statements: expressions, declarations of variables, assignments, `if`, and calls of functions that
it declares. A function contains the same statements and `return`, and no calls, so that nothing repeats. Names can only
be used after their declaration in the source, and no name hides another, so that their scopes need no further rules.

An evaluation is bounded: the subset has no loops and no recursion, and the lengths of sources, texts and results are
limited. `tests/scripts/test_in_process_results.py` compares the results with those of QuickJS.
"""

import re
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

from . import javascript_values as values
from .javascript_values import (
    EMPTY,
    UNDEFINED,
    Evaluate,
    Frame,
    NeedsQuickJS,
    choose_operand,
    define,
    discard_value,
    evaluate_all,
    evaluate_until_return,
    give,
    give_nothing,
    give_undefined,
    read_path,
    result_of,
    store_value,
    value_of_input,
)

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
        return _compile_script(source)
    except NeedsQuickJS:
        return None


MAX_LENGTH = 1_000
# With such a call, the inputs have the methods of Java's maps and lists (sandbox.js).
JAVA_METHODS = re.compile(r"\.[\s\ufeff]*(?:get|size)[\s\ufeff]*\(")


def _compile_script(source: str) -> Evaluate:
    """Return the function that evaluates a script.

    Raises:
        NeedsQuickJS: when the script is not part of the subset.
    """
    if JAVA_METHODS.search(source):
        raise NeedsQuickJS
    return ScriptParser(_read_tokens(source)).parse()


# Sources with other characters, such as control characters or letters of other alphabets in names, are refused.
_TOKEN = re.compile(
    r"""
    (?P<space> [ \t\n\r]+ | //[^\x00-\x08\x0a-\x1f\u2028\u2029\ud800-\udfff]* | /\*(?:[^*\ud800-\udfff]|\*(?!/))*\*/ )
    | (?P<number> (?:0|[1-9][0-9]*) (?:\.[0-9]+)? (?![\w$.]) )
    | (?P<text> "(?:[^"\\\x00-\x1f\u2028\u2029\ud800-\udfff]|\\["'\\/nrt])*"
              | '(?:[^'\\\x00-\x1f\u2028\u2029\ud800-\udfff]|\\["'\\/nrt])*' )
    | (?P<name> [A-Za-z_$][\w$]* )
    | (?P<mark> >>>=|\.\.\.|===|!==|\*\*=|<<=|>>=|>>>|&&=|\|\|=|\?\?=|=>|==|!=|<=|>=|&&|\|\||\?\?|\?\.(?![0-9])
              | \+\+|--|\+=|-=|\*=|/=|%=|&=|\|=|\^=|<<|>>|\*\*|[{}()\[\];,<>+\-*/%&|^!~?:=.] )
    """,
    re.VERBOSE | re.ASCII,
)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_LINE_END = re.compile(r"[\n\r\u2028\u2029]")


class ScriptToken(NamedTuple):
    """A token. `kind`: number, text, name, mark or end. `begins_line`: a line ends between the last token and it."""

    kind: str
    text: str
    begins_line: bool


def _read_tokens(source: str) -> list[ScriptToken]:
    """Return the tokens of a script, with the end as the last one.

    Raises:
        NeedsQuickJS: when a part of the source is no token of the subset.
    """
    tokens, position, begins_line = [], 0, False
    while position < len(source):
        found = _TOKEN.match(source, position)
        if found is None or found.lastgroup is None:
            raise NeedsQuickJS
        position = found.end()
        if found.lastgroup == "space":
            begins_line = begins_line or _LINE_END.search(found[0]) is not None
            continue
        text = found[0]
        tokens.append(
            ScriptToken(found.lastgroup, _text_value(text) if found.lastgroup == "text" else text, begins_line)
        )
        begins_line = False
    return [*tokens, ScriptToken("end", "", begins_line)]


def _text_value(literal: str) -> str:
    """Return the text that a literal stands for."""
    return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), literal[1:-1])


MAX_DEPTH = 24
"""The maximum number of expressions and statements inside each other."""
LITERALS: dict[str, Any] = {"undefined": UNDEFINED, "null": None, "true": True, "false": False}
EQUALITY: dict[str, Callable[[Any, Any], Any]] = {
    "==": values.loosely_equal,
    "!=": lambda left, right: not values.loosely_equal(left, right),
    "===": values.strictly_equal,
    "!==": lambda left, right: not values.strictly_equal(left, right),
}
ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "<": values.is_less,
    ">": lambda left, right: values.is_less(right, left),
    "<=": values.is_at_most,
    ">=": lambda left, right: values.is_at_most(right, left),
}
SUMS: dict[str, Callable[[Any, Any], Any]] = {"+": values.add, "-": values.subtract}
PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "*": values.multiply,
    "/": values.divide,
    "%": values.remainder,
}
LEVELS = (EQUALITY, ORDER, SUMS, PRODUCTS)
"""Binary operators by precedence, lowest first. All are left-associative."""
UNARY: dict[str, Callable[[Any], Any]] = {
    "!": lambda value: not values.is_truthy(value),
    "-": values.negate,
    "+": values.to_number,
    "typeof": values.type_name,
}


class ExpressionParser:
    """Parser of expressions. Its methods consume tokens, and return functions that evaluate what they have read."""

    def __init__(self, tokens: list[ScriptToken]) -> None:
        self._tokens, self._position, self._depth = tokens, 0, 0

    def _is_variable(self, name: str) -> bool:
        """Return True if the name is a variable that can be read here."""
        raise NotImplementedError

    @property
    def _next(self) -> ScriptToken:
        return self._tokens[self._position]

    def _peek(self, *texts: str) -> bool:
        """Return True if the next tokens are these marks or names."""
        ahead = self._tokens[self._position : self._position + len(texts)]
        return len(ahead) == len(texts) and all(
            token.text == text and token.kind in ("mark", "name") for token, text in zip(ahead, texts, strict=True)
        )

    def _take(self, *texts: str) -> bool:
        """Consume the next tokens if they are these marks or names."""
        if not self._peek(*texts):
            return False
        self._position += len(texts)
        return True

    def _expect(self, *texts: str) -> None:
        if not self._take(*texts):
            raise NeedsQuickJS

    def _take_one_of(self, texts: Container[str]) -> str | None:
        token = self._next
        if token.kind in ("mark", "name") and token.text in texts:
            self._position += 1
            return token.text
        return None

    def _take_kind(self, kind: str) -> str:
        token = self._next
        if token.kind != kind:
            raise NeedsQuickJS
        self._position += 1
        return token.text

    @contextmanager
    def _nested(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise NeedsQuickJS
        yield
        self._depth -= 1

    def _expression(self) -> Evaluate:
        with self._nested():
            condition = self._choice()
            if not self._take("?"):
                return condition
            one = self._expression()
            self._expect(":")
            other = self._expression()
        return lambda frame: one(frame) if values.is_truthy(condition(frame)) else other(frame)

    def _choice(self) -> Evaluate:
        """Return operands connected by `??`, or by `||` and `&&`. JavaScript does not allow to mix them."""
        first = self._binary(0)
        if self._peek("??"):
            operands = self._operands(first, "??", lambda: self._binary(0))
            choice = choose_operand(operands, lambda value: not values.is_nullish(value))
        else:
            parts = self._operands(self._conjunction(first), "||", lambda: self._conjunction(self._binary(0)))
            choice = choose_operand(parts, values.is_truthy)
        if self._peek("??") or self._peek("||") or self._peek("&&"):
            raise NeedsQuickJS
        return choice

    def _conjunction(self, first: Evaluate) -> Evaluate:
        operands = self._operands(first, "&&", lambda: self._binary(0))
        return choose_operand(operands, lambda value: not values.is_truthy(value))

    def _operands(self, first: Evaluate, mark: str, parse: Callable[[], Evaluate]) -> list[Evaluate]:
        operands = [first]
        while self._take(mark):
            operands.append(parse())
        return operands

    def _binary(self, level: int) -> Evaluate:
        if level == len(LEVELS):
            return self._unary()
        first, rest = self._binary(level + 1), []
        while mark := self._take_one_of(LEVELS[level]):
            rest.append((LEVELS[level][mark], self._binary(level + 1)))
        if not rest:
            return first

        def run(frame: Frame) -> Any:
            value = first(frame)
            for operate, operand in rest:
                value = operate(value, operand(frame))
            return value

        return run

    def _unary(self) -> Evaluate:
        if mark := self._take_one_of(UNARY):
            operate = UNARY[mark]
            with self._nested():
                operand = self._unary()
            return lambda frame: operate(operand(frame))
        return self._member()

    def _member(self) -> Evaluate:
        base = self._primary()
        keys: list[tuple[bool, Evaluate]] = []
        while mark := self._take_one_of(("?.", ".", "[")):
            is_optional = mark == "?."
            if mark == "[" or (is_optional and self._take("[")):
                keys.append((is_optional, self._expression()))
                self._expect("]")
            else:
                keys.append((is_optional, give(self._take_kind("name"))))
        return read_path(base, keys) if keys else base

    def _primary(self) -> Evaluate:
        token = self._next
        self._position += 1
        if token.kind == "number":
            return give(values.value_of_input(float(token.text)))
        if token.kind == "text":
            return give(values.value_of_input(token.text))
        if token.kind == "name" and token.text in LITERALS:
            return give(LITERALS[token.text])
        if token.kind == "name" and (token.text == "$" or self._is_variable(token.text)):
            name = token.text
            return lambda frame: frame[name]
        if token.kind == "mark":
            return self._in_brackets(token.text)
        raise NeedsQuickJS

    def _in_brackets(self, mark: str) -> Evaluate:
        if mark == "(":
            inner = self._expression()
            self._expect(")")
            return inner
        if mark == "[":
            elements = self._elements("]")
            return lambda frame: [element(frame) for element in elements]
        if mark == "{":
            return self._object()
        raise NeedsQuickJS

    def _elements(self, end: str) -> list[Evaluate]:
        """Return the expressions up to the closing bracket. One comma may follow the last."""
        elements: list[Evaluate] = []
        while not self._take(end):
            elements.append(self._expression())
            if not self._peek(end):
                self._expect(",")
        return elements

    def _object(self) -> Evaluate:
        members: dict[str, Evaluate] = {}
        while not self._take("}"):
            name = self._take_kind("text" if self._next.kind == "text" else "name")
            if name == "__proto__" or name in members:
                raise NeedsQuickJS
            self._expect(":")
            members[name] = self._expression()
            if not self._peek("}"):
                self._expect(",")
        return lambda frame: {name: member(frame) for name, member in members.items()}


RESERVED = frozenset(
    {
        "await", "break", "case", "catch", "class", "const", "continue", "debugger", "default", "delete", "do",
        "else", "enum", "export", "extends", "false", "finally", "for", "function", "if", "implements", "import",
        "in", "instanceof", "interface", "let", "new", "null", "package", "private", "protected", "public",
        "return", "static", "super", "switch", "this", "throw", "true", "try", "typeof", "var", "void", "while",
        "with", "yield", "arguments", "async", "eval", "get", "of", "set", "undefined", "Infinity", "NaN",
        "globalThis", "$",
    }
)  # fmt: skip
"""Names that cannot be variables: those of the language, and those with a meaning of their own."""


class Scope:
    """The names that a script or a function has declared so far: their kinds, and which are visible."""

    def __init__(self, parameters: tuple[str, ...] = ()) -> None:
        self.kinds = dict.fromkeys(parameters, "var")
        self.visible = set(parameters)

    def declare(self, name: str, kind: str, has_value: bool) -> None:
        """Declare a name. One that an ended block has declared needs the same kind and a value."""
        is_clear = name not in self.visible and self.kinds.get(name, kind) == kind
        if name in RESERVED or not is_clear or (name in self.kinds and not has_value):
            raise NeedsQuickJS
        self.kinds[name] = kind
        self.visible.add(name)


class ScriptParser(ExpressionParser):
    """Parser of one script."""

    def __init__(self, tokens: list[ScriptToken]) -> None:
        super().__init__(tokens)
        self._scope = Scope()
        self._blocks = 0
        self._is_in_function = False
        self._functions: dict[str, Callable[[list[Any], Frame], Any]] = {}

    def parse(self) -> Evaluate:
        """Return the function that evaluates the script: it returns the value of the last statement that has one."""
        return define(evaluate_all(list(self._statements("end"))))

    def _is_variable(self, name: str) -> bool:
        return name in self._scope.visible

    def _statements(self, end: str) -> Iterator[Evaluate]:
        while not (self._next.kind == "end" if end == "end" else self._peek(end)):
            with self._nested():
                yield self._statement()
        self._position += 1

    def _statement(self) -> Evaluate:
        token = self._next
        if self._take(";"):
            return give_nothing
        if self._take("{"):
            return self._block()
        if token.kind == "name":
            if self._take("if"):
                return self._if()
            if kind := self._take_one_of(("var", "let", "const")):
                return self._declaration(kind)
            if self._is_in_function and self._take("return"):
                return self._return()
            if self._peek(token.text, "="):
                return self._assignment(token.text)
        if not self._is_in_function and not self._blocks and (call := self._function_or_call()):
            return call
        if token.kind == "text" and token.text == "use strict":
            raise NeedsQuickJS
        value = self._expression()
        self._end_statement()
        return discard_value(value) if self._is_in_function else value

    def _end_statement(self) -> None:
        """Consume the end of a statement: a semicolon, or what JavaScript inserts one for."""
        if self._take(";") or self._peek("}") or self._next.kind == "end":
            return
        if not self._next.begins_line or not (self._next.kind in ("name", "number", "text") or self._peek("{")):
            raise NeedsQuickJS

    def _block(self) -> Evaluate:
        visible = set(self._scope.visible)
        self._blocks += 1
        statements = list(self._statements("}"))
        self._blocks -= 1
        self._scope.visible = visible
        return evaluate_until_return(statements) if self._is_in_function else evaluate_all(statements)

    def _if(self) -> Evaluate:
        branches: list[tuple[Evaluate, Evaluate]] = []
        otherwise: Evaluate = give_nothing
        while True:
            self._expect("(")
            condition = self._expression()
            self._expect(")")
            branches.append((condition, self._branch()))
            if not self._take("else"):
                break
            if not self._take("if"):
                otherwise = self._branch()
                break
        # Without a value, `if` has the value undefined. In a function, it has none.
        missing = EMPTY if self._is_in_function else UNDEFINED

        def run(frame: Frame) -> Any:
            for condition, branch in branches:
                if values.is_truthy(condition(frame)):
                    value = branch(frame)
                    break
            else:
                value = otherwise(frame)
            return missing if value is EMPTY else value

        return run

    def _branch(self) -> Evaluate:
        """Return the statement under a condition. Declarations without braces are rare, and have rules of their own."""
        if self._peek("var") or self._peek("let") or self._peek("const") or self._peek("function"):
            raise NeedsQuickJS
        self._blocks += 1
        with self._nested():
            statement = self._statement()
        self._blocks -= 1
        return statement

    def _declaration(self, kind: str) -> Evaluate:
        parts: list[Evaluate] = []
        while True:
            name = self._take_kind("name")
            value: Evaluate = give_undefined
            has_value = self._take("=")
            if has_value:
                value = self._expression()
            elif kind == "const":
                raise NeedsQuickJS
            self._scope.declare(name, kind, has_value)
            parts.append(discard_value(store_value(name, value)))
            if not self._take(","):
                break
        self._end_statement()
        return evaluate_all(parts)

    def _assignment(self, name: str) -> Evaluate:
        self._position += 2
        if name not in self._scope.visible or self._scope.kinds[name] == "const":
            raise NeedsQuickJS
        stored = store_value(name, self._expression())
        self._end_statement()
        return discard_value(stored) if self._is_in_function else stored

    def _return(self) -> Evaluate:
        if self._peek(";") or self._peek("}"):
            self._end_statement()
            return give_undefined
        if self._next.begins_line:
            raise NeedsQuickJS
        value = self._expression()
        self._end_statement()
        return value

    def _function_or_call(self) -> Evaluate | None:
        """Return a declaration of a function, or the call of one; None if the statement is something else."""
        if self._take("function"):
            name = self._take_kind("name")
            self._scope.declare(name, "function", has_value=True)
            self._scope.visible.discard(name)
            self._functions[name] = self._parameters_and_body()
            return give_nothing
        if self._next.kind == "name" and self._next.text in self._functions:
            called = self._functions[self._take_kind("name")]
            return self._call(called)
        if self._take("(", "function"):
            if self._next.kind == "name" and self._take_kind("name") in RESERVED:
                raise NeedsQuickJS
            called = self._parameters_and_body()
            if self._take(")"):
                return self._call(called)
            call = self._arguments(called)
            self._expect(")")
            self._end_statement()
            return call
        if self._peek("(", "(") and self._is_arrow(self._position + 1):
            self._position += 1
            called = self._parameters_and_body(is_arrow=True)
            self._expect(")")
            return self._call(called)
        return None

    def _is_arrow(self, position: int) -> bool:
        """Return True if an arrow follows the parenthesis at this position and names."""
        position += 1
        while self._tokens[position].kind == "name" or self._tokens[position].text == ",":
            position += 1
        return [token.text for token in self._tokens[position : position + 2]] == [")", "=>"]

    def _parameters_and_body(self, is_arrow: bool = False) -> Callable[[list[Any], Frame], Any]:
        self._expect("(")
        names: list[str] = []
        while not self._take(")"):
            names.append(self._take_kind("name"))
            if not self._peek(")"):
                self._expect(",")
        if RESERVED.intersection(names) or len(set(names)) < len(names):
            raise NeedsQuickJS
        outer, self._scope, self._is_in_function = self._scope, Scope(tuple(names)), True
        if is_arrow:
            self._expect("=>")
        if is_arrow and not self._peek("{"):
            body = self._expression()
        else:
            self._expect("{")
            body = evaluate_until_return(list(self._statements("}")))
        self._scope, self._is_in_function = outer, False
        body = define(body)

        def call(arguments: list[Any], frame: Frame) -> Any:
            return body(
                {**dict.fromkeys(names, UNDEFINED), **dict(zip(names, arguments, strict=False)), "$": frame["$"]}
            )

        return call

    def _call(self, called: Callable[[list[Any], Frame], Any]) -> Evaluate:
        call = self._arguments(called)
        self._end_statement()
        return call

    def _arguments(self, called: Callable[[list[Any], Frame], Any]) -> Evaluate:
        self._expect("(")
        arguments = self._elements(")")
        return lambda frame: called([argument(frame) for argument in arguments], frame)
