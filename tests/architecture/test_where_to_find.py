"""The tables of docs/explanation/architecture.md name modules and functions that exist and that the server uses."""

import ast
import re
from collections import Counter
from functools import cache

import pytest

from tests.architecture.modules import APP

DOCUMENT = APP.parent / "docs" / "explanation" / "architecture.md"


def documented_rows() -> list[tuple[str, list[str], list[str]]]:
    """Return the question, the modules and the names of each row."""
    section = DOCUMENT.read_text().split("## Where to find what", 1)[1].split("\n## ", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return [
        (question, re.findall(r"`([^`]+)`", modules), re.findall(r"`([^`]+)`", names))
        for question, modules, names in rows[2:]
        if modules
    ]


def names_in(module: str) -> set[str]:
    """Return the names that a module defines or registers at its top level, or the statements of an SQL file."""
    text = (APP / module).read_text()
    if module.endswith(".sql"):
        return set(re.findall(r"^-- name: (\w+)$", text, re.MULTILINE))
    names = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return names


ROWS = documented_rows()


@pytest.mark.parametrize(("question", "modules", "names"), ROWS, ids=[row[0] for row in ROWS])
def test_a_question_leads_to_a_module_that_has_the_name(question, modules, names):
    assert [module for module in modules if not (APP / module).is_file()] == []
    assert set(names) - set().union(*map(names_in, modules)) == set()


ANSWERS = DOCUMENT.read_text().split("## Ten answers", 1)[1].split("\n## ", 1)[0]
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)(?::(\w+))?`", ANSWERS)))


@pytest.mark.parametrize(("module", "name"), NAMED, ids=lambda part: part)
def test_an_answer_names_what_a_module_has(module, name):
    assert not name or name in names_in(module)


@cache
def words_of_the_server() -> Counter[str]:
    return Counter(word for path in APP.rglob("*.py") for word in re.findall(r"\w+", path.read_text()))


def test_the_server_uses_what_the_tables_name():
    names = {name for _, modules, names in ROWS for name in names if not modules[0].endswith(".sql")}

    assert {name for name in names | {name for _, name in NAMED if name} if words_of_the_server()[name] < 2} == set()


def test_each_slice_has_a_row():
    slices = {path.name for path in APP.iterdir() if (path / "__init__.py").exists()}
    without_rows = {"management", "server", "migrations", "models", "templates", "static", "utils"}

    assert slices - {module.split("/")[0] for _, modules, _ in ROWS for module in modules} <= without_rows
