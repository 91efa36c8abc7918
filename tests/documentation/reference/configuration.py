"""Environment variables and settings: names, values and defaults from the settings modules, meanings from the page."""

import ast
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from conductor_app import conf
from conductor_app.settings import environment

from .tables import code, read_rows, table

FOLDER = Path(environment.__file__).parent
MODULES = ("base", "sign_in", "embedded", "cluster", "gunicorn")
PROFILES = {"embedded": "one machine", "cluster": "cluster"}
"""Modules whose defaults hold for one profile only."""
UNITS = {"SECONDS": "seconds", "MINUTES": "minutes", "HOURS": "hours", "DAYS": "days", "MS": "ms"}
UNITS |= {"KB": "KiB", "MB": "MiB", "GB": "GiB", "TIMEOUT": "seconds", "DELAY": "seconds"}
KINDS = {
    "text": "text",
    "require_value": "text, required",
    "boolean": "on, off",
    "choice": "one of",
    "address": "address",
    "origin": "address without path",
    "path_prefix": "path",
    "networks": "list of networks",
    "host_names": "list of host names",
    "secret_list": "list of keys",
    "signing_key": "text",
    "groups": "list of groups",
    "servers": "list of host:port",
    "connections": "JSON object",
    "roles_by_group": "JSON object",
    "taskcluster_client": "text",
}
LISTS = {
    "CSRF_TRUSTED_ORIGINS": "list of origins",
    "DATABASE_URL": "address, required",
}
LISTS |= {"REDIS_URL": "address, required", "ALLOWED_HOSTS": "list of host names", "DATABASE_REPLICA_URL": "address"}
LISTS |= {"OTEL_EXPORTER_OTLP_ENDPOINT": "address", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "address"}
LISTS |= {"SECRET_KEY": f"text, at least {environment.SIGNING_KEY_LENGTH} characters"}
"""Values of variables whose reader says less than the code around it."""
DEFAULTS = {
    "VAR_DIR": "`var` in a checkout, the user's folder for states if installed",
    "SECRET_KEY": "one machine: created in `VAR_DIR`; cluster: required",
    "ALLOWED_HOSTS": "`localhost,127.0.0.1,[::1]` on loopback, otherwise required",
    "CONDUCTOR_API_ACCESS": "`open` on loopback, otherwise `token`",
    "HTTP_TASK_ALLOWED_NETWORKS": "loopback if the server listens there only, otherwise none",
    "PAYLOAD_STORAGE": "one machine: `payloads` in `VAR_DIR`; cluster: none",
    "PUBLIC_URL": "one machine on loopback: `http://127.0.0.1:PORT`, otherwise none",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "`OTEL_EXPORTER_OTLP_ENDPOINT`",
    "DATABASE_URL": "–",
    "REDIS_URL": "–",
}
"""Defaults that depend on something besides the profile."""
READ_ELSEWHERE = {
    "DJANGO_SETTINGS_MODULE": (
        "module",
        "`conductor_app.settings.cluster` with `DATABASE_URL`, otherwise `….embedded`",
    ),
    "DJANGO_SUPERUSER_USERNAME": ("text", "`admin`"),
    "DJANGO_SUPERUSER_PASSWORD": ("text", "random"),
    "DJANGO_SUPERUSER_EMAIL": ("text", "none"),
    "PROMETHEUS_MULTIPROC_DIR": ("folder", "a temporary folder for each start"),
    "CONDUCTOR_SECRET_<NAME>": ("text", "none"),
    "CONDUCTOR_ENV_<NAME>": ("text", "none"),
}
"""Variables that no settings module reads."""

CONSTANTS = {"environment": SimpleNamespace(WEB_THREADS=environment.WEB_THREADS), "COLORS": conf.COLORS}
"""What expressions of defaults may refer to. They read no variable, so the page does not depend on the environment."""


class Variable(NamedTuple):
    name: str
    reader: str
    default: str
    values: str
    module: str


def refresh_variables(present: str) -> str:
    """Return the tables by subject, with current values and defaults. Variables without a row follow at the end."""
    variables, seen = documented_variables(), set()
    lines = []
    for line in present.splitlines():
        cells = read_rows(line)
        if not cells or not cells[0][0].startswith("`"):
            lines.append(line)
            continue
        name, meaning = cells[0][0].strip("`"), cells[0][-1]
        if name in variables:
            seen.add(name)
            lines.append(f"| {code(name)} | {' | '.join(variables[name])} | {meaning} |")
    new = [(code(name), *facts, "") for name, facts in variables.items() if name not in seen]
    rest = ["", "### New", "", table(("variable", "values", "default", "meaning"), new)] if new else []
    return "\n".join([*lines, *rest])


def documented_variables() -> dict[str, tuple[str, str]]:
    """Return the values and the default of each environment variable."""
    by_name: dict[str, list[Variable]] = {}
    for variable in read_variables():
        by_name.setdefault(variable.name, []).append(variable)
    documented = {name: (_values(found[0]), _default(name, found)) for name, found in by_name.items()}
    return documented | READ_ELSEWHERE


def refresh_settings(present: str) -> str:
    """Return a table of all fields of `conf.Defaults`. The meanings of those with a variable are with the variable."""
    meanings = {row[0].strip("`"): row[-1] for row in read_rows(present)}
    variables = variables_of_settings()
    rows = []
    for field in conf.Defaults.__annotations__:
        name, variable = conf.django_name(field), variables.get(conf.django_name(field), "")
        meaning = "" if variable else meanings.get(name, "")
        rows.append((code(name), variable, _format(getattr(conf.Defaults, field)), meaning))
    return table(("setting", "variable", "default", "meaning, where there is no variable"), rows)


def read_variables() -> Iterator[Variable]:
    """Yield the variables that the settings modules read."""
    for module in MODULES:
        tree = ast.parse((FOLDER / f"{module}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and (reader := _reader(node)) and reader != "require_together":
                yield from _variables_of(node, reader, module)


def _variables_of(call: ast.Call, reader: str, module: str) -> Iterator[Variable]:
    names = [each.value for each in call.args[: 2 if reader == "taskcluster_client" else 1] if _is_name(each)]
    for name in names:
        arguments = {keyword.arg: _evaluate(keyword.value) for keyword in call.keywords}
        given = [_evaluate(each) for each in call.args[1:]]
        default = "–" if reader == "require_value" else _default_of(reader, given)
        yield Variable(name, reader, default, _bounds(reader, given, arguments), module)


def _default_of(reader: str, given: list[Any]) -> str:
    if reader in ("text", "number", "boolean", "networks"):
        return _format(given[0] if given else None)
    return _format(given[-1]) if reader == "choice" else "none"


def _bounds(reader: str, given: list[Any], arguments: dict[str | None, Any]) -> str:
    if reader == "choice":
        return " " + ", ".join(map(code, given[0] or ()))
    if reader in ("address", "origin"):
        return " " + ", ".join(code(f"{scheme}://") for scheme in given)
    if reader == "secret_list":
        return f" of at least {arguments['least']} characters" if arguments["least"] > 1 else ""
    if reader == "number":
        least, most = arguments.get("least", 0), arguments.get("most")
        return f"from {least} to {most}" if most else f"from {least}"
    return ""


def _values(variable: Variable) -> str:
    if variable.name in LISTS:
        return LISTS[variable.name]
    if variable.reader == "number":
        return f"{UNITS.get(variable.name.rpartition('_')[2], 'number')} {variable.values}"
    return KINDS[variable.reader] + variable.values


def _default(name: str, found: list[Variable]) -> str:
    if name in DEFAULTS:
        return DEFAULTS[name]
    defaults = {variable.default for variable in found}
    if len(defaults) == 1:
        return defaults.pop()
    return "; ".join(f"{PROFILES.get(each.module, each.module)}: {each.default}" for each in found)


def variables_of_settings() -> dict[str, str]:
    """Return the variables that set each Django setting of this project, as a cell."""
    variables: dict[str, dict[str, None]] = {}
    for module in MODULES:
        for node in ast.walk(ast.parse((FOLDER / f"{module}.py").read_text())):
            if isinstance(node, ast.Assign):
                names = [each.id for each in ast.walk(ast.Tuple(node.targets)) if isinstance(each, ast.Name)]
                read = [each for call in ast.walk(node.value) for each in _names_read(call)]
                if len(read) == len(names) > 1:
                    pairs = list(zip(names, read, strict=True))
                else:
                    pairs = [(name, variable) for name in names for variable in read]
                for name, variable in pairs:
                    variables.setdefault(name, {})[code(variable)] = None
    return {name: ", ".join(read) for name, read in variables.items()}


def _names_read(node: ast.AST) -> list[str]:
    if not isinstance(node, ast.Call) or not (reader := _reader(node)):
        return []
    return [each.value for each in node.args[: 2 if reader == "taskcluster_client" else 1] if _is_name(each)]


def _reader(call: ast.Call) -> str:
    """Return the reader of `settings.environment` that is called, or ""."""
    function = call.func
    if (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "environment"
    ):
        name = function.attr
        return name if name in KINDS or name in ("number", "require_together") else ""
    return ""


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isupper()


def _evaluate(node: ast.expr) -> Any:
    """Return the value of an expression of constants, or None."""
    try:
        return eval(compile(ast.Expression(node), "settings", "eval"), dict(CONSTANTS))
    except (NameError, AttributeError, TypeError):
        return None


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, tuple | list):
        value = ",".join(map(str, value))
    return code(value) if value else "none"
