"""The language of `${…}`: inputs and outputs written as JSON with expressions in their texts."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Any

from ..errors import PayloadOverLimit
from .json_text import expression_texts, expression_texts_by_path, java_text, json_length, json_text, replace_texts
from .jsonpath import MAX_PATH_LENGTH, compile_path
from .jsonpath_segments import ABSENT, BadPath, Path, Property, Reading


class MissingReference:
    """The result of a scope for a missing target."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = MissingReference()

Scope = Callable[[str, str], Any]

_SECRETS = ("workflow", "secrets")
MAX_CACHED_REFERENCE = 1_000


class Reference:
    """A reference `root.key.path`: the value of the scope at (root, key), and a path into it."""

    problem = ""

    def __init__(self, text: str, root: str, key: str, path: Path):
        self.text = text
        self.root = root
        self.key = key
        self.path = path
        self.needs = frozenset({(root, key)}).union(*(_split_path(inner) for inner in path.absolutes))

    def find(self, scope: Scope, source: str) -> Any:
        """Return the value in this scope, or ABSENT. `source`: the expression as written."""
        document = scope(self.root, self.key)
        if document is MISSING:
            return ABSENT
        try:
            return self.path.find(document, lambda inner, reading: _find_absolute(inner, scope, reading))
        except BadPath:
            return ABSENT

    def value(self, scope: Scope, source: str) -> Any:
        """Return the value in this scope, or the substitute for a missing one."""
        found = self.find(scope, source)
        return self.path.nothing if found is ABSENT else found

    def text_of(self, value: Any) -> str:
        """Return the value as text. Lists that an indefinite path has collected are printed as JSON."""
        if isinstance(value, list) and not self.path.is_definite:
            return json_text(value)
        return java_text(value)


class NameReference(Reference):
    """A bare name, such as `CPEWF_TASK_ID`; an unknown one stays in the text as it was written."""

    def value(self, scope: Scope, source: str) -> Any:
        found = self.find(scope, source)
        return source if found is ABSENT else found


class SecretReference(Reference):
    """`workflow.secrets.NAME`: it stays in the text until a worker claims the task."""

    def __init__(self, text: str, path: Path):
        super().__init__(text, *_SECRETS, path)
        self.needs = frozenset()

    def find(self, scope: Scope, source: str) -> Any:
        return f"${{{self.text}}}"

    @property
    def name(self) -> str:
        return _name_of(self.path.segments[0]) if self.path.segments else ""

    def read(self, secret: Any) -> Any:
        """Return the requested part of the secret: all of it, or the value at a path into its JSON."""
        return self.path.tail(1).read(secret)

    @property
    def is_whole(self) -> bool:
        """Return True if the complete secret is requested."""
        return len(self.path.segments) == 1


class BlankReference(Reference):
    """`${}`: an empty text."""

    def __init__(self, text: str):
        super().__init__(text, "", "", Path("", ()))
        self.needs = frozenset()

    def find(self, scope: Scope, source: str) -> Any:
        return ""


class UnreadableReference(Reference):
    """An expression that is no path. It resolves to null, because a run must not stop over it."""

    def __init__(self, text: str, problem: str):
        super().__init__(text, "", "", Path("", ()))
        self.needs = frozenset()
        self.problem = problem

    def find(self, scope: Scope, source: str) -> Any:
        return ABSENT


class TextTooLong(Exception):
    """A text that expressions compose exceeds the room for it."""


class Expression:
    """One `${…}` of a text; its path is written out, or put together from expressions inside it."""

    __slots__ = ("inner", "reference", "source")

    def __init__(self, source: str, reference: Reference | None, inner: Any = ()):
        self.source = source
        self.reference = reference
        self.inner = inner

    def reference_in(self, scope: Scope) -> Reference:
        """Return the target of the expression, after resolving the expressions inside it."""
        if self.reference:
            return self.reference
        try:
            return parse_reference(self.inner.text(scope, MAX_PATH_LENGTH))
        except TextTooLong:
            return UnreadableReference(self.source, f"a path may have {MAX_PATH_LENGTH:,} characters at most")

    @property
    def names_secret(self) -> bool:
        """Return True if it is written as a secret, and not put together from data."""
        return isinstance(self.reference, SecretReference)

    def value(self, scope: Scope) -> Any:
        if self.reference:
            return self.reference.value(scope, self.source)
        return self.reference_in(scope).value(scope, self.source)

    def text(self, scope: Scope) -> str:
        reference = self.reference_in(scope)
        return reference.text_of(reference.value(scope, self.source))

    def __iter__(self) -> Iterator["Expression"]:
        """Yield the expressions inside, then this one."""
        yield from self.inner
        yield self


class Template:
    """A text in parts: literal texts and expressions."""

    __slots__ = ("_whole", "needs", "parts")

    def __init__(self, parts: tuple[str | Expression, ...]):
        self.parts = parts
        self._whole = parts[0] if len(parts) == 1 and isinstance(parts[0], Expression) else None
        written = [expression.reference for expression in self if expression.reference]
        self.needs = frozenset().union(*(reference.needs for reference in written))

    def value(self, scope: Scope, room: float = inf) -> Any:
        """Return the value of the template. A template of a single expression has a value of any type.

        Raises:
            TextTooLong: when a text has more than `room` characters.
        """
        return self._whole.value(scope) if self._whole is not None else self.text(scope, room)

    def text(self, scope: Scope, room: float = inf) -> str:
        """Return the text with every expression inserted, and `$${` unescaped at the end, wherever it came from.

        Raises:
            TextTooLong: when it has more than `room` characters.
        """
        pieces = []
        for part in self.parts:
            piece = part if isinstance(part, str) else part.text(scope)
            room -= len(piece)
            if room < 0:
                raise TextTooLong
            pieces.append(piece)
        text = "".join(pieces)
        # A single expression is no finished text: Conductor hands its value on untouched.
        return text if self._whole is not None else text.replace("$${", "${")

    @property
    def secrets(self) -> list[str]:
        """Return the expressions that name secrets, as written."""
        return [part.source for part in self.parts if isinstance(part, Expression) and part.names_secret]

    def secret_ranges(self, scope: Scope) -> tuple[str, list[list[int]]]:
        """Return the text with every expression inserted, and where it has the expressions that name secrets."""
        before, ranges = "", []
        for part in self.parts:
            piece = part if isinstance(part, str) else part.text(scope)
            if isinstance(part, Expression) and part.names_secret:
                # `$` before the expression may belong to `$${`, which the text has unescaped.
                start = len(f"{before}${{".replace("$${", "${")) - 2
                ranges.append([start, start + len(piece)])
            before += piece
        return (before if self._whole is not None else before.replace("$${", "${")), ranges

    def __iter__(self) -> Iterator[Expression]:
        """Yield every expression of the template, inner ones first."""
        for part in self.parts:
            if isinstance(part, Expression):
                yield from part


UNMEASURED_VALUES = 8
"""Objects and lists that are inserted without a look at their sizes. Each is a payload, or a part of one."""


def resolve_template(value: Any, scope: Scope, max_bytes: int = 0, what: str = "The value of an expression") -> Any:
    """Return the value with every expression replaced by its value.

    A text that is one expression becomes the value itself, shared with the scope and not copied. Exceptions of the
    scope propagate, so that it can request missing data.

    Raises:
        PayloadOverLimit: as soon as more than `max_bytes` are inserted, unless it is 0. `what`: the subject of the
            message.
    """
    if not max_bytes:
        return replace_texts(value, lambda text: parse_template(text).value(scope))
    return replace_texts(value, _SizeCounter(scope, max_bytes, what).value_of)


def resolve_at_start(written: Any, given: Any, run_id: str, correlation_id: str, version: int) -> Any:
    """Return a value of a definition with the expressions replaced that a start can evaluate, before the run exists.

    They name the input (`given`), the ids and the version of the workflow; all others have no value.
    """
    values = {"input": given, "correlationId": correlation_id, "workflowId": run_id, "version": version}
    return resolve_template(written, lambda root, name: values.get(name, MISSING) if root == "workflow" else MISSING)


class _SizeCounter:
    """The values of the texts of a template, until their sizes exceed the limit."""

    __slots__ = ("containers", "max_bytes", "room", "scope", "sizes", "what")

    def __init__(self, scope: Scope, max_bytes: int, what: str) -> None:
        self.scope, self.max_bytes, self.what, self.room = scope, max_bytes, what, max_bytes
        self.containers: list[Any] = []
        self.sizes: dict[int, int] = {}

    def value_of(self, text: str) -> Any:
        try:
            value = parse_template(text).value(self.scope, self.room)
        except TextTooLong:
            raise PayloadOverLimit(self.what, self.max_bytes) from None
        if type(value) is str:
            self.room -= len(value)
        elif type(value) is dict or type(value) is list:
            self.containers.append(value)
            if len(self.containers) > UNMEASURED_VALUES:
                self._measure()
        if self.room < 0:
            raise PayloadOverLimit(self.what, self.max_bytes)
        return value

    def _measure(self) -> None:
        """Count the containers that are not counted yet. Each different one is read once."""
        unmeasured = self.containers[-1:] if self.sizes else self.containers
        for container in unmeasured:
            if id(container) not in self.sizes:
                self.sizes[id(container)] = json_length(container, self.max_bytes)
            self.room -= self.sizes[id(container)]


def needed_references(value: Any) -> frozenset[tuple[str, str]]:
    """Return the (root, key) pairs of the literal expressions in a value."""
    return frozenset().union(*(parse_template(text).needs for text in expression_texts(value)))


@dataclass(frozen=True)
class ExpressionError:
    """An expression that will never have a value, where it stands, and why."""

    parameter: str
    expression: str
    problem: str


def check_template(value: Any) -> list[ExpressionError]:
    """Return the expressions with an invalid path. Expressions that are composed at run time are not checked."""
    return [
        ExpressionError(place, expression.source, expression.reference.problem)
        for place, text in expression_texts_by_path(value)
        for expression in parse_template(text)
        if expression.reference and expression.reference.problem
    ]


def expression_roots(value: Any) -> frozenset[str]:
    """Return the names that expressions begin with: `workflow`, references of tasks, bare names."""
    return frozenset(root for root, _ in needed_references(value))


@dataclass(frozen=True)
class Provenance:
    """The target of one expression in one parameter, and its value.

    `parameter`: the path in the template (`order.lines[0].sku`, empty for the template itself). `found`: separates an
    existing null from a missing value. An expression that is no path has neither root nor key.
    """

    parameter: str
    expression: str
    root: str
    key: str
    path: str
    found: bool
    value: Any


def trace_expressions(value: Any, scope: Scope) -> list[Provenance]:
    """Return one entry for every expression in the template, inner expressions first."""
    return [
        _trace_expression(place, found, scope)
        for place, text in expression_texts_by_path(value)
        for found in parse_template(text)
    ]


def _trace_expression(parameter: str, expression: Expression, scope: Scope) -> Provenance:
    reference = expression.reference_in(scope)
    found = reference.find(scope, expression.source)
    is_found = found is not ABSENT and (reference.path.is_definite or bool(found))
    return Provenance(
        parameter=parameter,
        expression=expression.source,
        root=reference.root,
        key=reference.key,
        path=reference.path.text,
        found=is_found,
        value=reference.path.nothing if found is ABSENT else found,
    )


# Resolved texts may hold stray braces from anywhere, so this looks at each expression without braces by itself.
_SECRET_CANDIDATE = re.compile(r"(?<!\$)\$\{([^{}]*)\}")


def secret_ranges_of_text(text: str) -> list[list[int]]:
    """Return the ranges of the expressions in a text that name secrets, written by an author or by data."""
    return [list(found.span()) for found in _SECRET_CANDIDATE.finditer(text) if is_secret_expression(found[0])]


def is_secret_expression(text: str) -> bool:
    """Return True if the text is an expression that names a secret, and nothing else."""
    return text[:2] == "${" and text[-1:] == "}" and isinstance(parse_reference(text[2:-1]), SecretReference)


def resolve_secrets(text: str, ranges: Iterable[Sequence[int]], secret: Callable[[str], str | None]) -> Any:
    """Return the text with the secrets resolved that it names in these ranges.

    A text that is one expression becomes the value itself. A missing secret becomes null, or "" within a text.
    """
    pieces, done = [], 0
    for start, end in ranges:
        if not is_secret_expression(text[start:end]):
            continue
        value = _read_secret(parse_reference(text[start + 2 : end - 1]), secret)
        if end - start == len(text):
            return value
        pieces += [text[done:start], "" if value is None else java_text(value)]
        done = end
    return "".join([*pieces, text[done:]])


def _read_secret(reference: Reference, secret: Callable[[str], str | None]) -> Any:
    if not isinstance(reference, SecretReference):
        return None
    stored = secret(reference.name) if reference.name else None
    if stored is None or reference.is_whole:
        return stored
    try:
        return reference.read(json.loads(stored))
    except (ValueError, RecursionError):
        return None


def parse_reference(text: str) -> Reference:
    """Return the reference of the text between the braces. Long texts are parsed every time, to save memory."""
    return _cached_reference(text) if len(text) <= MAX_CACHED_REFERENCE else _parse_reference(text)


def _parse_reference(text: str) -> Reference:
    if not text.strip():
        return BlankReference(text)
    try:
        return _split(text, compile_path(text))
    except BadPath as problem:
        return UnreadableReference(text, str(problem))


_cached_reference = lru_cache(maxsize=4_096)(_parse_reference)


def _split(text: str, path: Path) -> Reference:
    root, key, rest = _split_reference(path)
    if not root:
        return UnreadableReference(text, f"an expression begins with a name: {text!r}")
    if (root, key) == _SECRETS:
        return SecretReference(text, rest)
    return (Reference if path.segments[1:] else NameReference)(text, root, key, rest)


def _split_reference(path: Path) -> tuple[str, str, Path]:
    """Return root, key and remaining path. Without a plain key, the path begins at the root."""
    root, key = (_name_of(segment) for segment in (*path.segments, None, None)[:2])
    return root, key if root else "", path.tail((1 if root else 0) + (1 if root and key else 0))


def _name_of(segment: Any) -> str:
    return segment.names[0] if isinstance(segment, Property) and segment.is_single else ""


def _split_path(path: Path) -> frozenset[tuple[str, str]]:
    place = _split_reference(path)[:2]
    return frozenset({place} if place[0] and place != _SECRETS else ())


def _find_absolute(path: Path, scope: Scope, reading: Reading) -> Any:
    """Resolve a path from `$` inside a filter in the same scope. It cannot reach secrets."""
    root, key, rest = _split_reference(path)
    document = scope(root, key) if root and (root, key) != _SECRETS else MISSING
    return ABSENT if document is MISSING else rest.find_within(document, reading)


MAX_CACHED_TEMPLATE = 4_096
MAX_NESTING_DEPTH = 16

_BRACE = re.compile(r"[{}]")
_OPENING = re.compile(r"(?<!\$)\$\{")


def parse_template(text: str) -> Template:
    return _cached_template(text) if len(text) <= MAX_CACHED_TEMPLATE else _parse_template(text)


def _parse_template(text: str, depth: int = 0) -> Template:
    closings = _closings(text)
    parts: list[str | Expression] = []
    done = 0
    for opening in _OPENING.finditer(text):
        begin, closing = opening.start(), closings.get(opening.end() - 1)
        if begin < done or closing is None:
            continue
        if begin > done:
            parts.append(text[done:begin])
        done = closing + 1
        parts.append(_expression(text[begin:done], depth))
    if done < len(text):
        parts.append(text[done:])
    return Template(tuple(parts))


_cached_template = lru_cache(maxsize=4_096)(_parse_template)


def _expression(source: str, depth: int) -> Expression:
    path = source[2:-1]
    # A longer expression is never a path, so nothing inside it is read.
    if "${" not in path or depth == MAX_NESTING_DEPTH or len(path) > MAX_PATH_LENGTH:
        return Expression(source, parse_reference(path))
    inner = _parse_template(path, depth + 1)
    if any(isinstance(part, Expression) for part in inner.parts):
        return Expression(source, None, inner)
    return Expression(source, parse_reference(path.replace("$${", "${")))


def _closings(text: str) -> dict[int, int]:
    """Return the closing position of each opening brace, found in one pass. Unbalanced braces are missing."""
    closings: dict[int, int] = {}
    open_at: list[int] = []
    for brace in _BRACE.finditer(text):
        if brace[0] == "{":
            open_at.append(brace.start())
        elif open_at:
            closings[open_at.pop()] = brace.start()
    return closings
