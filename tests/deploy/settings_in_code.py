"""The environment variables that the server reads, as the deployment files must have them."""

from pathlib import Path
from typing import Any

from conductor_app.settings import environment
from conductor_app.settings.table import BY_VARIABLE, Row

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "conductor_app" / "settings"


def read_settings() -> set[str]:
    """Return the names of all environment variables of the settings."""
    return {*BY_VARIABLE, "VAR_DIR"}


def schema_of(row: Row) -> dict[str, Any]:
    """Return the JSON schema of a value. `null` is the default of the server."""
    is_number = row.reader in (environment.number, environment.web_connections)
    type = "integer" if is_number else "boolean" if row.reader is environment.boolean else "string"
    schema: dict[str, Any] = {"type": [type, "null"]}
    if is_number:
        schema["minimum"] = row.options.get("least", 0)
        if "most" in row.options:
            schema["maximum"] = row.options["most"]
    if row.reader is environment.choice:
        schema["enum"] = [*row.options["choices"], None]
    return schema
