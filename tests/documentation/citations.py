"""Citations of specifications, such as `execution §4.1` in a comment, and the anchors of spec/."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SPECIFICATIONS = ROOT / "spec"
FOLDERS = ("conductor_app", "tests", "templates")
SUFFIXES = frozenset((".py", ".html", ".js", ".mjs", ".ts", ".css", ".java"))
SKIPPED = frozenset(("node_modules", "target", "documentation"))
NUMBER = r"\d+(?:\.\d+)*[a-z]?"
CITATION = re.compile(
    rf"(?:\b(?P<page>execution|api|taskcluster|RFC \d+),? )?(?:\(?)§ ?(?P<numbers>{NUMBER}(?:-{NUMBER})?)"
    rf"(?:,? (?:rows?|items?) (?P<rows>\d+(?:-\d+)?(?:(?:, | and )\d+)*)| (?P<bare_rows>\d+(?:, \d+)*)(?=\)))?"
)
ANCHOR = re.compile(r'\{ #(s[\w-]+) \}|<a id="(s[\w-]+)">')


class Citation(NamedTuple):
    place: str
    page: str
    anchor: str


def anchors(page: str) -> set[str]:
    """Return the anchors of the sections, rows and items of a page."""
    return {first or second for first, second in ANCHOR.findall((SPECIFICATIONS / f"{page}.md").read_text())}


def citations() -> Iterator[Citation]:
    """Yield each citation in code and tests. One without the name of a page cites the page that was named before it."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SUFFIXES and not SKIPPED & set(path.parts):
                yield from citations_in(path.read_text(), path.relative_to(ROOT).as_posix())


def citations_in(text: str, place: str) -> Iterator[Citation]:
    page = ""
    for line, content in enumerate(text.splitlines(), 1):
        if "§" not in content:
            continue
        for found in CITATION.finditer(content):
            page = found["page"] or page
            if not page.startswith("RFC"):
                yield from _cited(f"{place}:{line}", page, found)


def _cited(place: str, page: str, found: re.Match[str]) -> Iterator[Citation]:
    first, _, last = found["numbers"].partition("-")
    for number in (first, last):
        if number:
            yield Citation(place, page, "s" + number.replace(".", "-"))
    for row in re.findall(r"\d+", found["rows"] or found["bare_rows"] or ""):
        yield Citation(place, page, f"s{first.replace('.', '-')}-{row}")
