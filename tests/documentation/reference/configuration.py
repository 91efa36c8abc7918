"""Environment variables and settings: names, values and defaults from the table, meanings from the page."""

from typing import Any

from conductor_app.settings import environment
from conductor_app.settings import table as settings_table
from conductor_app.settings.table import Row

from .tables import code, read_rows, table

UNITS = {"SECONDS": "seconds", "MINUTES": "minutes", "HOURS": "hours", "DAYS": "days", "MS": "ms"}
UNITS |= {"KB": "KiB", "MB": "MiB", "GB": "GiB", "TIMEOUT": "seconds", "DELAY": "seconds"}
KINDS = {
    "text": "text",
    "boolean": "on, off",
    "choice": "one of",
    "address": "address",
    "origin": "address without path",
    "path_prefix": "path",
    "networks": "list of networks",
    "secret_list": "list of keys",
    "groups": "list of groups",
    "servers": "list of host:port",
    "clusters": "JSON object",
    "connections": "JSON object",
    "roles_by_group": "JSON object",
}
LISTS = {
    "CSRF_TRUSTED_ORIGINS": "list of origins",
    "DATABASE_URL": "address, required",
}
LISTS |= {"REDIS_URL": "address, required", "ALLOWED_HOSTS": "list of host names"}
LISTS |= {"OTEL_EXPORTER_OTLP_ENDPOINT": "address", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "address"}
LISTS |= {"TRACE_URL": "address", "ISSUE_URL": "address"}
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
    "HTTPS": "one machine: off; cluster: on",
    "DATABASE_URL": "–",
    "REDIS_URL": "–",
}
"""Defaults that depend on the profile or on another variable."""
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
    documented = {name: (_values(row), _default(row)) for name, row in settings_table.BY_VARIABLE.items()}
    return documented | READ_ELSEWHERE


def refresh_settings(present: str) -> str:
    """Return a table of the settings whose name does not follow from that of a variable."""
    meanings = {row[0].strip("`"): row[-1] for row in read_rows(present)}
    rows = []
    for setting, row in settings_table.BY_SETTING.items():
        name, variable = settings_table.django_name(setting), code(row.variable) if row.variable else ""
        if row.variable and name in (row.variable, f"CONDUCTOR_{row.variable}"):
            continue
        meaning = "" if variable else meanings.get(name, "")
        rows.append((code(name), variable, _format(settings_table.DEFAULTS[setting]), meaning))
    return table(("setting", "variable", "default", "meaning, where there is no variable"), rows)


def _values(row: Row) -> str:
    if row.variable in LISTS:
        return LISTS[row.variable]
    if row.reader in (environment.number, environment.web_connections):
        return f"{UNITS.get(row.variable.rpartition('_')[2], 'number')} {_bounds(row)}"
    return KINDS[row.reader.__name__] + _bounds(row)


def _bounds(row: Row) -> str:
    least, most = row.options.get("least", 0), row.options.get("most")
    if choices := row.options.get("choices"):
        return " " + ", ".join(map(code, choices))
    if schemes := row.options.get("schemes"):
        return " " + ", ".join(code(f"{scheme}://") for scheme in schemes)
    if row.reader is environment.secret_list:
        return f" of at least {least} characters" if least > 1 else ""
    if row.reader in (environment.number, environment.web_connections):
        return f"from {least} to {most}" if most else f"from {least}"
    return ""


def _default(row: Row) -> str:
    return DEFAULTS.get(row.variable) or _format(row.default)


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, tuple | list):
        value = ",".join(map(str, value))
    return code(value) if value else "none"
