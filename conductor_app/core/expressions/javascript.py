"""Parser of the subset of JavaScript that is evaluated in this process.

A script is a list of statements: expressions, declarations of variables, assignments, `if`, and calls of functions that
it declares. A function contains the same statements and `return`, and no calls, so that nothing repeats. Names can only
be used after their declaration in the source, and no name hides another, so that their scopes need no further rules.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from . import script_values as values
from .script_evaluation import (
    EMPTY,
    Evaluate,
    Frame,
    define,
    discard_value,
    evaluate_all,
    evaluate_until_return,
    give_nothing,
    give_undefined,
    store_value,
)
from .script_expressions import ExpressionParser
from .script_tokens import ScriptToken, read_tokens
from .script_values import UNDEFINED, NeedsQuickJS

MAX_LENGTH = 1_000
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
# With such a call, the inputs have the methods of Java's maps and lists (sandbox.js).
JAVA_METHODS = re.compile(r"\.[\s\ufeff]*(?:get|size)[\s\ufeff]*\(")


def compile_script(source: str) -> Evaluate:
    """Return the function that evaluates a script.

    Raises:
        NeedsQuickJS: when the script is not part of the subset.
    """
    if JAVA_METHODS.search(source):
        raise NeedsQuickJS
    return ScriptParser(read_tokens(source)).parse()


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
