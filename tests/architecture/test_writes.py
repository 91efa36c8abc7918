"""Write access: interfaces and insight only read, the engine runs commands, and only the store writes its tables."""

import ast
from collections.abc import Iterator

import pytest

from conductor_app import models
from tests.architecture.test_imports import APP, imports, modules, own_room, said

READERS = ("insight", "api", "admin", "workers", "access", "importers")
WRITES = {
    "save", "create", "update", "delete", "bulk_create", "bulk_update", "get_or_create", "update_or_create",
}  # fmt: skip
# A page owns the rows that exist for that page only.
OWNED_BY_FACES = {
    "User",
    "Group",
    "Permission",
    "ApiKey",
    "AccessKey",
    "Token",
    "Application",
    "SavedView",
    "Preference",
    "GroupProfile",
    "AccessRevision",
}
OWNED = {name for name in models.__all__ if name not in OWNED_BY_FACES}


def writes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the calls that write through a manager or QuerySet of our models, or save a row."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WRITES):
            continue
        chain = [part.id if isinstance(part, ast.Name) else part.attr for part in _chain(node.func.value)]
        if "objects" in chain and OWNED & set(chain):
            yield node.lineno, f"{chain[-1]}.…{node.func.attr}()"


def _chain(node: ast.AST) -> Iterator[ast.Name | ast.Attribute]:
    while True:
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Attribute):
            yield node
            node = node.value
        else:
            if isinstance(node, ast.Name):
                yield node
            return


@pytest.mark.parametrize("room", READERS)
def test_readers_do_not_write_engine_tables(room):
    broken = [
        said(path, line, f"{room} writes: {what}")
        for path, tree in modules()
        if own_room(path).split(".")[0] == room
        for line, what in writes(tree)
    ]

    assert broken == []


def test_insight_saves_no_row_at_all():
    broken = [
        said(path, node.lineno, f"insight calls .{node.func.attr}()")
        for path, tree in modules()
        if own_room(path) == "insight"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WRITES - {"update"}
    ]

    assert broken == []


def test_writing_transactions_start_in_the_engine_only():
    reading = APP / "models" / "snapshots.py"
    broken = [
        said(path, line, "begins a transaction")
        for path, tree in modules()
        if own_room(path) not in ("engine", "migrations", "settings", "access", "management.backup") and path != reading
        for line, module in imports(path, tree)
        if module == "django.db.transaction"
    ]

    assert broken == []


def test_the_check_detects_a_write():
    found = writes(ast.parse("Run.objects.filter(pk=1).update(status='COMPLETED')\nTask.objects.create()"))

    assert [line for line, _ in found] == [1, 2]
    assert (APP / "insight").is_dir()
