"""The import contract: slices import one another in the order of `conductor_app/site/slices.py`, without circles."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conductor_app.site.slices import INTERFACES, SHARED_INTERFACES, SLICES, TOP
from tests.architecture.modules import APP, folder_of, import_graph, imports, modules, relative

ENTRY_POINTS = {"", "apps", "asgi", "celery", "urls", "wsgi"}
"""Modules at the top, where Django, Celery and web servers look for them."""

AGAINST_THE_ORDER = {
    # The format of log lines is a setting; it adds the context of the current operation.
    ("settings.logs", "telemetry"),
}
"""Imports against the order, as (module, slice). The list may only shrink."""
BELOW_INTERFACES = {
    # The sign-in through a provider ends like that with a password.
    "access.sign_in.openid imports access.sign_in.pages",
}
"""Modules that import an interface of their own slice. The list may only shrink."""

OUTSIDE_OF_THE_CORE = {"core/expressions/patterns.py": {"re2", "regex"}}


def slice_of(module: str) -> str:
    """Return the slice of a module: the longest name in the list, otherwise its first package."""
    two = ".".join(module.split(".")[:2])
    return two if two in SLICES else module.split(".")[0]


def is_interface(module: str) -> bool:
    return slice_of(module) in SHARED_INTERFACES or any(part in INTERFACES for part in module.split(".")[1:])


def may_import(module: str, imported: str) -> bool:
    """Return True if the order of the slices allows an import."""
    own, other = slice_of(module), slice_of(imported)
    if own == other or own in TOP or module in ENTRY_POINTS:
        return True
    if other in TOP:
        return False
    if is_interface(module):
        return True
    # All tables are in one app. A slice may read those of the slices above it.
    return not is_interface(imported) and (
        SLICES.index(other) < SLICES.index(own) or imported.split(".")[-1] == "models"
    )


def test_every_package_is_in_the_list():
    packages = {path.name for path in APP.iterdir() if path.is_dir()} - {"__pycache__", "static"}

    assert packages == {name for name in (*SLICES, *SHARED_INTERFACES, *TOP) if "." not in name}


def test_the_top_level_has_only_entry_points_and_packages():
    assert {path.stem for path in APP.glob("*.py")} == {"__init__", *ENTRY_POINTS - {""}}


def test_slices_import_in_their_order():
    found = {
        (module, slice_of(imported))
        for module, used in import_graph().items()
        for imported in used
        if not may_import(module, imported)
    }

    assert found == AGAINST_THE_ORDER


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("runs.commands.change", "tasks.store"),
        ("db.statements", "runs.models"),
        ("runs.queries.recent", "runs.pages.run"),
        ("runs.pages.run", "site.admin"),
        ("web.pages", "site.sidebar"),
    ],
)
def test_the_order_forbids_the_intended_imports(module, imported):
    is_within_slice, is_table = slice_of(module) == slice_of(imported), imported.endswith("models")

    assert may_import(module, imported) is (is_within_slice or is_table)


def test_queries_and_commands_import_no_interface_of_their_slice():
    broken = [
        f"{module} imports {imported}"
        for module, used in import_graph().items()
        for imported in used
        if slice_of(module) == slice_of(imported) and slice_of(module) not in (*SHARED_INTERFACES, *TOP)
        if is_interface(imported) and not is_interface(module)
    ]

    assert set(broken) == BELOW_INTERFACES


def test_the_core_imports_the_standard_library_and_itself():
    broken = []
    for path, tree in modules():
        if not relative(path).startswith("core/"):
            continue
        known = sys.stdlib_module_names | OUTSIDE_OF_THE_CORE.get(relative(path), set())
        for line, name in imports(path, tree):
            if name.split(".")[0] not in known and not name.startswith("conductor_app.core"):
                broken.append(f"{relative(path)}:{line} imports {name}")

    assert broken == []


def test_no_module_imports_itself_indirectly():
    graph = import_graph()
    circles = [circle for circle in _strongly_connected(graph) if len(circle) > 1]

    assert len(graph) > 400
    assert circles == []


def _strongly_connected(graph: dict[str, set[str]]) -> Iterator[list[str]]:
    """Yield the groups of modules that reach one another (Kosaraju)."""
    order: list[str] = []
    seen: set[str] = set()
    for start in graph:
        stack = [(start, iter(graph[start]))] if start not in seen else []
        seen.add(start)
        while stack:
            module, rest = stack[-1]
            following = next((name for name in rest if name not in seen), None)
            if following is None:
                order.append(stack.pop()[0])
            else:
                seen.add(following)
                stack.append((following, iter(graph[following])))
    reverse: dict[str, set[str]] = {name: set() for name in graph}
    for module, used in graph.items():
        for name in used:
            reverse[name].add(module)
    seen.clear()
    for start in reversed(order):
        group, to_visit = [], [start] if start not in seen else []
        seen.add(start)
        while to_visit:
            group.append(to_visit.pop())
            following_modules = reverse[group[-1]] - seen
            seen |= following_modules
            to_visit += following_modules
        yield group


def test_no_two_folders_import_each_other():
    """A folder inside another does not count: a package and its parts are one subject."""
    used: dict[str, set[str]] = {}
    for module, targets in import_graph().items():
        used.setdefault(folder_of(module), set()).update(map(folder_of, targets))
    pairs = [
        f"{folder} and {other}"
        for folder in used
        for other in used[folder]
        if folder < other and folder and folder in used.get(other, ()) and not other.startswith(f"{folder}/")
    ]

    assert pairs == []


LOCAL_IMPORTS = {
    "site/admin.py": "the pages of sign-in need django-axes, which other projects do not have",
    "site/wiring.py": "the library of HTTP requests is loaded with the first task",
    "apps.py": "models and signal handlers can be imported only when the app is ready",
    "wsgi.py": "the settings module is named first",
    "in_process/checks.py": "the apps are checked before their models are loaded",
    "in_process/api.py": "projects import the functions before their models are loaded",
    "in_process/tasks_backend.py": "projects create the backend before their models are loaded",
    "in_process/worker.py": "Django's tasks framework is optional before Django 6",
    "in_process/tasks.py": "projects import the decorator before their models are loaded",
    "processes/gunicorn_config.py": "a worker process imports them, not the arbiter",
    "processes/background.py": "Celery's beat imports the jobs, and not what they run",
    "processes/jobs.py": "Celery's beat needs no network guard",
    "processes/job_trigger.py": "web processes import the trigger, and not the jobs",
    "ai/wiring.py": "the workers are loaded with the first task",
    "ai/workers/tasks.py": "the client of MCP servers is loaded with the first task",
    "ai/workers/trials.py": "the client of a provider is loaded with the first task",
    "access/sign_in/openid.py": "Authlib is loaded with the first sign-in through a provider",
    "processes/command_line.py": "the processes of a server do not need the HTTP client of the remote commands",
    "db/statements.py": "psycopg is loaded with PostgreSQL only",
    "testing/plugin.py": "a test run that starts no server loads nothing for it",
    "testing/server.py": "the SDK is optional, and is loaded with the first worker",
    "testing/server_process.py": "the settings module is named first",
    "agents/api.py": "the package of the protocol is optional, and is loaded with the first message",
}
"""Modules that import application modules inside functions, with the reason."""


def _local_imports(path: Path, tree: ast.AST) -> Iterator[int]:
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    for function in functions:
        for line, module in imports(path, function):
            if module.startswith("conductor_app"):
                yield line


def test_modules_are_imported_inside_functions_only_for_a_listed_reason():
    found = {relative(path) for path, tree in modules() if any(_local_imports(path, tree))}

    assert found == set(LOCAL_IMPORTS)


def test_a_module_is_neither_a_sliver_nor_a_giant():
    named_by_others = ("migrations/", "management/commands/", "server/management/", "settings/")
    sizes = {
        relative(path): len(path.read_text().splitlines())
        for path, _ in modules()
        if path.name not in ("__init__.py", "urls.py") and not relative(path).startswith(named_by_others)
    }
    lines = sorted(sizes.values())

    assert lines[len(lines) // 2] >= 200
    assert {name: size for name, size in sizes.items() if size > 700} == {}
    assert len([name for name, size in sizes.items() if size < 60]) <= 20
    assert len(sizes) <= 480
