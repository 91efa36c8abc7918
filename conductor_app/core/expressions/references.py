"""What the text between `${` and `}` refers to: a root, a key, and a path from there."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from .java_text import java_text, json_text
from .jsonpath import ABSENT, BadPath, Path, compile_path
from .jsonpath.segments import Property


class MissingReference:
    """What a scope gives for something that does not exist."""

    def __repr__(self):
        return "MISSING"


MISSING: Any = MissingReference()

Scope = Callable[[str, str], Any]

_SECRETS = ("workflow", "secrets")
_LONGEST_REMEMBERED = 1_000


class Reference:
    """`root.key.path`: what a scope has under (root, key), and the path read from it."""

    problem = ""

    def __init__(self, text: str, root: str, key: str, path: Path):
        self.text = text
        self.root = root
        self.key = key
        self.path = path
        self.needs = frozenset({(root, key)}).union(*(_split_path(inner) for inner in path.absolutes))

    def find(self, scope: Scope, source: str) -> Any:
        """The value in this scope, or ABSENT; `source` is the expression as written."""
        document = scope(self.root, self.key)
        if document is MISSING:
            return ABSENT
        try:
            return self.path.find(document, lambda inner, reading: _find_absolute(inner, scope, reading))
        except BadPath:
            return ABSENT

    def value(self, scope: Scope, source: str) -> Any:
        """The value in this scope, or what stands for one when there is none."""
        found = self.find(scope, source)
        return self.path.nothing if found is ABSENT else found

    def text_of(self, value: Any) -> str:
        """The value as text: lists that a path has gathered from many places print as JSON."""
        if isinstance(value, list) and not self.path.is_definite:
            return json_text(value)
        return java_text(value)


class NameReference(Reference):
    """A bare name, such as `CPEWF_TASK_ID`; an unknown one stays in the text as it was written."""

    def value(self, scope: Scope, source: str) -> Any:
        found = self.find(scope, source)
        return source if found is ABSENT else found


class SecretReference(Reference):
    """`workflow.secrets.NAME`: stays in the text until the task is handed out."""

    def __init__(self, text: str, path: Path):
        super().__init__(text, *_SECRETS, path)
        self.needs = frozenset()

    def find(self, scope: Scope, source: str) -> Any:
        return f"${{{self.text}}}"

    @property
    def name(self) -> str:
        """Which secret, or nothing if the expression names none."""
        return _name_of(self.path.segments[0]) if self.path.segments else ""

    def read(self, secret: Any) -> Any:
        """The part of the secret that the expression asks for: all of it, or a path into its JSON."""
        return self.path.tail(1).read(secret)

    @property
    def is_whole(self) -> bool:
        """Whether the secret is wanted as it is."""
        return len(self.path.segments) == 1


class BlankReference(Reference):
    """`${}`: an empty text."""

    def __init__(self, text: str):
        super().__init__(text, "", "", Path("", ()))
        self.needs = frozenset()

    def find(self, scope: Scope, source: str) -> Any:
        return ""


class UnreadableReference(Reference):
    """What is no path: null, for a run must not stop over it."""

    def __init__(self, text: str, problem: str):
        super().__init__(text, "", "", Path("", ()))
        self.needs = frozenset()
        self.problem = problem

    def find(self, scope: Scope, source: str) -> Any:
        return ABSENT


def parse_reference(text: str) -> Reference:
    """The reference that the text between the braces spells; long texts are read anew each time, to spare memory."""
    return _remembered(text) if len(text) <= _LONGEST_REMEMBERED else _parse_reference(text)


def _parse_reference(text) -> Reference:
    if not text.strip():
        return BlankReference(text)
    try:
        return _split(text, compile_path(text))
    except BadPath as problem:
        return UnreadableReference(text, str(problem))


_remembered = lru_cache(maxsize=4_096)(_parse_reference)


def _split(text, path) -> Reference:
    root, key, rest = _split_reference(path)
    if not root:
        return UnreadableReference(text, f"an expression begins with a name: {text!r}")
    if (root, key) == _SECRETS:
        return SecretReference(text, rest)
    return (Reference if path.segments[1:] else NameReference)(text, root, key, rest)


def _split_reference(path) -> tuple[str, str, Path]:
    """The root, the key and the path behind them; without a plain key, the path begins at the root itself."""
    root, key = (_name_of(segment) for segment in (*path.segments, None, None)[:2])
    return root, key if root else "", path.tail((1 if root else 0) + (1 if root and key else 0))


def _name_of(segment) -> str:
    return segment.names[0] if isinstance(segment, Property) and segment.is_single else ""


def _split_path(path) -> frozenset[tuple[str, str]]:
    place = _split_reference(path)[:2]
    return frozenset({place} if place[0] and place != _SECRETS else ())


def _find_absolute(path, scope, reading):
    """A path from `$` inside a filter looks into the same scope; secrets are out of its reach."""
    root, key, rest = _split_reference(path)
    document = scope(root, key) if root and (root, key) != _SECRETS else MISSING
    return ABSENT if document is MISSING else rest.find_within(document, reading)
