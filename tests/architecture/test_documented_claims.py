"""The documentation of security names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "security-promises.md"
TEST = re.compile(r"^ *def (test_\w+)", re.MULTILINE)
ROW = re.compile(r"^\| (?P<promise>[^|]+) \| (?P<tests>[^|]*`test_[^|]*) \|$", re.MULTILINE)


def existing_tests() -> set[str]:
    texts = (path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    return {name for text in texts for name in TEST.findall(text)}


def test_each_test_that_the_documentation_of_security_names_exists():
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))

    assert len(named) > 100
    assert named - existing_tests() == set()


def test_each_promise_names_a_test():
    """Every row of a table of promises has a test."""
    promises = PAGE.read_text().partition("## Promises\n")[2].partition("\n## ")[0]
    rows = [line for line in promises.splitlines() if line.startswith("| ") and not line.startswith("| promise |")]

    assert rows
    assert [row for row in rows if not ROW.fullmatch(row)] == []
