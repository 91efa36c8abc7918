"""Parser of expressions. It returns functions instead of a tree."""

from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import Any

from . import script_values as values
from .script_evaluation import Evaluate, Frame, choose_operand, give, read_path
from .script_tokens import ScriptToken
from .script_values import UNDEFINED, NeedsQuickJS

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
