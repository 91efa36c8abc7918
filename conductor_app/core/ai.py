"""Integrations and prompts of AI tasks, and the scopes and periods of budgets.

The names of kinds and categories are those of Conductor's clients.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from .errors import ValidationError
from .masking import REDACTED
from .snapshot import NEVER

AI_MODEL, VECTOR_DB, MCP = "AI_MODEL", "VECTOR_DB", "MCP"
CATEGORIES = (AI_MODEL, VECTOR_DB, MCP, "API", "RELATIONAL_DB", "MESSAGE_BROKER", "GIT", "EMAIL", "EVENT_SOURCE")
CATEGORY_LABELS = {AI_MODEL: "AI models", VECTOR_DB: "Vector databases", MCP: "MCP servers"}
OWN_VECTOR_DATABASES = ("default", "postgres", "pgvectordb")
"""Names that `vectorDB` may have without an integration: the vector table of this server."""
FREQUENCIES = ("daily", "weekly", "monthly")
MAX_NAME_LENGTH = 255
MAX_SETTINGS_BYTES = 65_536
BASE_URL_NAMES = ("base_url", "baseUrl", "baseURL", "base-url", "endpoint", "api_base", "url")
OTHER_ADDRESS_NAMES = ("host", "port", "datasourceURL", "schemaRegistryUrl", "proxy", "urls")
API_KEY_NAMES = ("api_key", "apiKey", "apikey", "api-key")
PUBLIC_SETTINGS = frozenset(
    {re.sub(r"[^a-z]", "", name.lower()) for name in BASE_URL_NAMES}
    | {"apiversion", "authenticationtype", "authheadername", "batchsize", "batchwaittime", "channel", "cluster"}
    | {"connectionpoolsize", "connectiontype", "consumer", "consumertype", "database", "datasourceurl", "deployment"}
    | {"deploymentname", "description", "dimensions", "distancemetric", "embeddingmodel", "environment", "frequency"}
    | {"groupid", "host", "index", "indexingmethod", "indexname", "invertedlistcount", "jdbcdriver", "location"}
    | {"maxretries", "maxtokens", "mechanism", "model", "namespace", "organization", "organizationid", "port"}
    | {"project", "projectid", "projectname", "protocol", "provider", "proxy", "publisher", "pubsubmethod"}
    | {"queuemanager", "region", "schemaregistryurl", "secretkeyname", "stream", "subscription", "temperature"}
    | {"timeout", "timeoutseconds", "tls", "tokenlimit", "topic", "topp", "transport", "type", "urls", "user"}
    | {"username", "version", "visibilitytimeout"}
)
"""The settings that are not secret, as lower-case letters. All others are stored encrypted."""
URL_WITH_PASSWORD = re.compile(
    r"^[\w+.:-]+://[^/@\s]*:[^/@\s]*@|[?&;](?:password|pwd|token|sig|api_?key)=", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class IntegrationField:
    """One setting of a kind: its name in the configuration, its label, and the values that it may have; empty: any."""

    name: str
    label: str
    is_secret: bool = False
    is_optional: bool = True
    default: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IntegrationKind:
    """A type of provider. `base_url`: the address of its API that is compatible with OpenAI's, if it has one."""

    name: str
    label: str
    category: str
    base_url: str = ""
    fields: tuple[IntegrationField, ...] = ()


API_KEY = IntegrationField("api_key", "API key", is_secret=True, is_optional=False)
OPTIONAL_API_KEY = IntegrationField("api_key", "API key", is_secret=True)
BASE_URL = IntegrationField("base_url", "Base URL")
REQUIRED_BASE_URL = IntegrationField("base_url", "Base URL", is_optional=False)


def _model_kind(name: str, label: str, base_url: str = "", *fields: IntegrationField) -> IntegrationKind:
    return IntegrationKind(name, label, AI_MODEL, base_url, fields or (API_KEY, BASE_URL))


INTEGRATION_KINDS: dict[str, IntegrationKind] = {
    kind.name: kind
    for kind in (
        _model_kind("openai", "OpenAI or compatible"),
        _model_kind("anthropic", "Anthropic"),
        _model_kind(
            "azure_openai",
            "Azure OpenAI",
            "",
            API_KEY,
            IntegrationField("endpoint", "Endpoint", is_optional=False),
            IntegrationField("deployment_name", "Deployment"),
            IntegrationField("api_version", "API version"),
        ),
        _model_kind("ollama", "Ollama", "http://localhost:11434/v1", OPTIONAL_API_KEY, BASE_URL),
        _model_kind("litellm", "LiteLLM", "", OPTIONAL_API_KEY, REQUIRED_BASE_URL),
        _model_kind("mistral", "Mistral", "https://api.mistral.ai/v1"),
        _model_kind("Grok", "Grok", "https://api.x.ai/v1"),
        _model_kind("perplexity", "Perplexity", "https://api.perplexity.ai"),
        _model_kind("huggingface", "Hugging Face", "https://router.huggingface.co/v1"),
        IntegrationKind(
            "pgvectordb",
            "Vector table of this server",
            VECTOR_DB,
            "",
            (
                IntegrationField("dimensions", "Dimensions"),
                IntegrationField(
                    "distanceMetric", "Distance metric", default="l2", choices=("l2", "cosine", "inner_product")
                ),
            ),
        ),
        IntegrationKind(
            "mcp",
            "MCP server",
            MCP,
            "",
            (
                IntegrationField("url", "URL", is_optional=False),
                IntegrationField("authorization", "Authorization header", is_secret=True),
            ),
        ),
    )
}
"""The kinds that the pages offer and `GET /api/integrations/def` lists. An integration may have another kind."""


def is_secret_setting(name: str, value: Any = None) -> bool:
    """Return True if a setting is stored encrypted: all are but switches and those that are listed as public.

    A public setting is secret if an address in it has a password, or a setting inside it is secret.
    """
    if value is None or isinstance(value, bool):
        return False
    return re.sub(r"[^a-z]", "", name.lower()) not in PUBLIC_SETTINGS or _has_secret_value(value)


def _has_secret_value(value: Any) -> bool:
    if isinstance(value, str):
        return bool(URL_WITH_PASSWORD.search(value))
    if isinstance(value, Mapping):
        return any(is_secret_setting(str(inner), each) for inner, each in value.items())
    return isinstance(value, list) and any(map(_has_secret_value, value))


def split_settings(
    given: Mapping[str, Any], stored: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], list[ValidationError]]:
    """Return the settings with `***` for the secret ones, the secret ones, and the errors.

    A value of `***` keeps the secret that is stored under the name.
    """
    shown: dict[str, Any] = {}
    secrets: dict[str, Any] = {}
    errors = []
    for name, value in given.items():
        if value == REDACTED:
            if name in stored:
                secrets[name], shown[name] = stored[name], REDACTED
            else:
                errors.append(ValidationError(name, f"is {REDACTED}, but no value is stored. Send the value."))
        elif value not in (None, "") and is_secret_setting(name, value):
            secrets[name], shown[name] = value, REDACTED
        elif value is not None:
            shown[name] = value
    return shown, secrets, errors


def displayed_configuration(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a stored configuration for readers.

    Earlier versions stored settings in clear text that are secret now. They are `***` until they are encrypted.
    """
    return {
        name: REDACTED if value != "" and is_secret_setting(name, value) else value
        for name, value in configuration.items()
    }


def without_secrets(configuration: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in displayed_configuration(configuration).items() if value != REDACTED}


def provider_address(kind: str, configuration: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of an integration and its addresses, which determine where its secrets are sent."""
    others = [str(configuration.get(name) or "") for name in OTHER_ADDRESS_NAMES]
    return kind, " ".join([first_setting(configuration, BASE_URL_NAMES).rstrip("/"), *others]).strip()


def first_setting(settings: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the first of these settings that has a text, without spaces around it; empty if there is none."""
    found = (settings.get(name) for name in names)
    return next((value.strip() for value in found if isinstance(value, str) and value.strip()), "")


def name_error(name: str, what: str) -> str:
    """Return why a name of an integration or a model is invalid, or an empty text. `what`: such as "integration"."""
    if not name.strip() or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        return f"The name of the {what} must have 1 to {MAX_NAME_LENGTH} printable characters."
    if what == "model" and "*" in name:
        return "The name of a model must not contain '*': in a grant, it ends a prefix of names."
    if what == "integration" and ":" in name:
        return "The name of an integration must not contain a colon: it separates integration and model."
    return ""


PLACEHOLDER = re.compile(r"\$\{([^{}]+)\}")
MAX_TEMPLATE_BYTES = 262_144
MAX_MODELS = 200


def placeholders(template: str) -> list[str]:
    """Return the names of the placeholders `${name}` in the order of their first use."""
    return list(dict.fromkeys(name.strip() for name in PLACEHOLDER.findall(template)))


def prompt_errors(name: str, template: str, models: Iterable[str]) -> list[ValidationError]:
    errors = []
    if not name.strip() or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        errors.append(ValidationError("name", f"must have 1 to {MAX_NAME_LENGTH} printable characters", name[:300]))
    if not template.strip():
        errors.append(ValidationError("template", "must not be empty"))
    elif len(template.encode("utf-8", "surrogatepass")) > MAX_TEMPLATE_BYTES:
        errors.append(ValidationError("template", f"must have at most {MAX_TEMPLATE_BYTES:,} bytes"))
    models = list(models)
    if len(models) > MAX_MODELS or any(not 0 < len(model) <= 2 * MAX_NAME_LENGTH for model in models):
        errors.append(ValidationError("integrations", f"must be at most {MAX_MODELS} names such as openai:gpt-4o"))
    return errors


def permits_model(bound: Iterable[str], integration: str, model: str) -> bool:
    """Return True if a prompt with these bindings may be used with a model.

    A binding is `integration:model`, or one of the two names. Without bindings any model may be used.
    """
    bound = list(bound)
    return not bound or not {f"{integration}:{model}", integration, model}.isdisjoint(bound)


RUN, DAY, WEEK, MONTH = "RUN", "DAY", "WEEK", "MONTH"
PERIODS = (RUN, DAY, WEEK, MONTH)

ALL, DEFINITION, CALLER, INTEGRATION, MODEL = "ALL", "DEFINITION", "CALLER", "INTEGRATION", "MODEL"
SCOPES = (ALL, RUN, DEFINITION, CALLER, INTEGRATION, MODEL)


def period_bounds(period: str, now: int) -> tuple[int, int]:
    """Return the begin and the end of the period that contains `now`, in epoch milliseconds.

    The period of a run has no end: from 0 to NEVER.
    """
    if period == RUN:
        return 0, NEVER
    midnight = datetime.fromtimestamp(now / 1000, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if period == DAY:
        begin, end = midnight, midnight + timedelta(days=1)
    elif period == WEEK:
        begin = midnight - timedelta(days=midnight.weekday())
        end = begin + timedelta(days=7)
    else:
        begin = midnight.replace(day=1)
        end = (begin + timedelta(days=32)).replace(day=1)
    return _milliseconds(begin), _milliseconds(end)


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp()) * 1000
