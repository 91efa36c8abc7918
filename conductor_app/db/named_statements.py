"""Statements with a name, with named parameters and with the index that serves them.

A statement begins with its comments:

    -- name: due_runs
    -- Find the open runs with a due timer.
    -- index: run_to_wake
    SELECT id FROM conductor_run
    INDEXED BY run_to_wake -- sqlite
    WHERE status IN ('PAUSED', 'RUNNING') AND wake_at <= %(now)s ORDER BY wake_at LIMIT %(limit)s

- `%(now)s` is a parameter. `IN (%(ids)s)` takes a list.
- A line that ends with `-- sqlite` or `-- postgresql` belongs to the statement of that database only.
- `{gates}` inserts a fragment: one of the same file, which begins with `-- fragment: gates`, or one of the module that
  loads the file.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib.resources import files
from operator import itemgetter
from types import MappingProxyType
from typing import Any

from .database import connection

FOLDER = files("conductor_app")
HEADER = re.compile(r"^ *-- (name|fragment): (\w+)$", re.MULTILINE)
INDEXES = re.compile(r"^ *-- index: (.+)$", re.MULTILINE)
DIALECT = re.compile(r" -- (sqlite|postgresql)$")
DESCRIPTION = re.compile(r"^ *-- (.+)$", re.MULTILINE)
COMMENT = re.compile(r"--.*$")
FRAGMENT = re.compile(r"\{(\w+)\}")
PARAMETER = re.compile(r"(?<=IN \()%\((\w+)\)s(?=\))|%\((\w+)\)s")
LIST = "\0"
"""Stands for a list in a statement, until its length is known."""
CACHED_SHAPES = 200
"""The number of cached statements with lists, each for one length of its lists."""


class NamedStatement:
    """A statement of both databases.

    `indexes`: the names of the indexes that serve it on PostgreSQL, or why it needs none.
    """

    def __init__(self, source: str, fragments: Mapping[str, str] = MappingProxyType({})) -> None:
        header, indexes = HEADER.search(source), INDEXES.search(source)
        self.name = header[2] if header else ""
        self.indexes = indexes[1] if indexes else ""
        self._source = source
        self._fragments = fragments

    @property
    def description(self) -> str:
        """Return the comment that says what the statement does."""
        return " ".join(DESCRIPTION.findall(HEADER.sub("", self._source).split("-- index:")[0]))

    def bind(self, **values: Any) -> tuple[str, Sequence[Any]]:
        """Return the statement for the database with `%s` for its parameters, and their values in that order."""
        sql, names, lists, values_of = self._positional
        if not lists:
            return sql, values_of(values)
        params: list[Any] = []
        for name in names:
            if name in lists:
                params += values[name]
            else:
                params.append(values[name])
        return _expand_lists(sql, tuple([len(values[name]) for name in lists])), params

    def text(self, vendor: str) -> str:
        """Return the statement of a database, with fragments and with the names of its parameters."""
        return _compose(self._source, self._fragments, vendor)

    def psql(self) -> str:
        r"""Return the statement for `psql`, whose command `\set queue orders` sets the parameter `queue`."""
        return PARAMETER.sub(lambda match: f":'{match[1] or match[2]}'", self.text("postgresql")) + ";"

    @cached_property
    def _positional(self) -> tuple[str, tuple[str, ...], tuple[str, ...], Callable[[Mapping[str, Any]], Sequence[Any]]]:
        """The statement in one line, the names of its parameters, those of its lists, and the getter of the values."""
        sql = re.sub(r"\s+", " ", self.text(connection.vendor)).replace("( ", "(").replace(" )", ")")
        found = list(PARAMETER.finditer(sql))
        names = tuple(match[1] or match[2] for match in found)
        lists = tuple(match[1] for match in found if match[1])
        # A getter of one name would return its value alone.
        getter = itemgetter(*names) if len(names) > 1 else lambda values: [values[name] for name in names]
        return PARAMETER.sub(lambda match: LIST if match[1] else "%s", sql), names, lists, getter


class NamedStatements(dict[str, NamedStatement]):
    """The statements of a file by name, and its fragments."""

    def __init__(self, source: str, fragments: Mapping[str, str]) -> None:
        parts = HEADER.split(source)[1:]
        blocks = list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))
        self.fragments = dict(fragments) | {name: text for kind, name, text in blocks if kind == "fragment"}
        super().__init__(
            (name, NamedStatement(f"-- name: {name}{text}", self.fragments))
            for kind, name, text in blocks
            if kind == "name"
        )


def load_statements(name: str, **fragments: str) -> NamedStatements:
    """Return the statements of a file, such as `tasks/claims`. `fragments`: texts that they insert by name."""
    return NamedStatements((FOLDER / f"{name}.sql").read_text(), fragments)


def _compose(source: str, fragments: Mapping[str, str], vendor: str) -> str:
    lines = []
    for line in source.splitlines():
        dialect = DIALECT.search(line)
        text = COMMENT.sub("", line).rstrip()
        if text and (dialect is None or dialect[1] == vendor):
            lines.append(FRAGMENT.sub(lambda match: _compose(fragments[match[1]], fragments, vendor), text))
    return "\n".join(lines)


@lru_cache(CACHED_SHAPES)
def _expand_lists(sql: str, lengths: tuple[int, ...]) -> str:
    first, *parts = sql.split(LIST)
    return first + "".join(", ".join(["%s"] * length) + part for length, part in zip(lengths, parts, strict=True))
