"""Every text on a page goes through gettext.

Text in a template is: characters between tags, attributes that people read or that screen readers announce, and
sentences in the parameters of an `include`. The contents of <code>, <pre> and <kbd> are exempt.
"""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from django.template.base import Lexer, Token, TokenType
from django.utils.text import smart_split

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "templates"
READ_ALOUD = {"title", "aria-label", "placeholder", "alt", "label", "aria-description"}
FOR_MACHINES = {"code", "pre", "kbd", "script", "style"}
THE_SAME_EVERYWHERE = {"Conductor", "Taskcluster", "JSON", "UTC", "Id", "URL", "cron", "HUMAN"}
TAGS_WITH_TEXT = {"include", "with", "crumb", "fact", "action", "placeholder", "text_field", "form_field"}
SENTENCE = re.compile(r'"[^"]*[A-Za-z]{2}[^"]* [^"]*"$|"[A-Z][a-z]+"$')
CLASSES = ("block bodyclass", "block coltype")
GUESSED = {"default", "default_if_none", "yesno", "pluralize"}
"""Filters whose argument can be displayed: words in it are text."""

# A template leaves this list when all of its texts go through gettext; no template is added.
NOT_YET: set[str] = set()


def test_every_text_of_a_template_uses_gettext():
    found = {path: list(texts(path)) for path in names() if path not in NOT_YET}

    assert {path: said for path, said in found.items() if said} == {}


def test_finished_entries_are_removed_from_the_list():
    assert sorted(path for path in NOT_YET if path not in names() or not list(texts(path))) == []


def names() -> list[str]:
    return sorted(str(path.relative_to(TEMPLATES)) for path in TEMPLATES.rglob("*.html"))


def texts(path: str) -> Iterator[str]:
    """Yield the texts of a template that do not go through gettext."""
    tokens = outside_of_gettext(Lexer((TEMPLATES / path).read_text()).tokenize())
    reader = Reader()
    for token in tokens:
        if token.token_type == TokenType.TEXT:
            reader.feed(token.contents)
        elif token.token_type == TokenType.VAR:
            reader.feed(f" {guessed(token.contents)} ")
        elif token.token_type == TokenType.BLOCK:
            yield from sentences(token.contents)
    reader.close()
    yield from (text for text in reader.found if is_text(text))


def outside_of_gettext(tokens: list[Token]) -> Iterator[Token]:
    """Yield the tokens outside blocktranslate, comment and class blocks."""
    until = ""
    for token in tokens:
        word = token.contents.split()[0] if token.token_type == TokenType.BLOCK else ""
        if until:
            until = "" if word == until else until
        elif word in ("blocktranslate", "blocktrans", "comment") or (word and token.contents in CLASSES):
            until = f"end{word}"
        else:
            yield token


def guessed(variable: str) -> str:
    """Return the text that a variable's filters can display."""
    return " ".join(
        found.group(2) for found in re.finditer(r"\|(\w+):\"([^\"]*)\"", variable) if found.group(1) in GUESSED
    )


def sentences(tag: str) -> Iterator[str]:
    """Return the arguments of a tag that read like a sentence and are not marked by _( )."""
    word, *bits = smart_split(tag)
    if word in TAGS_WITH_TEXT:
        values = [bit.partition("=")[2] or bit for bit in bits]
        yield from (
            value for value in values if re.match(r"\"[^\"]*[A-Za-z]{2}[^\"]* [^\"]*\"$|\"[A-Z][a-z]+\"$", value)
        )


def is_text(text: str) -> bool:
    """Return whether the text contains words of a language; single letters and names do not count."""
    return any(word not in THE_SAME_EVERYWHERE for word in re.findall(r"[^\W\d_]{2,}", text))


class Reader(HTMLParser):
    """Collect the texts of a template's HTML that people read or that screen readers announce."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.silent: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in FOR_MACHINES:
            self.silent.append(tag)
        self.found += [value for name, value in attributes if name in READ_ALOUD and value]
        if tag == "input" and dict(attributes).get("type") in ("submit", "button"):
            self.found.append(dict(attributes).get("value") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in self.silent:
            self.silent.remove(tag)

    def handle_data(self, data: str) -> None:
        if not self.silent and data.strip():
            self.found.append(data.strip())
