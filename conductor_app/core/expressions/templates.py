"""The target of the text between `${` and `}`: a root, a key, and a path from there."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from .java_text import java_text, json_text
from .jsonpath import ABSENT, BadPath, Path, compile_path
from .jsonpath.reading import Reading
from .jsonpath.segments import Property


class MissingReference:
    """The result of a scope for a missing target."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = MissingReference()

Scope = Callable[[str, str], Any]

_SECRETS = ("workflow", "secrets")
_MAX_CACHED_LENGTH = 1_000


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
        """Return the name of the secret, or ""."""
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


def parse_reference(text: str) -> Reference:
    """Return the reference of the text between the braces. Long texts are parsed every time, to save memory."""
    return _remembered(text) if len(text) <= _MAX_CACHED_LENGTH else _parse_reference(text)


def _parse_reference(text: str) -> Reference:
    if not text.strip():
        return BlankReference(text)
    try:
        return _split(text, compile_path(text))
    except BadPath as problem:
        return UnreadableReference(text, str(problem))


_remembered = lru_cache(maxsize=4_096)(_parse_reference)


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
