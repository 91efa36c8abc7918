"""The style sheets follow the design: three sizes of text and the title, and no rules for classes that no page has."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "static" / "ops"
SHEETS = sorted(STATIC.glob("*.css"))
SIZES = {f"var(--text-{name})" for name in ("title", "large", "body", "small")} | {"inherit"}
FOREIGN = ("cm-", "tok-", "select2-", "column-", "field-", "model-")
"""Prefixes of classes of CodeMirror, its highlighter and Select2, and of those that the admin makes of names."""
COMPOSED = {"depth-": range(1, 10), "ansi-": (), "ansi-ink-": (), "ansi-ground-": ()}
"""Prefixes to which templates and Python append a value."""


def css(sheet: Path) -> str:
    """Return a style sheet without its comments."""
    return re.sub(r"/\*.*?\*/", "", sheet.read_text(), flags=re.DOTALL)


def selectors(text: str) -> str:
    """Return everything in front of the braces of a style sheet, without strings and addresses."""
    return re.sub(r'"[^"]*"|\{[^{}]*\}', " ", text)


@cache
def words() -> frozenset[str]:
    """Return all words of the templates, scripts and Python modules, and of the templates of the Django admin."""
    import django.contrib.admin

    folders = (ROOT / "templates", ROOT / "conductor_app", STATIC, Path(django.contrib.admin.__file__).parent)
    files = (path for folder in folders for path in folder.rglob("*") if path.suffix in {".html", ".py", ".js", ".mjs"})
    return frozenset(word for path in files for word in re.findall(r"[\w-]+", path.read_text().lower()))


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_text_has_one_of_the_sizes_of_the_design(sheet):
    sizes = re.findall(r"font-size:\s*([^;}]+)", css(sheet))
    shorthands = re.findall(r"[\s;{]font:\s*([^;}]+)", css(sheet))

    assert {size.strip() for size in sizes} <= SIZES
    assert {re.split(r"[/ ]", font)[0] for font in shorthands} <= SIZES


def test_the_sizes_are_three_and_that_of_titles():
    sizes = dict(re.findall(r"--text-(\w+):\s*([^;]+);", css(STATIC / "design.css")))

    assert sizes == {"title": "1.25rem", "large": "0.9375rem", "body": "0.8125rem", "small": "0.75rem"}


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_every_class_of_a_style_sheet_is_used(sheet):
    names = set(re.findall(r"\.([a-zA-Z][\w-]*)", selectors(css(sheet))))
    known = {name for name in names if name.startswith((*FOREIGN, *COMPOSED))}

    assert sorted(name for name in names - known if name.lower() not in words()) == []


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_every_column_of_a_list_that_has_a_rule_exists(sheet):
    names = set(re.findall(r"\.(?:field|column)-([\w-]+)", selectors(css(sheet))))

    assert sorted(name for name in names if name not in words()) == []


def test_the_rows_of_tables_are_32_to_36_pixels_high_and_lower_for_users_who_prefer_it():
    usual, compact = re.findall(r"--row-height:\s*(\d+)px", css(STATIC / "design.css"))

    assert 32 <= int(usual) <= 36 and int(compact) < 32
