"""Conditions on a place inside an input, an output or the variables: `input.customer.id = 42`.

Documents are kept as text. A row whose text does not even hold the words asked for is passed over without being read
as JSON; one that the database cannot read as JSON (PostgreSQL: a NUL in a text) has nothing at any place.
"""

import re
from collections.abc import Iterator
from typing import Any

from django.db.models import BooleanField, Expression, F

from .sql import to_like_pattern

STEP = re.compile(r"""\.([\w$@-]+)|\[(\d+)\]|\["([^"]*)"\]|\['([^']*)'\]""")
NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{1,18})?")
PLAIN_TEXT = re.compile(r"""[ !#-\[\]-~]+""")
LONGEST_SURE = 15
"""Digits of a number that every writer of JSON spells in full."""

Path = tuple[str | int, ...]


def path_of(place: str) -> Path:
    """`.items[0].sku` → ("items", 0, "sku")."""
    return tuple(int(step[2]) if step[2] else step[1] or step[3] or step[4] or "" for step in STEP.finditer(place))


class DocumentCondition(Expression):
    """One comparison with the value at a path of a document."""

    output_field = BooleanField()

    def __init__(self, column: str, path: Path, operator: str, text: str = "") -> None:
        super().__init__(output_field=self.output_field)
        self.document: Any = F(column)
        self.path, self.operator, self.text = path, operator, text
        self.number = (float(text) if "." in text else int(text)) if NUMBER.fullmatch(text) else None

    def get_source_expressions(self) -> list[Any]:
        return [self.document]

    def set_source_expressions(self, expressions: list[Any]) -> None:
        [self.document] = expressions

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        document, _ = compiler.compile(self.document)
        spell = (
            PostgresqlDocumentSql(document, self)
            if connection.vendor == "postgresql"
            else SqliteDocumentSql(document, self)
        )
        return spell.condition()

    def words(self) -> Iterator[str]:
        """What the text of a document must hold, or it need not be looked at."""
        key = next((step for step in reversed(self.path) if isinstance(step, str)), "")
        if PLAIN_TEXT.fullmatch(key):
            yield f'"{key}"'
        is_sure = len(self.text) <= LONGEST_SURE if isinstance(self.number, int) else self.number is None
        if self.operator == "=" and is_sure and "*" not in self.text and PLAIN_TEXT.fullmatch(self.text):
            yield self.text


class SqliteDocumentSql:
    """The condition in SQLite's words."""

    find = "instr"

    def __init__(self, document: str, asked: DocumentCondition) -> None:
        self.document, self.asked = document, asked

    def condition(self) -> tuple[str, list[Any]]:
        """The SQL and its parameters."""
        words = list(self.asked.words())
        tests = [*(f"{self.find}({self.document}, %s) > 0" for _ in words), self.is_readable()]
        inner, params = self.comparison()
        otherwise = self.truth(self.asked.operator == "NULL")
        sql = f"(CASE WHEN {' AND '.join(tests)} THEN {inner} ELSE {otherwise} END)"
        return sql, [*words, *params]

    def comparison(self) -> tuple[str, list[Any]]:
        asked = self.asked
        if asked.operator == "NULL":
            return self.null()
        pairs = [self.as_text()]
        if asked.number is not None and asked.operator != "STARTS_WITH":
            pairs = [self.as_number(), *(pairs if asked.operator == "=" else [])]
        elif asked.operator == "=" and asked.text in ("true", "false"):
            pairs.append(self.as_truth())
        return f"({' OR '.join(sql for sql, _ in pairs)})", [param for _, params in pairs for param in params]

    def text_test(self) -> tuple[str, str]:
        """How a text is compared, and with what."""
        asked = self.asked
        if asked.operator == "STARTS_WITH":
            return LIKE[type(self)], to_like_pattern(asked.text.replace("*", "")) + "%"
        if asked.operator == "=" and "*" in asked.text:
            return LIKE[type(self)], to_like_pattern(asked.text)
        return f"{asked.operator} %s", asked.text

    def truth(self, value: bool) -> str:
        return "1" if value else "0"

    def is_readable(self) -> str:
        return f"json_valid({self.document})"

    def json_path(self) -> str:
        return "$" + "".join(f"[{step}]" if isinstance(step, int) else f'."{step}"' for step in self.asked.path)

    def of_type(self, *types: str) -> tuple[str, list[Any]]:
        names = ", ".join(f"'{name}'" for name in types)
        return f"json_type({self.document}, %s) IN ({names})", [self.json_path()]

    def null(self) -> tuple[str, list[Any]]:
        return f"COALESCE(json_type({self.document}, %s), 'null') = 'null'", [self.json_path()]

    def as_text(self) -> tuple[str, list[Any]]:
        (is_text, path), (test, value) = self.of_type("text"), self.text_test()
        return f"({is_text} AND json_extract({self.document}, %s) {test})", [*path, self.json_path(), value]

    def as_number(self) -> tuple[str, list[Any]]:
        is_number, path = self.of_type("integer", "real")
        test = f"json_extract({self.document}, %s) {self.asked.operator} %s"
        return f"({is_number} AND {test})", [*path, self.json_path(), self.asked.number]

    def as_truth(self) -> tuple[str, list[Any]]:
        return self.of_type(self.asked.text)


class PostgresqlDocumentSql(SqliteDocumentSql):
    """The condition in PostgreSQL's words."""

    find = "strpos"

    def truth(self, value: bool) -> str:
        return "true" if value else "false"

    def is_readable(self) -> str:
        return f"strpos({self.document}, '\\u0000') = 0"

    def json_path(self) -> list[str]:  # type: ignore[override]
        return [str(step) for step in self.asked.path]

    def of_type(self, *types: str) -> tuple[str, list[Any]]:
        names = ", ".join(f"'{TYPE[name]}'" for name in types)
        return f"jsonb_typeof(({self.document})::jsonb #> %s::text[]) IN ({names})", [self.json_path()]

    def null(self) -> tuple[str, list[Any]]:
        kind = f"jsonb_typeof(({self.document})::jsonb #> %s::text[])"
        return f"COALESCE({kind}, 'null') = 'null'", [self.json_path()]

    def value(self) -> str:
        return f"({self.document})::jsonb #>> %s::text[]"

    def as_text(self) -> tuple[str, list[Any]]:
        (is_text, path), (test, value) = self.of_type("text"), self.text_test()
        return f"({is_text} AND ({self.value()}) {test})", [*path, self.json_path(), value]

    def as_number(self) -> tuple[str, list[Any]]:
        is_number, path = self.of_type("integer")
        test = f"({self.value()})::numeric {self.asked.operator} %s"
        # A CASE, because AND does not keep a text from being read as a number first.
        sql = f"(CASE WHEN {is_number} THEN {test} ELSE false END)"
        return sql, [*path, self.json_path(), self.asked.number]

    def as_truth(self) -> tuple[str, list[Any]]:
        sql, params = self.of_type("true")
        return f"({sql} AND ({self.value()}) = %s)", [*params, self.json_path(), self.asked.text]


TYPE = {"text": "string", "integer": "number", "real": "number", "true": "boolean", "false": "boolean"}
"""SQLite's names of JSON types as PostgreSQL spells them."""
LIKE = {SqliteDocumentSql: "LIKE %s ESCAPE '\\'", PostgresqlDocumentSql: "ILIKE %s ESCAPE '\\'"}
