"""The modules of the application and what they import, parsed once for all tests."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

APP = Path(__file__).parents[2] / "conductor_app"


@cache
def modules() -> list[tuple[Path, ast.Module]]:
    """Return every module of the application."""
    return [(path, ast.parse(path.read_text())) for path in sorted(APP.rglob("*.py"))]


@cache
def walk(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes of a tree."""
    return list(ast.walk(tree))


def imports(path: Path, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the full name of every module or name that a file imports, with the line number."""
    package = path.relative_to(APP.parent).parts[:-1]
    for node in walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            # `from . import clock` imports the module of that name.
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def module_name(path: Path) -> str:
    """Return the name of a module below the application, such as `runs.commands.change`."""
    parts = path.relative_to(APP).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def relative(path: Path) -> str:
    """Return the path of a module below the application."""
    return str(path.relative_to(APP))


@cache
def import_graph() -> dict[str, set[str]]:
    """Return the modules that each module imports, at the top level or inside functions."""
    known = {module_name(path) for path, _ in modules()}
    graph = {}
    for path, tree in modules():
        named = {
            name.removeprefix("conductor_app.") for _, name in imports(path, tree) if name.startswith("conductor_app.")
        }
        # `from .change import change` imports the module `change`, or a name of that module.
        used = {name if name in known else name.rpartition(".")[0] for name in named}
        graph[module_name(path)] = used & known - {module_name(path), ""}
    return graph


def is_package(name: str) -> bool:
    """Return True if a module is a package."""
    return (APP / name.replace(".", "/")).is_dir()


def folder_of(name: str) -> str:
    """Return the folder of a module, such as `runs/commands`."""
    return (name if is_package(name) else name.rpartition(".")[0]).replace(".", "/")
