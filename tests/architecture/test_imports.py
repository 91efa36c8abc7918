"""The import contract: a table of allowed imports, and stricter rules below it."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

APP = Path(__file__).parents[2] / "conductor_app"
LEAVES = {"clock", "conf", "fault_points", "json_values", "memory_tuning", "parking", "process_state", "randomness"}
BELOW_FACES = {"telemetry", "engine", "insight", "access", "models", "core", "notifications", "transient_errors"}

# Each package and its allowed imports, besides itself and the leaf packages. A subpackage has its own line.
ROOMS: dict[str, set[str]] = {
    "core": set(),
    "randomness": set(),
    "clock": set(),
    "conf": {"settings"},
    "fault_points": {"process_state"},
    "process_state": set(),
    "memory_tuning": set(),
    "parking": set(),
    "json_values": set(),
    "scripts": set(),
    "demo": set(),
    "remote": {"core"},
    "notifications": set(),
    "blob_storage": set(),
    "transient_errors": {"core", "scripts", "blob_storage"},
    "telemetry": {"core"},
    "models": {"telemetry", "core"},
    "store": {"models", "core", "transient_errors"},
    "insight": {"models", "core"},
    "access": {"models", "core"},
    "engine": {
        "telemetry",
        "store",
        "insight",
        "access",
        "models",
        "core",
        "notifications",
        "scripts",
        "blob_storage",
        "transient_errors",
    },
    "api.conductor": BELOW_FACES | {"blob_storage"},
    "api.taskcluster": BELOW_FACES,
    "api.agents": BELOW_FACES | {"api.conductor"},
    "api": BELOW_FACES,
    "admin": BELOW_FACES,
    "workers": BELOW_FACES | {"scripts"},
    "importers": {"api.conductor", "api.taskcluster", "scripts", *BELOW_FACES},
    "background": {"workers", "celery", *BELOW_FACES},
    "management.backup": {"engine", "access", "models", "core", "blob_storage"},
    "management": {
        "management.backup",
        "background",
        "celery",
        "workers",
        "admin",
        "api",
        "api.taskcluster",
        "scripts",
        "demo",
        "remote",
        "importers",
        *BELOW_FACES,
    },
    "urls": {"api", "api.agents", "api.conductor", "api.taskcluster", "admin", *BELOW_FACES},
    "celery": set(),
}
"""Not in the table: settings, migrations, apps and the entry points, which put everything together."""
FREE = {
    "settings",
    "migrations",
    "apps",
    "asgi",
    "wsgi",
    "gunicorn_internals",
    "gunicorn_worker",
    "parked_requests",
    "repeated_headers",
    "request_framing",
    "__init__",
}
NO_LEAVES = {"core", *LEAVES}
OUTSIDERS_OF_CORE = {"core/expressions/patterns.py": {"re2", "regex"}}


@cache
def modules() -> list[tuple[Path, ast.Module]]:
    """Return every module of the application, parsed once for all tests."""
    return [(path, ast.parse(path.read_text())) for path in sorted(APP.rglob("*.py"))]


def imports(path: Path, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the full name of every module that a file imports, with the line number."""
    package = path.relative_to(APP.parent).parts[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            # `from . import clock` imports the module of that name.
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def room_of(module: str) -> str | None:
    """Return the package of a module: the longest matching name in the table; None for external modules."""
    parts = module.split(".")
    if parts[0] != "conductor_app" or len(parts) < 2:
        return None
    two = ".".join(parts[1:3])
    return two if two in ROOMS else parts[1]


def own_room(path: Path) -> str:
    parts = path.relative_to(APP).with_suffix("").parts
    return room_of(".".join(("conductor_app", *parts))) or ""


def said(path: Path, line: int, validation_error: str) -> str:
    return f"{path.relative_to(APP.parent)}:{line} {validation_error}"


def test_every_room_is_in_the_table():
    rooms = {path.name if path.is_dir() else path.stem for path in APP.iterdir() if not path.name.startswith("__")}

    assert rooms - FREE <= {room.split(".")[0] for room in ROOMS}


def test_imports_point_downward_only():
    broken = []
    for path, tree in modules():
        own = own_room(path)
        if own in FREE:
            continue
        allowed = ROOMS[own] | {own, own.split(".")[0]} | (set() if own in NO_LEAVES else LEAVES)
        allowed |= {room for room in ROOMS if own == "api" and path.name == "urls.py" and room.startswith("api")}
        for line, module in imports(path, tree):
            room = room_of(module)
            if room is not None and room not in allowed:
                broken.append(said(path, line, f"{own} may not import {room}"))

    assert broken == []


def test_the_core_imports_the_standard_library_and_itself():
    broken = []
    for path, tree in modules():
        if own_room(path) != "core":
            continue
        known = sys.stdlib_module_names | {"conductor_app"} | OUTSIDERS_OF_CORE.get(str(path.relative_to(APP)), set())
        broken += [
            said(path, line, f"the core imports {m}") for line, m in imports(path, tree) if m.split(".")[0] not in known
        ]

    assert broken == []


def test_only_the_engine_imports_the_store():
    broken = [
        said(path, line, "the store is the engine's own")
        for path, tree in modules()
        for line, module in imports(path, tree)
        if room_of(module) == "store" and own_room(path) not in ("engine", "store")
    ]

    assert broken == []


MADE_BY_STEP_TYPES = {"for_each": {"for_each_item"}, "dynamic_branches": {"sub_workflow"}}
"""Modules of step types that make steps of another type."""


def test_no_step_imports_another_step():
    steps = APP / "core" / "step_types"
    kinds = {path.stem for path in steps.glob("*.py") if _defines_kind(path)}
    broken = [
        said(path, line, f"{path.stem} imports the step type {module.split('.')[3]}")
        for path in steps.glob("*.py")
        if path.name != "__init__.py"
        for line, module in imports(path, ast.parse(path.read_text()))
        if module.startswith("conductor_app.core.step_types.")
        and module.split(".")[3] in kinds - MADE_BY_STEP_TYPES.get(path.stem, set())
    ]

    assert len(kinds) > 10
    assert broken == []


def _defines_kind(path: Path) -> bool:
    classes = (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef))
    assigned = (
        target for node in classes for each in node.body if isinstance(each, ast.Assign) for target in each.targets
    )
    return any(isinstance(target, ast.Name) and target.id == "type" for target in assigned)


@pytest.mark.parametrize(
    ("own", "other"), [("core", "conf"), ("store", "insight"), ("admin", "api.conductor"), ("admin", "store")]
)
def test_the_table_forbids_the_intended_imports(own, other):
    assert other not in ROOMS[own]


LOCAL_IMPORTS = {
    "apps.py": "models and signal handlers can be imported only when the app is ready",
    "wsgi.py": "the settings module is named first",
    "processes/gunicorn_config.py": "a worker process imports them, not the arbiter",
    "processes/jobs.py": "Celery's beat imports the jobs, and not what they run",
    "processes/job_trigger.py": "web processes import the trigger, and not the jobs",
    "management/commands/demo.py": "the packages of the demo are optional",
    "system_tasks/registry.py": "the workers of AI tasks are optional",
    "management/commands/demo_agent.py": "the packages of the demo are optional",
    "ai/workers/tasks.py": "the client of MCP servers is loaded with the first task",
    "ai/workers/calls.py": "the client of a provider is loaded with the first task",
    "access/sign_in/openid.py": "Authlib is loaded with the first sign-in through a provider",
    "processes/command_line.py": "the processes of a server do not need the HTTP client of the remote commands",
    "db/statements.py": "psycopg is loaded with PostgreSQL only",
    "agents/api.py": "the package of the protocol is optional, and is loaded with the first message",
    "web/api/view.py": "drf-spectacular takes 5 MB and is loaded with the OpenAPI document",
}
"""Modules that import application modules inside functions, with the reason."""


def _local_imports(path: Path, tree: ast.AST) -> Iterator[int]:
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    for function in functions:
        for line, module in imports(path, function):
            if module.startswith("conductor_app"):
                yield line


def test_modules_are_imported_inside_functions_only_for_a_listed_reason():
    found = {str(path.relative_to(APP)) for path, tree in modules() if any(_local_imports(path, tree))}

    assert found == set(LOCAL_IMPORTS)


@cache
def _graph() -> dict[str, set[str]]:
    """Return the modules that each module imports, at the top level or inside functions."""
    known = {module_name(path) for path, _ in modules()}
    graph = {}
    for path, tree in modules():
        # `from .change import change` imports the module `change`, or one of that name in a package `change`.
        named = {name for _, name in imports(path, tree)}
        used = {name if name in known else name.rpartition(".")[0] for name in named}
        graph[module_name(path)] = used & known - {module_name(path)}
    return graph


def module_name(path: Path) -> str:
    parts = path.relative_to(APP.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen, to_visit = set(), [*graph[start]]
    while to_visit:
        module = to_visit.pop()
        if module not in seen:
            seen.add(module)
            to_visit += graph[module]
    return seen


def test_no_module_imports_itself_indirectly():
    graph = _graph()

    assert len(graph) > 500
    assert sorted(module for module in graph if module in _reachable(graph, module)) == []


COMMANDS = {
    "bulk", "runs.run_commands", "runs.change", "runs.retry_rerun_restart", "runs.skip_and_jump", "runs.inbox",
    "tasks", "events.event_intake", "events.event_actions", "queues.queue_commands", "schedules", "standalone",
    "message_handlers", "sweeps",
}  # fmt: skip
"""Modules and packages of the engine with commands. Decision, data loading and delivery do not import them."""


@pytest.mark.parametrize(
    "name", ["runs.decision", "runs.data_loading", "delivery", "sweep_items", "definitions.resolved_definitions"]
)
def test_decision_and_delivery_import_no_command(name):
    prefix = "conductor_app.engine."
    reached = {module.removeprefix(prefix) for module in _reachable(_graph(), prefix + name) if prefix in module}

    assert {module for module in reached if {module, module.split(".")[0]} & COMMANDS} == set()


def test_every_listed_command_exists():
    engine = APP / "engine"

    assert [
        name
        for name in COMMANDS
        for path in [engine / name.replace(".", "/")]
        if not path.is_dir() and not path.with_suffix(".py").exists()
    ] == []


def test_commands_reach_the_store_through_decision_only_for_writing_runs():
    graph = _graph()
    writers = {module for module, used in graph.items() if "conductor_app.runs.store.writing" in used}

    assert {module for module in writers if ".engine." in module} == {"conductor_app.runs.commands.decision"}


STORE_TABLES = {
    "Run", "Task", "Attempt", "HistoryEntry", "TaskLog", "Message", "InboxMessage", "StandaloneTask", "Dependency",
    "PulseMessage", "StoredPayload", "PayloadReference", "CachedResult", "WebhookWait", "WebhookPaths",
}  # fmt: skip
"""The tables of executions. Others (definitions, schedules, access, …) are written by the command that owns them."""
WRITES = {
    "create", "bulk_create", "update", "bulk_update", "delete", "get_or_create", "update_or_create", "save",
}  # fmt: skip


def test_only_the_store_writes_its_tables():
    broken = []
    for path, tree in modules():
        # A restore writes all tables, at any state of the migrations.
        if own_room(path) in ("store", "migrations", "management.backup") or path.parent.name == "migrations":
            continue
        aliases = _names_of_store_tables(path, tree)
        broken += [
            said(path, node.lineno, ast.unparse(node)[:80])
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in WRITES
            and ast.unparse(node.func.value).split(".objects")[0] in aliases
        ]
        broken += [
            said(path, node.lineno, node.value[:80])
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            # SQL that changes rows stands in the store alone.
            if re.search(r"\b(INSERT INTO|UPDATE|DELETE FROM) conductor_", node.value)
        ]

    assert broken == []


def _names_of_store_tables(path, tree):
    """Return the names under which a module imports models of the store's tables."""
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").split(".")[-1] in ("models", "runs", "outbox", "groups")
        for alias in node.names
        if alias.name in STORE_TABLES
    }
