"""The search language, from text to a tree of conditions: `workflowType = order AND status IN (FAILED, TIMED_OUT)`.

    condition   NOT condition · (condition) · condition AND condition · condition OR condition · clause
    clause      field (= != <> > < >= <=) value · field [NOT] IN (value, …) · field [NOT] BETWEEN value AND value
                field STARTS_WITH value · field IS [NOT] NULL

A value is quoted or runs up to the next AND, OR, comma or bracket, so that what the original server understands is
understood here, blanks inside values included. `*` in a value of `=`, `!=` or IN stands for any text.
Small letters do for words of the language too, where a clause follows them.
"""

import re
from dataclasses import dataclass
from typing import NoReturn

from ...core.errors import Invalid

LONGEST, MOST_CLAUSES, MOST_VALUES, DEEPEST = 100_000, 200, 2_000, 30


@dataclass(frozen=True, slots=True)
class QueryValue:
    """What a field is compared with, and where it stands in the query."""

    text: str
    place: int


@dataclass(frozen=True, slots=True)
class Clause:
    """One comparison. `operator` is one of: = > < >= <= IN BETWEEN STARTS_WITH NULL."""

    field: str
    operator: str
    values: tuple[QueryValue, ...]
    place: int


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a condition."""

    part: "Condition"


@dataclass(frozen=True, slots=True)
class All:
    """All of these conditions hold."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class Any:
    """One of these conditions holds."""

    parts: tuple["Condition", ...]


Condition = Clause | Not | All | Any

BLANKS = re.compile(r"\s*")
FIELD = re.compile(r"""[A-Za-z_][\w-]*(?:\.[\w$@-]+|\["[^"\]\\]*"\]|\['[^'"\]\\]*'\]|\[\d{1,9}\])*""")
OPERATOR = re.compile(r"<>|!=|>=|<=|==|=|>|<")
CONNECTIVE = re.compile(r"(?:AND|OR)(?![\w.])", re.IGNORECASE)
CLAUSE_AHEAD = re.compile(
    rf"\s*(?:\(\s*|NOT\s+)*(?P<field>{FIELD.pattern})\s*(?:<>|!=|[=<>]|(?:NOT\s+)?(?:IN|BETWEEN)\b|STARTS_WITH\b|IS\s)",
    re.IGNORECASE,
)


def parse_query(text: str) -> Condition | None:
    """The condition that a query spells, None for an empty one; raises Invalid, which points at the place."""
    if len(text) > LONGEST:
        raise Invalid(f"The query is longer than {LONGEST} characters.")
    return QueryParser(text).whole() if text.strip() else None


class QueryParser:
    """Reads a query from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0
        self.clauses = self.values = 0

    def whole(self) -> Condition:
        condition = self.either()
        if not self.is_over():
            self.refuse("AND, OR or the end of the query")
        return condition

    def either(self) -> Condition:
        parts = [self.both()]
        while self.takes_word("OR"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else Any(tuple(parts))

    def both(self) -> Condition:
        parts = [self.one()]
        while self.takes_word("AND"):
            parts.append(self.one())
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def one(self) -> Condition:
        self.depth += 1
        if self.depth > DEEPEST:
            self.refuse(f"at most {DEEPEST} brackets and NOT inside one another")
        condition = self.opposite_or_clause()
        self.depth -= 1
        return condition

    def opposite_or_clause(self) -> Condition:
        if self.takes_word("NOT"):
            return Not(self.one())
        if not self.takes("("):
            return self.clause()
        condition = self.either()
        self.expect(")")
        return condition

    def clause(self) -> Condition:
        self.clauses += 1
        if self.clauses > MOST_CLAUSES:
            self.refuse(f"at most {MOST_CLAUSES} comparisons")
        place = self.skipped()
        field = self.matched(FIELD) or self.refuse("the name of a field")
        if operator := self.matched(OPERATOR):
            values = (self.single(),)
            is_opposite = operator in ("!=", "<>")
            plain = Clause(field, "=" if is_opposite or operator == "==" else operator, values, place)
            return Not(plain) if is_opposite else plain
        return self.worded(field, place)

    def worded(self, field: str, place: int) -> Condition:
        if self.takes_word("IS"):
            is_opposite = self.takes_word("NOT")
            return self.turned(is_opposite, self.null(field, place))
        is_opposite = self.takes_word("NOT")
        for word, read in (("IN", self.listed), ("BETWEEN", self.bounds)):
            if self.takes_word(word):
                return self.turned(is_opposite, Clause(field, word, read(), place))
        if not is_opposite and self.takes_word("STARTS_WITH"):
            return Clause(field, "STARTS_WITH", (self.single(),), place)
        return self.refuse("a comparison: = != > < >= <= IN, NOT IN, BETWEEN, STARTS_WITH, IS NULL")

    @staticmethod
    def turned(is_opposite: bool, clause: Clause) -> Condition:
        return Not(clause) if is_opposite else clause

    def null(self, field: str, place: int) -> Clause:
        if not self.takes_word("NULL"):
            self.refuse("NULL")
        return Clause(field, "NULL", (), place)

    def single(self) -> QueryValue:
        if self.takes("("):
            value = self.value(",)")
            self.expect(")")
            return value
        return self.value(")")

    def listed(self) -> tuple[QueryValue, ...]:
        is_bracketed = self.takes("(")
        values = [self.value(",)")]
        while self.takes(","):
            values.append(self.value(",)"))
        if is_bracketed:
            self.expect(")")
        return tuple(values)

    def bounds(self) -> tuple[QueryValue, ...]:
        lower = self.value(")", is_lower_bound=True)
        if not self.takes_word("AND"):
            self.refuse("AND and the upper bound")
        return lower, self.value(")")

    def value(self, ends: str, is_lower_bound: bool = False) -> QueryValue:
        self.values += 1
        if self.values > MOST_VALUES:
            self.refuse(f"at most {MOST_VALUES} values")
        place = self.skipped()
        quote = self.text[place : place + 1]
        return QueryValue(self.quoted(quote) if quote in ("'", '"') else self.bare(ends, is_lower_bound), place)

    def quoted(self, quote: str) -> str:
        """Up to the same quote; a backslash keeps one that belongs to the text, and so does doubling it."""
        start, found = self.at, []
        self.at += 1
        while (sign := self.text[self.at : self.at + 1]) != quote or self.text[self.at + 1 : self.at + 2] == quote:
            if not sign:
                self.at = start
                self.refuse(f"the closing {quote} of this text")
            if sign == quote or (sign == "\\" and self.text[self.at + 1 : self.at + 2] in (quote, "\\")):
                self.at += 1
            found.append(self.text[self.at])
            self.at += 1
        self.at += 1
        return "".join(found)

    def bare(self, ends: str, is_lower_bound: bool) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in ends:
            blanks = BLANKS.match(self.text, self.at)
            after = blanks.end() if blanks else self.at
            if after > self.at and self.sees_connective(after, is_lower_bound):
                break
            self.at = max(after, self.at + 1)
        found = self.text[start : self.at].strip()
        if not found:
            self.at = start
            self.refuse("a value")
        return found

    def sees_connective(self, place: int, is_lower_bound: bool) -> bool:
        """Whether AND or OR stands here; in small letters it may be a word of the value."""
        found = CONNECTIVE.match(self.text, place)
        return bool(found) and (
            is_lower_bound or found[0].isupper() or bool(CLAUSE_AHEAD.match(self.text, found.end()))
        )

    def takes_word(self, word: str) -> bool:
        place = self.skipped()
        end = place + len(word)
        follows = self.text[end : end + 1]
        if self.text[place:end].upper() != word or (follows and (follows.isalnum() or follows in "_.")):
            return False
        self.at = end
        return True

    def takes(self, sign: str) -> bool:
        if not self.sees(sign):
            return False
        self.at += len(sign)
        return True

    def sees(self, sign: str) -> bool:
        return self.text.startswith(sign, self.skipped())

    def matched(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.skipped())
        if found is None:
            return ""
        self.at = found.end()
        return found[0]

    def expect(self, sign: str) -> None:
        if not self.takes(sign):
            self.refuse(f"'{sign}'")

    def is_over(self) -> bool:
        return self.skipped() == len(self.text)

    def skipped(self) -> int:
        """The place of the next sign that is no blank."""
        self.at = BLANKS.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.at

    def refuse(self, wanted: str) -> NoReturn:
        raise syntax_error(self.text, self.skipped(), f"expected {wanted}")


def syntax_error(query: str, place: int, complaint: str) -> Invalid:
    """A refusal that shows what stands at the place."""
    rest = query[place : place + 30]
    where = f"'{rest}{'…' if len(query) > place + 30 else ''}'" if rest else "the end"
    return Invalid(f"The query cannot be understood at character {place + 1}, {where}: {complaint}.")
