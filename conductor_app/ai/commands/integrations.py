"""Commands on integrations and their models, and the settings with which a worker calls a model.

Secret settings are stored encrypted; no reply, page or log has them.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError

from ...access import audit
from ...access.encryption import DecryptionFailed, decrypt, encrypt, is_current
from ...access.grants import Tags, mirror_tags
from ...access.models import Grant, Tag
from ...access.permissions import INTEGRATION, INTEGRATION_PROVIDER
from ...core import ai
from ...core.errors import Conflict, Invalid, NotFound, ValidationError, ValidationFailed
from ...core.masking import REDACTED
from ...db.database import transaction
from ...utils import clock
from ..models import Integration, IntegrationModel, Prompt
from ..queries.usage import environment_integrations

log = logging.getLogger(__name__)
KIND, MODEL_KIND = "integration", "integration_model"
MAX_MODELS = 1_000
MAX_INTEGER = 2**62


def save_integration(name: str, given: Mapping[str, Any], by: str) -> Integration:
    """Create or replace an integration.

    `given`: `type`, `category`, `description`, `enabled` and `configuration`. A setting that is `***` keeps its stored
    value; without `configuration`, all settings stay.

    Raises:
        Invalid: when the name is invalid.
    """
    if fault := ai.name_error(name, "integration"):
        raise Invalid(fault)
    with transaction.atomic():
        row = Integration.objects.select_for_update().filter(pk=name).first()
        is_new = row is None
        row = row or Integration(name=name, created_at=clock.now(), created_by=by[:255])
        _fill_integration(row, given)
        row.updated_at, row.updated_by = clock.now(), by[:255]
        _insert_or_update(row, is_new, f"An integration with the name {name} already exists.")
        _record(row, "create" if is_new else "overwrite", by)
    return row


def save_integrations(documents: Sequence[Mapping[str, Any]], by: str) -> None:
    """Create or replace several integrations, or none if one of them is refused. Each document has a `name`."""
    with transaction.atomic():
        for document in documents:
            save_integration(document.get("name", ""), document, by)


def _fill_integration(row: Integration, given: Mapping[str, Any]) -> None:
    kind = given.get("type") or row.kind
    known = ai.INTEGRATION_KINDS.get(kind)
    category = given.get("category") or row.category or (known.category if known else ai.AI_MODEL)
    errors = []
    if not kind or len(kind) > 64 or not kind.isprintable():
        errors.append(ValidationError("type", "must name the kind of the provider, such as openai", kind))
    if category not in ai.CATEGORIES:
        errors.append(ValidationError("category", f"must be one of {', '.join(ai.CATEGORIES)}", category))
    if (configuration := given.get("configuration")) is not None:
        stored = stored_secrets(row)
        shown, secrets, found = ai.split_settings(configuration, stored)
        errors += [ValidationError(f"configuration.{each.path}", each.message) for each in found]
        errors += _size_errors(configuration)
        kept = [key for key, value in configuration.items() if value == REDACTED]
        # An address with a password is a secret itself.
        address = ai.provider_address(kind, {**shown, **secrets})
        if kept and address != ai.provider_address(row.kind, {**row.configuration, **stored}):
            # Otherwise an editor could send a key that it cannot read to a server of its own.
            errors.append(ValidationError(f"configuration.{kept[0]}", "must be sent again: kind or address changed."))
        row.configuration, row.sealed = shown, _encrypt(row.name, secrets)
    elif kind != row.kind and stored_secrets(row):
        errors.append(ValidationError("configuration", "must be sent again: the type changed."))
    if errors:
        raise ValidationFailed(errors)
    row.kind, row.category = kind, category
    row.description = given["description"] if given.get("description") is not None else row.description
    row.is_enabled = given["enabled"] if given.get("enabled") is not None else row.is_enabled


def _size_errors(configuration: Mapping[str, Any]) -> list[ValidationError]:
    if len(json.dumps(configuration, default=str)) > ai.MAX_SETTINGS_BYTES:
        return [ValidationError("configuration", f"must have at most {ai.MAX_SETTINGS_BYTES:,} bytes as JSON")]
    return []


def _insert_or_update(row: Integration | IntegrationModel, is_new: bool, taken: str) -> None:
    try:
        with transaction.atomic():
            row.save(force_insert=is_new)
    except IntegrityError:
        # A concurrent request created the same row first.
        raise Conflict(taken) from None


def save_test(name: str, text: str, by: str, *, is_success: bool, took_ms: int) -> dict[str, Any]:
    """Store the result of a test of an integration's connection, and return it."""
    result = {"at": clock.now(), "by": by[:255], "isSuccess": is_success, "text": text, "tookMs": took_ms}
    Integration.objects.filter(pk=name).update(last_test=result)
    return result


def delete_integration(name: str, by: str) -> list[str]:
    """Delete an integration with its models and the bindings of prompts to them. Steps that name it fail.

    Returns the names of the prompts that have no other binding: these keep it, and so can be used with no model.
    """
    with transaction.atomic():
        row = find_integration(name)
        for model in IntegrationModel.objects.filter(integration=name):
            _forget_access(model)
            model.delete()
        _record(row, "delete", by)
        row.delete()
        return [] if name in environment_integrations() else unbind_integration(name, by)


def find_integration(name: str, for_update: bool = False) -> Integration:
    """Return an integration. `for_update` locks it until the end of the transaction."""
    rows = Integration.objects.select_for_update() if for_update else Integration.objects
    row = rows.filter(pk=name).first()
    if row is None:
        raise NotFound(f"There is no integration named {name[:300]}.")
    return row


def stored_secrets(row: Integration) -> dict[str, Any]:
    """Return the secret settings of an integration, decrypted. Those that no key decrypts have to be entered again."""
    plain = _unencrypted_secrets(row)
    try:
        return plain | read_secrets(row)
    except DecryptionFailed:
        return plain


def _unencrypted_secrets(row: Integration) -> dict[str, Any]:
    """Return the secret settings that an earlier version, for which they were public, stored in clear text."""
    shown = ai.displayed_configuration(row.configuration)
    return {name: value for name, value in row.configuration.items() if value != shown[name]}


def read_secrets(row: Integration) -> dict[str, Any]:
    """Return the secret settings of an integration, decrypted."""
    return json.loads(decrypt(_seal_name(row.name), row.sealed)) if row.sealed else {}


def _encrypt(name: str, secrets: Mapping[str, Any]) -> str:
    return encrypt(_seal_name(name), json.dumps(secrets, default=str)) if secrets else ""


def _seal_name(name: str) -> str:
    return f"integration {name}"


def reencrypt_integrations() -> int:
    """Encrypt the secrets of every integration with the newest key. Returns how many had another one, or none."""
    count = 0
    for row in Integration.objects.order_by("name"):
        plain = _unencrypted_secrets(row)
        if plain or (row.sealed and not is_current(row.sealed)):
            again = _encrypt(row.name, plain | read_secrets(row))
            shown = ai.displayed_configuration(row.configuration)
            unchanged = Integration.objects.filter(pk=row.pk, sealed=row.sealed, updated_at=row.updated_at)
            count += unchanged.update(sealed=again, configuration=shown)
    return count


def save_model(integration: str, name: str, given: Mapping[str, Any], by: str, reason: str = "") -> IntegrationModel:
    """Create or replace a model of an integration, or an index of a vector database.

    `given`: `description`, `enabled`, `configuration`, `maxTokens` per `frequency`, and `inputPrice` and `outputPrice`
    in millionths of the currency per 1,000 tokens. Fields that are not given keep their values.

    Raises:
        Invalid: when the name is invalid.
        Conflict: when the integration has too many models.
    """
    if fault := ai.name_error(name, "model"):
        raise Invalid(fault)
    with transaction.atomic():
        find_integration(integration)
        row = IntegrationModel.objects.select_for_update().filter(integration=integration, name=name).first()
        is_new = row is None
        if row is None:
            if IntegrationModel.objects.filter(integration=integration).count() >= MAX_MODELS:
                raise Conflict(f"The integration {integration} already has {MAX_MODELS:,} models. Delete one first.")
            row = IntegrationModel(integration=integration, name=name, created_at=clock.now(), created_by=by[:255])
        _fill_model(row, given)
        row.updated_at, row.updated_by = clock.now(), by[:255]
        _insert_or_update(row, is_new, f"The integration {integration} already has a model named {name}.")
        _record_model(row, "create" if is_new else "overwrite", by, reason)
    return row


def _fill_model(row: IntegrationModel, given: Mapping[str, Any]) -> None:
    errors = []
    if (configuration := given.get("configuration")) is not None:
        errors += _size_errors(configuration)
        errors += [
            ValidationError(f"configuration.{key}", "belongs to the integration. Save it in its configuration.")
            for key in configuration
            if key in ai.BASE_URL_NAMES
        ]
        row.configuration = _without_secrets(row, configuration)
    for name, column in (("maxTokens", "max_tokens"), ("inputPrice", "input_price"), ("outputPrice", "output_price")):
        if name in given:
            value = given[name]
            if value is not None and not 0 <= value < MAX_INTEGER:
                errors.append(ValidationError(name, "must not be negative", value))
            setattr(row, column, value)
    if given.get("frequency") is not None:
        row.frequency = given["frequency"].lower()
        if row.frequency and row.frequency not in ai.FREQUENCIES:
            errors.append(
                ValidationError("frequency", f"must be one of {', '.join(ai.FREQUENCIES)}", given["frequency"])
            )
    if row.max_tokens is not None and not row.frequency:
        row.frequency = "daily"
    if errors:
        raise ValidationFailed(errors)
    row.description = given["description"] if given.get("description") is not None else row.description
    row.is_enabled = given["enabled"] if given.get("enabled") is not None else row.is_enabled


def _without_secrets(row: IntegrationModel, configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration without keys: models use those of their integration, which are encrypted."""
    secret = [name for name, value in configuration.items() if ai.is_secret_setting(name, value)]
    if secret:
        log.warning("model_key_ignored", extra={"model": str(row), "settings": secret})
    return {name: value for name, value in configuration.items() if name not in secret}


def delete_model(integration: str, name: str, by: str, reason: str = "") -> list[str]:
    """Delete a model of an integration, and the bindings of prompts to it.

    Returns the names of the prompts that have no other binding: these keep it, and so can be used with no model.
    """
    with transaction.atomic():
        row = find_model(integration, name)
        _record_model(row, "delete", by, reason)
        _forget_access(row)
        row.delete()
        return _unbind(lambda bound: bound == str(row), str(row), by)


def find_model(integration: str, name: str, for_update: bool = False) -> IntegrationModel:
    """Return a model of an integration. `for_update` locks it until the end of the transaction."""
    rows = IntegrationModel.objects.select_for_update() if for_update else IntegrationModel.objects
    row = rows.filter(integration=integration, name=name).first()
    if row is None:
        raise NotFound(f"The integration {integration[:300]} has no model named {name[:300]}.")
    return row


def model_in_any_order(first: str, second: str) -> tuple[str, str]:
    """Return integration and model. The Python SDK swaps the two in some of its requests."""
    pairs = IntegrationModel.objects.filter(integration__in=(first, second), name__in=(first, second))
    found = set(pairs.values_list("integration", "name"))
    return (second, first) if (first, second) not in found and (second, first) in found else (first, second)


def change_integration_tags(name: str, change: Callable[[Tags], Tags], by: str) -> None:
    """Replace the tags of an integration by the result of `change`."""
    with transaction.atomic():
        row = find_integration(name, for_update=True)
        row.tags = change(row.tags)
        row.save(update_fields=["tags"])
        mirror_tags(INTEGRATION_PROVIDER, name, row.tags)
        _record(row, "tag", by)


def change_model_tags(integration: str, name: str, change: Callable[[Tags], Tags], by: str) -> None:
    """Replace the tags of a model by the result of `change`."""
    with transaction.atomic():
        row = find_model(integration, name, for_update=True)
        row.tags = change(row.tags)
        row.save(update_fields=["tags"])
        mirror_tags(INTEGRATION, str(row), row.tags)
        _record_model(row, "tag", by, "")


def _forget_access(row: IntegrationModel) -> None:
    """Delete the grants and tags of a model, so that a new model of the same name does not inherit them."""
    Grant.objects.filter(target_type=INTEGRATION, target_id=str(row), is_prefix=False).delete()
    Tag.objects.filter(object_type=INTEGRATION, object_name=str(row)).delete()


def unbind_integration(name: str, by: str) -> list[str]:
    """Remove the bindings to an integration and its models. Returns the prompts that keep theirs, see `_unbind`.

    The name alone stays as a binding if another integration has a model of this name.
    """
    is_model = IntegrationModel.objects.filter(name=name).exclude(integration=name).exists()
    return _unbind(lambda bound: bound.startswith(f"{name}:") or (bound == name and not is_model), name, by)


def _unbind(is_deleted: Callable[[str], bool], deleted: str, by: str) -> list[str]:
    """Remove bindings of all versions, except those of a version that would have none left.

    Such a version could be used with any model. Returns the names of the prompts with such versions.
    """
    kept = set()
    for row in Prompt.objects.only("name", "version", "integrations").select_for_update().order_by("name", "version"):
        left = [bound for bound in row.integrations if not is_deleted(bound)]
        if len(left) == len(row.integrations):
            continue
        if not left:
            kept.add(row.name)
            continue
        row.integrations = left
        row.save(update_fields=["integrations"])
        audit.record("prompt", f"{row.name}:{row.version}", "unbind", by, facts={"model": deleted})
    return sorted(kept)


def _record(row: Integration, action: str, by: str) -> None:
    audit.record(KIND, row.name, action, by, facts={"kind": row.kind, "category": row.category})


def _record_model(row: IntegrationModel, action: str, by: str, reason: str) -> None:
    facts = {"inputPrice": row.input_price, "outputPrice": row.output_price, "maxTokens": row.max_tokens}
    audit.record(MODEL_KIND, str(row), action, by, reason=reason, facts=facts)


class UnknownIntegration(Invalid):
    """There is no such integration or model, or it is disabled."""


@dataclass(frozen=True)
class ModelSettings:
    """The settings of a model. Its representation contains no secrets.

    `base_url`: empty for the provider's own. `configuration`: that of the integration and of the model, without
    secrets. `input_price`, `output_price`: millionths of the currency per 1,000 tokens, or None without a price.
    """

    integration: str
    kind: str
    category: str
    model: str
    api_key: str = field(repr=False)
    base_url: str
    configuration: Mapping[str, Any]
    secrets: Mapping[str, str] = field(repr=False)
    input_price: int | None = None
    output_price: int | None = None


def model_settings(integration: str, model: str) -> ModelSettings:
    """Return the settings for calls of a model.

    An integration without any models permits all models of its provider.

    Raises:
        UnknownIntegration: when the integration or the model is missing or disabled.
    """
    row = Integration.objects.filter(pk=integration).first()
    if row is None:
        return _environment_settings(integration, model)
    if not row.is_enabled:
        raise UnknownIntegration(f"The integration {integration} is disabled. Enable it on its page.")
    own = _enabled_model(integration, model)
    secrets = _decrypt_secrets(row)
    configuration = {**ai.without_secrets(row.configuration), **(own.configuration if own else {})}
    kind = ai.INTEGRATION_KINDS.get(row.kind)
    base_url = ai.first_setting({**configuration, **secrets}, ai.BASE_URL_NAMES)
    return ModelSettings(
        integration=integration,
        kind=row.kind,
        category=row.category,
        model=model,
        api_key=ai.first_setting(secrets, ai.API_KEY_NAMES),
        base_url=base_url or (kind.base_url if kind else ""),
        configuration=configuration,
        secrets=secrets,
        input_price=own.input_price if own else None,
        output_price=own.output_price if own else None,
    )


def _environment_settings(integration: str, model: str) -> ModelSettings:
    found = environment_integrations().get(integration)
    if found is None:
        raise UnknownIntegration(
            f"There is no integration named {integration[:300]!r}. Create it on the page AI → Integrations, or use the "
            "name of an existing one."
        )
    key, url = found
    if integration == "ollama" and not url.rstrip("/").endswith("/v1"):
        url = f"{url.rstrip('/')}/v1"
    secrets = {"api_key": key} if key else {}
    return ModelSettings(integration, integration, ai.AI_MODEL, model, key, url, {}, secrets)


def _enabled_model(integration: str, model: str) -> IntegrationModel | None:
    rows = list(IntegrationModel.objects.filter(integration=integration).order_by("name"))
    found = next((row for row in rows if row.name == model), None)
    if found is None and rows:
        offered = ", ".join(row.name for row in rows[:10])
        raise UnknownIntegration(
            f"The integration {integration} has no model named {model[:300]!r}. It has: {offered}. Add the model on "
            "the page of the integration."
        )
    if found is not None and not found.is_enabled:
        raise UnknownIntegration(
            f"The model {integration}:{model} is disabled. Enable it on the page of the integration."
        )
    return found


def _decrypt_secrets(row: Integration) -> dict[str, str]:
    try:
        secrets = _unencrypted_secrets(row) | read_secrets(row)
    except DecryptionFailed:
        raise UnknownIntegration(
            f"No key of this server decrypts the secrets of the integration {row.name}. Enter them again on its page."
        ) from None
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in secrets.items()}
