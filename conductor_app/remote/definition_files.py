"""The files of a folder of definitions: YAML or JSON, read without following links out of the folder."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .yaml_documents import Document, ValueCount, YamlError, read_documents

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
    """Return the definitions of a folder, or of one file, or its tests, in the order of their paths.

    Raises:
        FolderError: when the folder or one of its files cannot be read, with all errors.
    """
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
    """Yield the files of definitions, without hidden ones.

    Raises:
        FolderError: when a link leads out of the folder.
    """
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
