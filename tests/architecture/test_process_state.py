"""State of a process is in slots of `process_state`: no module changes a value of its own, or fixes the database."""

import ast
import os
from collections.abc import Iterator

import pytest

from tests.architecture.modules import APP, modules
from tests.forked_interpreter import run_forked

pytestmark = pytest.mark.slow

MUTABLE = {"dict", "list", "set", "deque", "defaultdict", "OrderedDict", "Counter", "WeakSet", "count"}
CHANGING = {
    *("add", "append", "appendleft", "clear", "discard", "extend", "insert", "move_to_end", "pop", "popitem"),
    *("popleft", "remove", "setdefault", "update"),
}
EXCEPTIONS = {
    "site/openapi/schema.py _serializers": "one class for each constant table, which never changes",
    "core/step_types/__init__.py DECLARED_TYPES": "types are registered at import",
    "core/step_types/__init__.py STEP_TYPES": "the table of step types, which the start of a process completes",
    "runs/store/data.py LOADERS": "the table of loaders, which is complete after the import of its module",
    "notifications/redis.py _listener": "a connection and its thread: they do not end with a reset",
    "notifications/sqlite.py _inbox": "a socket and its thread: they do not end with a reset",
    "scripts/engines/monty.py worker": "a helper process has no other state, and does not import this package",
    "scripts/pool.py POOLS": "helper processes, which the pool drops after a fork",
    "telemetry/folder.py _temporary_folder": "its process deletes the folder, whose id is stored with it",
    "telemetry/metrics.py ATTEMPTS_ENDED": "its registry exports it as long as the process lives",
    "telemetry/metrics.py RUNS_ENDED": "its registry exports it as long as the process lives",
    "telemetry/metrics.py RUNS_STARTED": "its registry exports it as long as the process lives",
    "alerts/notifier.py _transport": "connections, one for each thread",
    "events/sinks/kafka.py _producers": "connections by process id: a reset would not close them",
}
"""Values of modules that change, each with the reason why it is not a slot."""


def test_no_module_changes_a_value_of_its_own():
    classes = changing_classes()
    found = {f"{path.relative_to(APP)} {name}" for path, tree in modules() for name in changed_names(tree, classes)}
    found = {place for place in found if not place.startswith(("settings/", "utils/process_state.py "))}

    assert found == EXCEPTIONS.keys()


IMPORT_EVERYTHING = """
import pkgutil
from importlib import import_module
import django
from django.utils.connection import ConnectionProxy
import conductor_app

read = ConnectionProxy.__getattr__

def refuse(connection, name):
    assert name not in ("vendor", "settings_dict", "cursor"), f"a module reads `connection.{name}` at its import"
    return read(connection, name)

ConnectionProxy.__getattr__ = refuse
django.setup()
for package in ("access", "core", "definitions", "models", "runs", "tasks", "taskcluster"):
    for module in pkgutil.walk_packages([f"{conductor_app.__path__[0]}/{package}"], f"conductor_app.{package}."):
        import_module(module.name)
"""


def test_no_import_depends_on_the_database():
    done = run_forked("-c", IMPORT_EVERYTHING, env=os.environ)

    assert done.returncode == 0, done.stderr[-2000:]


def changing_classes() -> set[str]:
    """Return the names of the classes whose methods change the object after its creation."""
    found = set()
    for _, tree in modules():
        for each in ast.walk(tree):
            if isinstance(each, ast.ClassDef):
                methods = [part for part in each.body if isinstance(part, ast.FunctionDef) and part.name != "__init__"]
                attributes = [target for method in methods for target in changed(method)]
                found |= {each.name} if any(ast.unparse(target).startswith("self.") for target in attributes) else set()
    return found


def changed_names(tree: ast.Module, classes: set[str]) -> Iterator[str]:
    """Yield the names of a module whose values functions replace or change."""
    values = {}
    for each in tree.body:
        if isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value is not None:
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            values |= {target.id: each.value for target in targets if isinstance(target, ast.Name)}
    for name, value in values.items():
        if isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in classes:
            yield name
    for function in ast.walk(tree):
        if isinstance(function, ast.Global):
            yield from function.names
        elif isinstance(function, ast.FunctionDef):
            own = {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)}
            own |= {each.id for each in ast.walk(function) if isinstance(each, ast.Name) and is_stored(each)}
            for target in changed(function):
                if isinstance(target, ast.Name) and target.id not in own and is_mutable(values.get(target.id)):
                    yield target.id


def changed(function: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions that the function changes: by their items, their attributes, or a method."""
    for each in ast.walk(function):
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
            yield each
        elif isinstance(each, ast.Subscript) and not isinstance(each.ctx, ast.Load):
            yield each.value
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in CHANGING:
            yield each.func.value


def is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def is_mutable(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in MUTABLE
    return isinstance(value, (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp))
