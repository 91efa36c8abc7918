"""Write the settings of the server into the JSON schema of the chart: `python -m tests.deploy.chart_schema`."""

import json
from pathlib import Path
from typing import Any

from conductor_app.settings.table import BY_VARIABLE, Row
from tests.deploy.settings_in_code import ROOT, schema_of

CHART = ROOT / "deploy" / "helm" / "conductor-app"
SCHEMA = CHART / "values.schema.json"
SET_BY_THE_CHART = {"HOST", "PORT"}
SECRETS = {
    "SECRET_KEY", "SECRET_KEY_FALLBACKS", "SECRETS_KEYS", "DATABASE_URL", "REDIS_URL",
    "METRICS_TOKEN", "TASKCLUSTER_ROOT_ACCESS_TOKEN", "TASKCLUSTER_AMQP_URL", "EVENT_QUEUES_AMQP_URL",
    "EVENT_QUEUES_REDIS_URL", "EVENT_QUEUES_NATS_URL", "SQL_TASK_CONNECTIONS", "EMAIL_PASSWORD", "OIDC_CLIENT_SECRET",
    "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AZURE_STORAGE_CONNECTION_STRING",
}  # fmt: skip
"""Settings that are secrets, or addresses that may contain a password."""
FURTHER = {"settings": "^(OTEL|GOOGLE)_[A-Z_]+$", "secrets": "^(CONDUCTOR_SECRET_|AWS_|OTEL_)[A-Za-z0-9_]+$"}
"""Names that the server or its libraries read besides the settings."""


def settings_of_a_cluster() -> dict[str, Row]:
    """Return the settings that a value of the chart can set."""
    return {
        name: row for name, row in BY_VARIABLE.items() if name not in SET_BY_THE_CHART and row.profile != "embedded"
    }


def schemas_of_settings() -> dict[str, dict[str, Any]]:
    """Return the schemas of the values `settings` and `secrets`."""
    schemas = {name: schema_of(row) for name, row in settings_of_a_cluster().items()}
    properties = {
        "secrets": {name: schema for name, schema in schemas.items() if name in SECRETS},
        "settings": {name: schema for name, schema in schemas.items() if name not in SECRETS},
    }
    return {
        key: {
            "type": "object",
            "additionalProperties": False,
            "patternProperties": {FURTHER[key]: {"type": ["string", "null"]}},
            "properties": dict(sorted(found.items())),
        }
        for key, found in properties.items()
    }


def load_schema(path: Path = SCHEMA) -> dict[str, Any]:
    return json.loads(path.read_text())


if __name__ == "__main__":
    schema = load_schema()
    schema["properties"] |= schemas_of_settings()
    SCHEMA.write_text(json.dumps(schema, indent=2) + "\n")
