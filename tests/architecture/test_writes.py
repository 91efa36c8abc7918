"""Write access: interfaces and queries only read, commands write, and only stores write the tables of executions."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from django.apps import apps

from tests.architecture.modules import imports, modules, relative, walk

READERS = ("queries", "serializers", "api", "pages", "editor", "workers", "explanations", "timeline", "search")
"""Roles and folders whose modules only read."""
WRITES = {
    "save", "create", "update", "delete", "bulk_create", "bulk_update", "get_or_create", "update_or_create",
}  # fmt: skip
# A page owns the rows that exist for that page only.
OWNED_BY_PAGES = {
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
OWNED = {model.__name__ for model in apps.get_app_config("conductor").get_models()} - OWNED_BY_PAGES
STORE_TABLES = {
    "Run", "Task", "Attempt", "HistoryEntry", "TaskLog", "Message", "InboxMessage", "StandaloneTask", "Dependency",
    "PulseMessage", "StoredPayload", "PayloadReference", "CachedResult", "WebhookWait", "WebhookPaths",
}  # fmt: skip
"""The tables of executions. Others (definitions, schedules, access, …) are written by the command that owns them."""


SQL_WRITE = re.compile(rf"\b(INSERT INTO|UPDATE|DELETE FROM) conductor_({'|'.join(STORE_TABLES)})\b", re.IGNORECASE)


def has_role(path: Path, *roles: str) -> bool:
    """Return True if a module has one of these roles, by its name or by that of its folder."""
    parts = Path(relative(path)).with_suffix("").parts
    return any(part in roles for part in parts)


def writes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the calls that write through a manager or QuerySet of our models, or save a row."""
    for node in walk(tree):
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


def test_readers_do_not_write_tables():
    broken = [
        f"{relative(path)}:{line} writes: {what}"
        for path, tree in modules()
        if has_role(path, *READERS)
        for line, what in writes(tree)
    ]

    assert broken == []


def test_writing_transactions_do_not_start_in_readers():
    broken = [
        f"{relative(path)}:{line} begins a transaction"
        for path, tree in modules()
        if has_role(path, *READERS)
        for line, module in imports(path, tree)
        if module == "conductor_app.db.database.transaction"
    ]

    assert broken == []


def test_only_one_module_knows_the_database():
    """Others would use `default`, where another Django project may not have the tables."""
    names = {f"django.db.{name}" for name in ("connection", "transaction", "DEFAULT_DB_ALIAS")}
    broken = [
        f"{relative(path)}:{line} imports {name}"
        for path, tree in modules()
        if relative(path) != "db/database.py" and not relative(path).startswith(("migrations/", "db/sqlite/"))
        for line, name in imports(path, tree)
        if name in names
    ]

    assert broken == []


def test_only_stores_write_the_tables_of_executions():
    broken = []
    for path, tree in modules():
        # A restore writes all tables, at any state of the migrations.
        if has_role(path, "store", "migrations", "backup"):
            continue
        aliases = _names_of_store_tables(tree)
        broken += [
            f"{relative(path)}:{node.lineno} {ast.unparse(node)[:80]}"
            for node in walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in WRITES
            and ast.unparse(node.func.value).split(".objects")[0] in aliases
        ]
        broken += [
            f"{relative(path)}:{node.lineno} {node.value[:80]}"
            for node in walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            if SQL_WRITE.search(node.value)
        ]

    assert broken == []


def _names_of_store_tables(tree: ast.Module) -> set[str]:
    """Return the names under which a module imports models of the tables of executions."""
    return {
        alias.asname or alias.name
        for node in walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[-1] == "models"
        for alias in node.names
        if alias.name in STORE_TABLES
    }


def test_the_check_detects_a_write():
    found = writes(ast.parse("Run.objects.filter(pk=1).update(status='COMPLETED')\nTask.objects.create()"))

    assert [line for line, _ in found] == [1, 2]
