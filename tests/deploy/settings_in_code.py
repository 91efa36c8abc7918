"""The environment variables that the settings read, with their types and bounds, from the source of the settings."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "conductor_app" / "settings"
MODULES = ("base", "cluster", "embedded", "gunicorn", "sign_in")
CONSTANTS = {"WEB_THREADS": 64, "tuple(COLORS)": ("gray", "blue", "green", "amber", "red", "violet")}
"""Expressions in calls of readers that are no literals, with their values."""
READERS_OF_ONE_SETTING = {
    "number",
    "text",
    "boolean",
    "choice",
    "require_value",
    "secret_list",
    "address",
    "origin",
    "servers",
    "networks",
    "connections",
    "folder",
    "path_prefix",
    "groups",
    "roles_by_group",
}


@dataclass(frozen=True)
class Setting:
    """An environment variable, the function of `settings.environment` that reads it, and the literals of the call."""

    name: str
    reader: str
    modules: frozenset[str]
    default: Any = None
    least: int | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of a value. `null` is the default of the server."""
        types = {"number": "integer", "boolean": "boolean"}
        schema: dict[str, Any] = {"type": [types.get(self.reader, "string"), "null"]}
        if self.reader == "number":
            schema["minimum"] = self.least or 0
            if self.most is not None:
                schema["maximum"] = self.most
        if self.reader == "choice":
            schema["enum"] = [*self.choices, None]
        return schema


def read_settings() -> dict[str, Setting]:
    """Return the settings by name. A setting that several profiles read belongs to all of their modules."""
    found: dict[str, Setting] = {}
    for module in MODULES:
        for call in _reader_calls(ast.parse((FOLDER / f"{module}.py").read_text())):
            for setting in _settings_of(call, module):
                known = found.get(setting.name)
                # `require_value` and an empty text say less than a reader with bounds.
                best = setting if known is None or known.reader in ("text", "require_value") else known
                modules = setting.modules | (known.modules if known else frozenset())
                found[setting.name] = Setting(**{**best.__dict__, "modules": modules})
    return found


def _reader_calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "environment"
        ):
            yield node


def _settings_of(call: ast.Call, module: str) -> Iterator[Setting]:
    assert isinstance(call.func, ast.Attribute)
    reader = call.func.attr
    arguments = [_value(argument) for argument in call.args]
    options = {keyword.arg: _value(keyword.value) for keyword in call.keywords}
    if reader == "web_connections":
        yield Setting("WEB_CONNECTIONS", "number", frozenset({module}), 4096, 512)
    elif reader == "taskcluster_client":
        for name in arguments:
            yield Setting(name, reader, frozenset({module}))
    elif reader in READERS_OF_ONE_SETTING:
        choices = arguments[1] if reader == "choice" else ()
        default = arguments[2] if reader == "choice" else arguments[1] if len(arguments) > 1 else None
        yield Setting(
            arguments[0], reader, frozenset({module}), default, options.get("least"), options.get("most"), choices or ()
        )


def _value(node: ast.AST) -> Any:
    """Return the value of a literal or a known constant, or None for another expression."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _value(node.left) * _value(node.right)
    try:
        return ast.literal_eval(node)
    except ValueError:
        return CONSTANTS.get(ast.unparse(node).removeprefix("environment."))
