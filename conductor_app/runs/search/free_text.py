"""Free text with fields, as users of Elasticsearch write it: `correlationId:"order 7" AND status:(FAILED OR PAUSED)`.

    term        [+-] field : value · word
    value       "phrase" · word, with `*` · (value OR value) · [value TO value] · >value
    condition   term, combined by blanks, AND, OR, NOT and brackets

It is translated into the query language. Words without a field are searched everywhere. They can be combined with AND
only. Text without a field that is known, such as `http://host`, consists of words.

The searchable fields of a table.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import NoReturn

from ...core.errors import Invalid
from .documents import DocumentSearchField
from .fields import InvalidSearchValue, SearchField
from .parser import CLAUSE_AHEAD, FIELD, Clause, Condition, parse_query


@dataclass(frozen=True)
class SearchLanguage:
    """Searchable fields and columns of one table. `newest`: the column that orders rows by creation."""

    plural_name: str
    fields: Mapping[str, SearchField]
    newest: str
    texts: tuple[str, ...]
    exact: tuple[str, ...]
    """Columns with an index in which free text finds exact values, regardless of the age of the row."""
    sorts: Mapping[str, str]
    sorts_by_index: frozenset[str]
    is_joined: bool = False
    """True if fields belong to joined tables."""
    names_by_lowercase: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names_by_lowercase", {name.lower(): name for name in self.fields})

    def field_of(self, clause: Clause) -> tuple[str, SearchField]:
        """Return name and field of a clause.

        Raises:
            InvalidSearchValue: when the field is unknown, or the clause has a path in a field that is not a document.
        """
        base = base_of(clause.field)
        name = self.name_of(base)
        if name is None:
            known = ", ".join(sorted(self.fields))
            raise InvalidSearchValue(
                clause.position, f"unknown field '{base[:50]}' of {self.plural_name}; use one of: {known}"
            )
        found = self.fields[name]
        if clause.field != base and not isinstance(found, DocumentSearchField):
            raise InvalidSearchValue(clause.position, f"'{name}' is not a document and has no members")
        return name, found

    def name_of(self, written: str) -> str | None:
        """Return the name of a field, whose case does not matter, without a path; None if it is unknown."""
        return self.names_by_lowercase.get(base_of(written).lower())

    def is_query(self, text: str) -> bool:
        """Return True if a text starts like a query: with a known field and a comparison."""
        begins = CLAUSE_AHEAD.match(text)
        return begins is not None and self.name_of(begins["field"]) is not None


def base_of(field: str) -> str:
    """Return the name of a field without its path."""
    return field.replace("[", ".").split(".")[0]


MAX_WORDS, MAX_WORD_LENGTH = 10, 200
LONG_TEXTS = ("reason", "input", "output", "variables")
"""Columns in which a value is searched anywhere."""
TERM = re.compile(
    rf"""\s*(?:
    (?P<sign>[-+!](?=\S))?
    (?:(?P<field>{FIELD.pattern}):(?P<value>"(?:[^"\\]|\\.)*"?|[(\[{{][^)\]}}]*[)\]}}]|(?:\\.|[^\s()"\\])+)
    |(?P<bracket>[()])
    |"(?P<phrase>[^"]*)"?
    |(?P<word>[^\s()"]+)))""",
    re.VERBOSE,
)
RANGE = re.compile(r"[\[{]\s*(\S+)\s+TO\s+(\S+?)\s*[\]}]")
COMPARED = re.compile(r"([<>]=?)(.+)")
ALTERNATIVE = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"]+')
ESCAPED = re.compile(r"\\(.)")
OPERATORS = {"AND": "AND", "&&": "AND", "OR": "OR", "||": "OR", "NOT": "NOT"}


def parse_free_text(text: str, language: SearchLanguage) -> tuple[Condition | None, list[str]]:
    """Return the condition on fields in a free text, and its words without a field.

    Raises:
        Invalid: when the text names an unknown field before a quote, combines words by more than AND, has only
            operators, or is too long.
    """
    terms = [match for match in TERM.finditer(text) if match[0].strip()]
    if not any(_is_known(match, language) for match in terms):
        _refuse_unknown_field(terms, language)
        # In quotes they are words.
        operators = {match["word"] for match in terms if not match["sign"]} & {"AND", "&&", "OR"}
        words = [word for word in words_of(text) if word not in operators]
        if operators and not words and "*" not in text:
            raise Invalid(
                f"freeText has no words, only {' and '.join(sorted(operators))}. "
                "Write the words to search for, such as order AND paid, or put a word such as OR in double quotes."
            )
        if words and "OR" in operators:
            _refuse_combination(words[0])
        return None, words
    pieces, words = [], []
    for match in terms:
        if _is_known(match, language):
            pieces.append(("NOT " if match["sign"] in ("-", "!") else "") + _comparison(match, language))
        elif match["bracket"] or (match["word"] or "") in OPERATORS:
            pieces.append(match["bracket"] or OPERATORS[match["word"]])
        else:
            _refuse_unknown_field([match], language)
            words.append(match["phrase"] if match["phrase"] is not None else match[0].strip())
    if words and any(piece in ("(", ")", "OR", "NOT") for piece in pieces):
        _refuse_combination(words[0])
    if words:
        pieces = [piece for piece in pieces if piece != "AND"]
    return parse_query(" ".join(_with_and(pieces))), checked_words(words)


def words_of(text: str) -> list[str]:
    """Split free text into words. Quoted words stay together, and `*` gives none.

    Raises:
        Invalid: when there are too many words, or a word is too long.
    """
    pieces = text.split('"')
    found = [piece.strip() for piece in pieces[1::2]]
    for piece in pieces[::2]:
        found += piece.split()
    return checked_words(found)


def checked_words(found: list[str]) -> list[str]:
    """Return the words to search for.

    Raises:
        Invalid: when there are too many words, or a word is too long.
    """
    words = [word for each in found if (word := each.strip("*"))]
    if len(words) > MAX_WORDS or any(len(word) > MAX_WORD_LENGTH for word in words):
        raise Invalid(f"freeText may have at most {MAX_WORDS} words of at most {MAX_WORD_LENGTH} characters each.")
    return words


def _refuse_combination(word: str) -> NoReturn:
    raise Invalid(
        f"freeText can combine words without a field, such as {word[:50]!r}, with AND only. "
        "Name a field, such as input:word, or write the conditions on fields in the parameter `query`."
    )


def _is_known(match: re.Match[str], language: SearchLanguage) -> bool:
    return bool(match["field"]) and language.name_of(match["field"]) is not None


def _refuse_unknown_field(terms: list[re.Match[str]], language: SearchLanguage) -> None:
    """Refuse `name:"text"` with an unknown name. Without quotes it may be a word, such as an address."""
    for match in terms:
        if match["field"] and match["value"].startswith(('"', "(", "[", "{")):
            _raise_unknown(match["field"], language)


def _raise_unknown(field: str, language: SearchLanguage) -> NoReturn:
    similar = get_close_matches(field.lower(), language.names_by_lowercase, 1)
    hint = f"Did you mean {language.names_by_lowercase[similar[0]]}? " if similar else ""
    known = ", ".join(sorted(language.fields))
    raise Invalid(
        f"freeText names an unknown field {field[:50]!r} of {language.plural_name}. {hint}Use one of: {known}."
    )


def _comparison(match: re.Match[str], language: SearchLanguage) -> str:
    """Return a term in the query language."""
    field, value = match["field"], match["value"]
    if bounds := RANGE.fullmatch(value):
        lower, upper = bounds.groups()
        limits = [f"{field} >= {_quote(lower)}"] if lower != "*" else []
        limits += [f"{field} <= {_quote(upper)}"] if upper != "*" else []
        return f"({' AND '.join(limits)})" if limits else f"NOT {field} IS NULL"
    if compared := COMPARED.fullmatch(value):
        return f"{field} {compared[1]} {_quote(compared[2])}"
    if value.startswith("("):
        words = [each for each in ALTERNATIVE.findall(value[1:-1]) if each not in OPERATORS]
        return f"({' OR '.join(_equality(field, each, language) for each in words) or f'{field} IS NULL'})"
    return _equality(field, value, language)


def _equality(field: str, value: str, language: SearchLanguage) -> str:
    text = ESCAPED.sub(r"\1", value[1:].removesuffix('"') if value.startswith('"') else value)
    if text == "*":
        return f"NOT {field} IS NULL"
    name = language.name_of(field)
    is_contained = field.lower() == str(name).lower() and language.fields[str(name)].column in LONG_TEXTS
    return f"{field} = {_quote(f'*{text}*' if is_contained else text)}"


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _with_and(pieces: list[str]) -> Iterator[str]:
    """Yield the pieces with AND between two that only a blank separates."""
    before = "AND"
    for piece in pieces:
        if before not in ("AND", "OR", "NOT", "(") and piece not in ("AND", "OR", ")"):
            yield "AND"
        yield piece
        before = piece
