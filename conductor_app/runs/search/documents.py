"""Conditions on a value inside an input, an output or the variables: `input.customer.id = 42`.

Documents are stored as text. A row whose text does not contain the required words is skipped without parsing it as
JSON. A document that the database cannot parse as JSON (PostgreSQL: a NUL character in a text) has no values.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, Expression, F, Q
from django.db.models.sql.compiler import SQLCompiler

from ...core.masking import MARK
from .fields import MATCH_NONE, SearchField, check_pattern, to_like_pattern, without_masked_values
from .parser import Clause

STEP = re.compile(r"""\.([\w$@-]+)|\[(\d+)\]|\["([^"]*)"\]|\['([^']*)'\]""")
NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{1,18})?")
PLAIN_TEXT = re.compile(r"""[ !#-\[\]-~]+""")
MAX_EXACT_DIGITS = 15
"""Digits up to which every JSON encoder writes a number in full."""

Path = tuple[str | int, ...]


def parse_document_path(place: str) -> Path:
    """Parse a path, such as `.items[0].sku` into ("items", 0, "sku")."""
    return tuple(int(step[2]) if step[2] else step[1] or step[3] or step[4] or "" for step in STEP.finditer(place))


class DocumentCondition(Expression):
    """A comparison with the value at a path of a document."""

    output_field = BooleanField()

    def __init__(self, column: str, path: Path, operator: str, text: str = "") -> None:
        super().__init__(output_field=self.output_field)
        self.document: Any = F(column)
        self.path, self.operator, self.text = path, operator, text
        self.number = (float(text) if "." in text else int(text)) if NUMBER.fullmatch(text) else None

    def get_source_expressions(self) -> list[Any]:
        return [self.document]

    def set_source_expressions(self, expressions: Sequence[Any]) -> None:
        [self.document] = expressions

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> Any:
        document, _ = compiler.compile(self.document)
        dialect = (
            PostgresqlDocumentSql(document, self)
            if connection.vendor == "postgresql"
            else SqliteDocumentSql(document, self)
        )
        return dialect.condition()

    def required_texts(self) -> Iterator[str]:
        """Yield texts that a matching document must contain."""
        key = next((step for step in reversed(self.path) if isinstance(step, str)), "")
        if PLAIN_TEXT.fullmatch(key):
            yield f'"{key}"'
        is_sure = len(self.text) <= MAX_EXACT_DIGITS if isinstance(self.number, int) else self.number is None
        if self.operator == "=" and is_sure and "*" not in self.text and PLAIN_TEXT.fullmatch(self.text):
            yield self.text


class SqliteDocumentSql:
    find_function = "instr"

    def __init__(self, document: str, lookup: DocumentCondition) -> None:
        self.document, self.lookup = document, lookup

    def condition(self) -> tuple[str, list[Any]]:
        """Return the SQL and its parameters."""
        required_texts = list(self.lookup.required_texts())
        tests = [*(f"{self.find_function}({self.document}, %s) > 0" for _ in required_texts), self.readable_test()]
        inner, params = self.comparison()
        otherwise = self.boolean_literal(self.lookup.operator == "NULL")
        sql = f"(CASE WHEN {' AND '.join(tests)} THEN {inner} ELSE {otherwise} END)"
        return sql, [*required_texts, *params]

    def comparison(self) -> tuple[str, list[Any]]:
        lookup = self.lookup
        if lookup.operator == "NULL":
            return self.null_test()
        pairs = [self.text_value_test()]
        if lookup.number is not None and lookup.operator != "STARTS_WITH":
            pairs = [self.number_test(), *(pairs if lookup.operator == "=" else [])]
        elif lookup.operator == "=" and lookup.text in ("true", "false"):
            pairs.append(self.boolean_test())
        return f"({' OR '.join(sql for sql, _ in pairs)})", [param for _, params in pairs for param in params]

    def text_test(self) -> tuple[str, str]:
        """Return the comparison of a text, and its parameter."""
        lookup = self.lookup
        if lookup.operator == "STARTS_WITH":
            return LIKE[type(self)], to_like_pattern(lookup.text.replace("*", "")) + "%"
        if lookup.operator == "=" and "*" in lookup.text:
            return LIKE[type(self)], to_like_pattern(lookup.text)
        return f"{lookup.operator} %s", lookup.text

    def boolean_literal(self, value: bool) -> str:
        return "1" if value else "0"

    def readable_test(self) -> str:
        return f"json_valid({self.document})"

    def json_path(self) -> str:
        return "$" + "".join(f"[{step}]" if isinstance(step, int) else f'."{step}"' for step in self.lookup.path)

    def value(self) -> str:
        """Return the SQL of the value, with the path as its parameter."""
        return f"json_extract({self.document}, %s)"

    def type_test(self, *types: str) -> tuple[str, list[Any]]:
        names = ", ".join(f"'{name}'" for name in types)
        return f"json_type({self.document}, %s) IN ({names})", [self.json_path()]

    def null_test(self) -> tuple[str, list[Any]]:
        return f"COALESCE(json_type({self.document}, %s), 'null') = 'null'", [self.json_path()]

    def text_value_test(self) -> tuple[str, list[Any]]:
        """Return the comparison with a text. A masked value, which is stored encrypted, equals nothing."""
        (is_text, path), (test, value) = self.type_test("text"), self.text_test()
        sql = f"({is_text} AND ({self.value()}) {test} AND ({self.value()}) NOT LIKE %s)"
        return sql, [*path, self.json_path(), value, self.json_path(), f"{MARK}%"]

    def number_test(self) -> tuple[str, list[Any]]:
        is_number, path = self.type_test("integer", "real")
        test = f"{self.value()} {self.lookup.operator} %s"
        return f"({is_number} AND {test})", [*path, self.json_path(), self.lookup.number]

    def boolean_test(self) -> tuple[str, list[Any]]:
        return self.type_test(self.lookup.text)


class PostgresqlDocumentSql(SqliteDocumentSql):
    find_function = "strpos"

    def boolean_literal(self, value: bool) -> str:
        return "true" if value else "false"

    def readable_test(self) -> str:
        return f"strpos({self.document}, '\\u0000') = 0"

    def json_path(self) -> list[str]:  # type: ignore[override]
        return [str(step) for step in self.lookup.path]

    def type_test(self, *types: str) -> tuple[str, list[Any]]:
        names = ", ".join(f"'{TYPE[name]}'" for name in types)
        return f"jsonb_typeof(({self.document})::jsonb #> %s::text[]) IN ({names})", [self.json_path()]

    def null_test(self) -> tuple[str, list[Any]]:
        kind = f"jsonb_typeof(({self.document})::jsonb #> %s::text[])"
        return f"COALESCE({kind}, 'null') = 'null'", [self.json_path()]

    def value(self) -> str:
        return f"({self.document})::jsonb #>> %s::text[]"

    def number_test(self) -> tuple[str, list[Any]]:
        is_number, path = self.type_test("integer")
        test = f"({self.value()})::numeric {self.lookup.operator} %s"
        # CASE guarantees the order of evaluation; with AND, PostgreSQL may cast a text to a number first.
        sql = f"(CASE WHEN {is_number} THEN {test} ELSE false END)"
        return sql, [*path, self.json_path(), self.lookup.number]

    def boolean_test(self) -> tuple[str, list[Any]]:
        sql, params = self.type_test("true")
        return f"({sql} AND ({self.value()}) = %s)", [*params, self.json_path(), self.lookup.text]


TYPE = {"text": "string", "integer": "number", "real": "number", "true": "boolean", "false": "boolean"}
"""PostgreSQL's names of JSON types, by SQLite's names."""
LIKE = {SqliteDocumentSql: "LIKE %s ESCAPE '\\'", PostgresqlDocumentSql: "ILIKE %s ESCAPE '\\'"}


DOCUMENT_SCAN_LIMIT = 20_000


@dataclass(frozen=True)
class DocumentSearchField(SearchField):
    """An input, an output or the variables: its whole text with wildcards, or the value at a path."""

    scan_limit: int = DOCUMENT_SCAN_LIMIT

    def condition(self, clause: Clause, without_index: bool) -> Q:
        path = parse_document_path(clause.field[len(clause.field.split(".")[0].split("[")[0]) :])
        if not path:
            found = super().condition(clause, without_index)
            return found if clause.operator == "NULL" else found & without_masked_values(self.column)
        match clause.operator:
            case "IN":
                found = MATCH_NONE
                for value in clause.values:
                    found |= Q(DocumentCondition(self.column, path, "=", check_pattern(value, value.text)))
                return found
            case "BETWEEN":
                lower, upper = (check_pattern(value, value.text) for value in clause.values)
                return Q(DocumentCondition(self.column, path, ">=", lower)) & Q(
                    DocumentCondition(self.column, path, "<=", upper)
                )
        return Q(
            DocumentCondition(self.column, path, clause.operator, *(check_pattern(v, v.text) for v in clause.values))
        )
