"""Files of a folder of definitions, and the Git commit that contains it.

Files are YAML or JSON, read without following links out of the folder. YAML has the core schema of version 1.2, in
which `no` and `on` are texts.
"""

import json
import math
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

MAX_DEPTH = 100
MAX_VALUES = 200_000
MAX_ALL_VALUES = 3_000_000
"""The maximum of all documents together, copies of aliases included."""
LINE_ENDS = re.compile("[\x85\u2028\u2029]")
INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
CONSTANTS: dict[str, Any] = {"": None, "~": None} | {
    spelled: value
    for name, value in (("null", None), ("true", True), ("false", False))
    for spelled in (name, name.capitalize(), name.upper())
}
PREFIX = "tag:yaml.org,2002:"
STRING = f"{PREFIX}str"
TAGS = (STRING, f"{PREFIX}seq", f"{PREFIX}map")
MERGE = "<<"
Lines = dict[str, int]
Document = tuple[Any, Lines]


class YamlError(Exception):
    """A document that cannot be read. `line`: counted from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class PlainLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A loader that leaves the types of plain scalars to this module."""

    yaml_implicit_resolvers: dict[str, Any] = {}


class PlainDumper(yaml.SafeDumper):
    """A dumper that quotes the texts that this module would read as another value."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if LINE_ENDS.search(text) else None if _is_text(text) else "'"
    return dumper.represent_scalar(STRING, text, style)


PlainDumper.add_representer(str, _represent_text)


class ValueCount:
    """The number of values that were read from all files together."""

    def __init__(self) -> None:
        self.total = 0


def write_documents(values: list[Any]) -> str:
    """Return documents as YAML, from which `read_documents` reads the same values."""
    text: str = yaml.dump_all(values, sort_keys=False, allow_unicode=True, width=120, Dumper=PlainDumper)
    return text


def read_documents(text: str, *, is_json: bool, count: ValueCount | None = None) -> list[Document]:
    """Return the documents of a file, each with the line of each path. The elements of a list are documents.

    `count`: of the values of all files, which is limited.

    Raises:
        YamlError: when the text is invalid.
    """
    if is_json:
        return _read_json(text)
    count = count or ValueCount()
    try:
        nodes = [node for node in yaml.compose_all(text, PlainLoader) if node is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(filter(None, [error.context, error.problem]))
        raise YamlError(f"Invalid YAML: {problem}.", mark.line + 1 if mark else 1) from None
    except yaml.YAMLError as error:
        raise YamlError(f"Invalid YAML: {str(error).splitlines()[0]}.", 1) from None
    except RecursionError:
        raise YamlError("The document is nested too deeply.", 1) from None
    return [_convert(each, count) for node in nodes for each in _elements(node) if not _is_null(each)]


def _elements(node: yaml.Node) -> list[yaml.Node]:
    return node.value if isinstance(node, yaml.SequenceNode) else [node]


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and not node.style and CONSTANTS.get(node.value, node) is None


def _read_json(text: str) -> list[Document]:
    try:
        value = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise YamlError(f"Invalid JSON: {error.msg}.", error.lineno) from None
    except RecursionError:
        raise YamlError("The document is nested too deeply.", 1) from None
    except ValueError:
        raise YamlError("A number in the document has too many digits.", 1) from None
    values = value if isinstance(value, list) else [value]
    try:
        # JSON is almost a subset of YAML, whose parser knows the lines.
        root = yaml.compose(text, PlainLoader)
        lines = [_convert(node, ValueCount())[1] for node in _elements(root)] if root is not None else []
    except (yaml.YAMLError, YamlError, RecursionError):
        lines = []
    return list(zip(values, lines if len(lines) == len(values) else [{}] * len(values), strict=True))


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        [(twice, _times)] = Counter(key for key, _ in pairs).most_common(1)
        raise YamlError(f"The key {twice!r} occurs twice in one object.", 1)
    return found


def _refuse_constant(name: str) -> Any:
    raise YamlError(f"{name} is not a JSON value.", 1)


def _convert(node: yaml.Node, count: ValueCount) -> Document:
    converter = NodeConverter(count)
    return converter.value(node, "", 0), converter.lines


class NodeConverter:
    """Conversion of one document. Aliases are copied, so their number is limited."""

    def __init__(self, count: ValueCount) -> None:
        self.lines: Lines = {}
        self._count, self._of_all = 0, count

    def value(self, node: yaml.Node, path: str, depth: int) -> Any:
        """Return the JSON value of a node, and remember its line.

        Raises:
            YamlError: when it has no JSON value.
        """
        line = node.start_mark.line + 1
        self._require_limits(line, depth)
        if node.tag not in TAGS:
            raise YamlError(f"The tag {node.tag.replace(PREFIX, '!!')} is not supported.", line)
        self.lines.setdefault(path, line)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(each, f"{path}[{number}]", depth + 1) for number, each in enumerate(node.value)]
        return _scalar(node)

    def _require_limits(self, line: int, depth: int) -> None:
        """Count a value, and check the limits."""
        self._count += 1
        self._of_all.total += 1
        if depth > MAX_DEPTH:
            raise YamlError(f"The document is nested more than {MAX_DEPTH} levels deep.", line)
        if self._count > MAX_VALUES:
            raise YamlError(f"The document has more than {MAX_VALUES:,} values, copies of aliases included.", line)
        if self._of_all.total > MAX_ALL_VALUES:
            raise YamlError(f"The files have more than {MAX_ALL_VALUES:,} values, copies of aliases included.", line)

    def _mapping(self, node: yaml.MappingNode, path: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise YamlError("A key must be a text.", line)
            if key.value == MERGE and not key.style:
                for each in self._merged(value, path, depth):
                    merged = each | merged
                continue
            if key.value in found:
                raise YamlError(f"The key {key.value!r} occurs twice in one object.", line)
            place = f"{path}.{key.value}" if path else key.value
            self.lines[place] = line
            found[key.value] = self.value(value, place, depth + 1)
        return merged | found

    def _merged(self, node: yaml.Node, path: str, depth: int) -> Iterator[dict[str, Any]]:
        for each in _elements(node):
            if not isinstance(each, yaml.MappingNode):
                raise YamlError("The value of << must be an object.", each.start_mark.line + 1)
            self._require_limits(each.start_mark.line + 1, depth)
            yield self._mapping(each, path, depth + 1)


def _scalar(node: Any) -> Any:
    text, line = node.value, node.start_mark.line + 1
    if node.style or _is_text(text):
        return text
    if text in CONSTANTS:
        return CONSTANTS[text]
    try:
        if INTEGER.fullmatch(text):
            return int(text, 0 if text[:2] in ("0o", "0x") else 10)
        number = float(text)
    except ValueError:
        raise YamlError(f"The number {text[:40]} cannot be read.", line) from None
    if not math.isfinite(number):
        raise YamlError(f"The number {text[:40]} is too large.", line)
    return number


def _is_text(text: str) -> bool:
    return not (text in CONSTANTS or INTEGER.fullmatch(text) or FLOAT.fullmatch(text))


SUFFIXES = (".yaml", ".yml", ".json")
TEST_SUFFIXES = (".test.yaml", ".test.yml", ".test.json")
MAX_FILES, MAX_DOCUMENTS = 2_000, 1_000
MAX_FILE_BYTES, MAX_BYTES = 2_000_000, 15_000_000


class FolderError(Exception):
    """The folder cannot be read. The message names the file, and the line if there is one."""


@dataclass(frozen=True, slots=True)
class FolderDocument:
    """A document of a file. `lines`: the line of each path in it, such as `tasks[0].name`."""

    path: Path
    number: int
    value: dict[str, Any]
    lines: Mapping[str, int] = field(repr=False)

    def place(self, path: str = "") -> str:
        """Return the file and the line of a path in the document, or of the closest value around it."""
        while path and path not in self.lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return f"{self.path}:{self.lines.get(path, 1)}"


def read_folder(folder: str, *, tests: bool = False) -> list[FolderDocument]:
    """Return the definitions of a folder, or of one file, or its tests, in the order of their paths."""
    root, size, count = Path(folder), 0, ValueCount()
    found: list[FolderDocument] = []
    errors: list[str] = []
    if not root.exists():
        raise FolderError(f"{folder} does not exist.")
    paths = [root] if root.is_file() else list(_files(root))
    paths = [path for path in paths if path.name.endswith(TEST_SUFFIXES) is tests]
    if len(paths) > MAX_FILES:
        raise FolderError(f"{folder} contains more than {MAX_FILES:,} files. Choose a folder of definitions only.")
    for path in paths:
        try:
            text = _read_file(path)
            size += len(text)
            if size > MAX_BYTES:
                raise FolderError(f"{folder} contains more than {MAX_BYTES // 1_000_000} MB. Split it.")
            found += _documents(path, text, count)
        except YamlError as error:
            errors.append(f"{path}:{error.line}: {error}")
    if errors:
        raise FolderError("\n".join(errors))
    if len(found) > MAX_DOCUMENTS:
        raise FolderError(
            f"{folder} contains {len(found):,} definitions, and can contain at most {MAX_DOCUMENTS:,}. Split it, with "
            "a label for each part."
        )
    return found


def _files(root: Path) -> Iterator[Path]:
    """Yield the files of definitions, without hidden ones."""
    inside = root.resolve()
    for folder, names, files in os.walk(root, followlinks=False):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in sorted([*names, *files]):
            path = Path(folder) / name
            if name.startswith(".") or (name in files and not name.endswith(SUFFIXES)):
                continue
            if path.is_symlink() and not path.resolve().is_relative_to(inside):
                raise FolderError(f"{path} is a link that leads out of {root}. Copy the file into the folder.")
            if path.is_file():
                yield path


def _read_file(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise YamlError(f"The file is larger than {MAX_FILE_BYTES // 1_000_000} MB.", 1)
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise YamlError("The file is not encoded in UTF-8.", line) from None
    except OSError as error:
        raise FolderError(f"{path} cannot be read: {error.strerror}.") from None


def _documents(path: Path, text: str, count: ValueCount) -> Iterator[FolderDocument]:
    documents: list[Document] = read_documents(text, is_json=path.suffix == ".json", count=count)
    for number, (value, lines) in enumerate(documents):
        if not isinstance(value, dict):
            raise YamlError("A definition must be an object with fields such as `name`.", lines.get("", 1))
        yield FolderDocument(path, number, value, lines)


COMMIT_VARIABLES = ("GITHUB_SHA", "CI_COMMIT_SHA")
"""The variables with the commit in jobs of GitHub and GitLab."""


def find_commit(folder: str) -> str:
    """Return the commit of a folder, with `-dirty` if it has uncommitted changes; empty outside of a repository."""
    for name in COMMIT_VARIABLES:
        if commit := os.environ.get(name, ""):
            return commit
    commit = _execute(folder, "rev-parse", "--short=12", "HEAD")
    if commit and _execute(folder, "status", "--porcelain", "--", "."):
        return f"{commit}-dirty"
    return commit


def _execute(folder: str, *arguments: str) -> str:
    path = Path(folder)
    try:
        done = subprocess.run(
            ["git", "-C", str(path if path.is_dir() else path.parent), *arguments],
            capture_output=True,
            check=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
