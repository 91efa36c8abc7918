"""The table "Where to find what" in docs/explanation/architecture.md names modules and functions that exist."""

import ast
import re

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


def test_each_slice_has_a_row():
    slices = {path.name for path in APP.iterdir() if (path / "__init__.py").exists()}
    without_rows = {"management", "migrations", "models", "templates", "static", "utils"}

    assert slices - {module.split("/")[0] for _, modules, _ in ROWS for module in modules} <= without_rows
