"""Parser of the query language: `workflowType = order AND status IN (FAILED, TIMED_OUT)` → a tree of conditions.

    condition   NOT condition · (condition) · condition AND condition · condition OR condition · clause
    clause      field (= != <> > < >= <=) value · field [NOT] IN (value, …) · field [NOT] BETWEEN value AND value
                field STARTS_WITH value · field IS [NOT] NULL

A value is quoted or extends to the next AND, OR, comma or bracket, so that every query that Conductor accepts is
accepted, including blanks inside values. `*` in a value of `=`, `!=` or IN matches any text. Keywords may be in lower
case if a clause follows them.
"""

import re
from dataclasses import dataclass
from typing import NoReturn

from ...core.errors import Invalid

MAX_QUERY_LENGTH, MAX_CLAUSES, MAX_VALUES, MAX_DEPTH = 100_000, 200, 2_000, 30


@dataclass(frozen=True, slots=True)
class QueryValue:
    """The value of a comparison, and its position in the query."""

    text: str
    position: int


@dataclass(frozen=True, slots=True)
class Clause:
    """One comparison. `operator` is one of: = > < >= <= IN BETWEEN STARTS_WITH NULL."""

    field: str
    operator: str
    values: tuple[QueryValue, ...]
    position: int


@dataclass(frozen=True, slots=True)
class Not:
    part: "Condition"


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple["Condition", ...]


Condition = Clause | Not | And | Or

BLANKS = re.compile(r"\s*")
FIELD = re.compile(r"""[A-Za-z_][\w-]*(?:\.[\w$@-]+|\["[^"\]\\]*"\]|\['[^'"\]\\]*'\]|\[\d{1,9}\])*""")
OPERATOR = re.compile(r"<>|!=|>=|<=|==|=|>|<")
CONNECTIVE = re.compile(r"(?:AND|OR)(?![\w.])", re.IGNORECASE)
CLAUSE_AHEAD = re.compile(
    rf"\s*(?:\(\s*|NOT\s+)*(?P<field>{FIELD.pattern})\s*(?:<>|!=|[=<>]|(?:NOT\s+)?(?:IN|BETWEEN)\b|STARTS_WITH\b|IS\s)",
    re.IGNORECASE,
)


def parse_query(text: str) -> Condition | None:
    """Parse a query. Return None for an empty one."""
    if len(text) > MAX_QUERY_LENGTH:
        raise Invalid(f"The query has {len(text)} characters; the maximum is {MAX_QUERY_LENGTH}.")
    return QueryParser(text).parse() if text.strip() else None


class QueryParser:
    """Recursive descent parser of the query language."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0
        self.clauses = self.values = 0

    def parse(self) -> Condition:
        condition = self.parse_or()
        if not self.is_at_end():
            self.raise_expected("AND, OR or the end of the query")
        return condition

    def parse_or(self) -> Condition:
        parts = [self.parse_and()]
        while self.accept_word("OR"):
            parts.append(self.parse_and())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def parse_and(self) -> Condition:
        parts = [self.parse_term()]
        while self.accept_word("AND"):
            parts.append(self.parse_term())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def parse_term(self) -> Condition:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.raise_expected(f"at most {MAX_DEPTH} nested brackets and NOT")
        condition = self.parse_negation()
        self.depth -= 1
        return condition

    def parse_negation(self) -> Condition:
        if self.accept_word("NOT"):
            return Not(self.parse_term())
        if not self.accept("("):
            return self.clause()
        condition = self.parse_or()
        self.expect(")")
        return condition

    def clause(self) -> Condition:
        self.clauses += 1
        if self.clauses > MAX_CLAUSES:
            self.raise_expected(f"at most {MAX_CLAUSES} comparisons")
        position = self.skip_blanks()
        field = self.accept_pattern(FIELD) or self.raise_expected("a field name")
        if operator := self.accept_pattern(OPERATOR):
            values = (self.parse_single_value(),)
            is_negated = operator in ("!=", "<>")
            plain = Clause(field, "=" if is_negated or operator == "==" else operator, values, position)
            return Not(plain) if is_negated else plain
        if self.accept_word("IS"):
            is_negated = self.accept_word("NOT")
            return self.negate_if(is_negated, self.parse_null(field, position))
        is_negated = self.accept_word("NOT")
        for word, read in (("IN", self.parse_value_list), ("BETWEEN", self.parse_bounds)):
            if self.accept_word(word):
                return self.negate_if(is_negated, Clause(field, word, read(), position))
        if not is_negated and self.accept_word("STARTS_WITH"):
            return Clause(field, "STARTS_WITH", (self.parse_single_value(),), position)
        return self.raise_expected("a comparison: = != > < >= <= IN, NOT IN, BETWEEN, STARTS_WITH, IS NULL")

    @staticmethod
    def negate_if(is_negated: bool, clause: Clause) -> Condition:
        return Not(clause) if is_negated else clause

    def parse_null(self, field: str, position: int) -> Clause:
        if not self.accept_word("NULL"):
            self.raise_expected("NULL")
        return Clause(field, "NULL", (), position)

    def parse_single_value(self) -> QueryValue:
        if self.accept("("):
            value = self.value(",)")
            self.expect(")")
            return value
        return self.value(")")

    def parse_value_list(self) -> tuple[QueryValue, ...]:
        is_bracketed = self.accept("(")
        values = [self.value(",)")]
        while self.accept(","):
            values.append(self.value(",)"))
        if is_bracketed:
            self.expect(")")
        return tuple(values)

    def parse_bounds(self) -> tuple[QueryValue, ...]:
        lower = self.value(")", is_lower_bound=True)
        if not self.accept_word("AND"):
            self.raise_expected("AND and the upper bound")
        return lower, self.value(")")

    def value(self, ends: str, is_lower_bound: bool = False) -> QueryValue:
        self.values += 1
        if self.values > MAX_VALUES:
            self.raise_expected(f"at most {MAX_VALUES} values")
        position = self.skip_blanks()
        quote = self.text[position : position + 1]
        return QueryValue(
            self.parse_quoted(quote) if quote in ("'", '"') else self.parse_bare(ends, is_lower_bound), position
        )

    def parse_quoted(self, quote: str) -> str:
        """Parse a quoted text. A quote inside it is escaped by a backslash or by doubling it."""
        start, found = self.at, []
        self.at += 1
        while (sign := self.text[self.at : self.at + 1]) != quote or self.text[self.at + 1 : self.at + 2] == quote:
            if not sign:
                self.at = start
                self.raise_expected(f"a closing {quote}")
            if sign == quote or (sign == "\\" and self.text[self.at + 1 : self.at + 2] in (quote, "\\")):
                self.at += 1
            found.append(self.text[self.at])
            self.at += 1
        self.at += 1
        return "".join(found)

    def parse_bare(self, ends: str, is_lower_bound: bool) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in ends:
            blanks = BLANKS.match(self.text, self.at)
            after = blanks.end() if blanks else self.at
            if after > self.at and self.is_connective_at(after, is_lower_bound):
                break
            self.at = max(after, self.at + 1)
        found = self.text[start : self.at].strip()
        if not found:
            self.at = start
            self.raise_expected("a value")
        return found

    def is_connective_at(self, position: int, is_lower_bound: bool) -> bool:
        """Return True if AND or OR begins at a position. In lower case it may also be part of the value."""
        found = CONNECTIVE.match(self.text, position)
        return found is not None and (
            is_lower_bound or found[0].isupper() or bool(CLAUSE_AHEAD.match(self.text, found.end()))
        )

    def accept_word(self, word: str) -> bool:
        position = self.skip_blanks()
        end = position + len(word)
        follows = self.text[end : end + 1]
        if self.text[position:end].upper() != word or (follows and (follows.isalnum() or follows in "_.")):
            return False
        self.at = end
        return True

    def accept(self, sign: str) -> bool:
        if not self.is_next(sign):
            return False
        self.at += len(sign)
        return True

    def is_next(self, sign: str) -> bool:
        return self.text.startswith(sign, self.skip_blanks())

    def accept_pattern(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.skip_blanks())
        if found is None:
            return ""
        self.at = found.end()
        return found[0]

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            self.raise_expected(f"'{sign}'")

    def is_at_end(self) -> bool:
        return self.skip_blanks() == len(self.text)

    def skip_blanks(self) -> int:
        self.at = BLANKS.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.at

    def raise_expected(self, wanted: str) -> NoReturn:
        """Raise the error for the current position."""
        raise syntax_error(self.text, self.skip_blanks(), f"expected {wanted}")


def syntax_error(query: str, position: int, validation_error: str) -> Invalid:
    rest = query[position : position + 30]
    where = f"near '{rest}{'…' if len(query) > position + 30 else ''}'" if rest else "at the end"
    return Invalid(f"Invalid query at character {position + 1}, {where}: {validation_error}.")
