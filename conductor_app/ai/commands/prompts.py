"""Commands on prompts: their versions, the text that a call of a model uses, and trials.

A trial of a prompt is a call like those of runs: budgets apply to it, and the usage counts it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError

from ...access import audit
from ...access.grants import Tags, mirror_tags
from ...access.permissions import PROMPT
from ...core.ai import permits_model, placeholders, prompt_errors
from ...core.errors import Conflict, Invalid, NotFound, ValidationError, ValidationFailed
from ...db.database import transaction
from ...utils import clock
from ..models import ModelCall, Prompt
from ..queries.budgets import refusal_of
from ..store import BudgetedCall, RunLine
from .calls import Estimate, find_full_budget, insert_trial
from .integrations import ModelSettings, find_model

KIND = "prompt"
MAX_AT_ONCE = 500
MAX_VERSION = 2**31 - 1


class PromptRefused(Invalid):
    """The prompt may not be used with this model."""


def prompt_text(name: str, version: int | None, integration: str, model: str) -> str | None:
    """Return the template of a prompt, without a version that of its newest; None if no prompt has this name.

    Raises:
        PromptRefused: when the version is missing, or the prompt is bound to other models.
    """
    rows = Prompt.objects.filter(name=name)
    row = rows.order_by("-version").first() if not version else rows.filter(version=version).first()
    if row is None:
        if version and rows.exists():
            raise PromptRefused(f"The prompt {name} has no version {version}. Omit the version to use the newest.")
        return None
    if not permits_model(row.integrations, integration, model):
        bound = ", ".join(row.integrations[:10])
        raise PromptRefused(
            f"The prompt {name} may be used with {bound}, not with {integration}:{model}. Add the model to the prompt, "
            "or use another one."
        )
    return row.template


def save_prompt(
    name: str,
    template: str,
    by: str,
    *,
    description: str | None = None,
    models: Sequence[str] | None = None,
    version: int | None = None,
    new_version: bool = False,
) -> Prompt:
    """Create or overwrite a version of a prompt.

    Without a version, the newest is overwritten, or version 1 created. `new_version`: save the version after the
    newest. `description` and `models` (`integration:model`) keep their values if they are None.

    Raises:
        ValidationFailed: when the prompt is invalid.
        Conflict: when a concurrent request saves the same version.
    """
    errors = prompt_errors(name, template, models or ())
    if version is not None and not 0 < version <= MAX_VERSION:
        errors.append(ValidationError("version", "must be greater than or equal to 1", version))
    if errors:
        raise ValidationFailed(errors)
    with transaction.atomic():
        return _save_row(name, template, by, description, models, version, new_version)


def _save_row(
    name: str,
    template: str,
    by: str,
    description: str | None,
    models: Sequence[str] | None,
    version: int | None,
    new_version: bool,
) -> Prompt:
    now = clock.now()
    newest = Prompt.objects.select_for_update().filter(name=name).order_by("-version").first()
    number = newest.version if newest else 0
    chosen = number + 1 if new_version else version or number or 1
    row = newest if newest and chosen == number else Prompt.objects.filter(name=name, version=chosen).first()
    action = "overwrite" if row else "create"
    if row is None:
        row = Prompt(name=name, version=chosen, created_at=now, created_by=by[:255])
        if newest:
            row.description, row.integrations, row.tags = newest.description, newest.integrations, newest.tags
    row.template, row.variables = template, placeholders(template)
    row.updated_at, row.updated_by = now, by[:255]
    row.description = row.description if description is None else description
    row.integrations = row.integrations if models is None else list(dict.fromkeys(models))
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise Conflict(f"The prompt {name}, version {chosen}, already exists.") from None
    audit.record(KIND, f"{name}:{chosen}", action, by, at=now)
    return row


def save_prompts(documents: Sequence[Mapping[str, Any]], by: str, *, new_version: bool = False) -> None:
    """Save several prompts, or none if one of them is refused.

    Raises:
        ValidationFailed: when one of them is invalid.
        Conflict: when a concurrent request saves the same version.
    """
    if len(documents) > MAX_AT_ONCE:
        raise Invalid(f"At most {MAX_AT_ONCE} prompts can be saved at once (got {len(documents)}).")
    with transaction.atomic():
        for number, document in enumerate(documents):
            try:
                save_prompt(
                    document["name"],
                    document["template"],
                    by,
                    description=document.get("description"),
                    models=document.get("integrations"),
                    version=document.get("version") or None,
                    new_version=new_version,
                )
            except ValidationFailed as failed:
                raise ValidationFailed(
                    [
                        ValidationError(f"[{number}].{each.path}", each.message, each.value)
                        for each in failed.validation_errors
                    ]
                ) from None


def update_prompt(name: str, template: str, by: str, **fields: Any) -> Prompt:
    """Overwrite the newest version of a prompt, or another one, with the fields of `save_prompt`."""
    find_prompt(name, fields.get("version"))
    return save_prompt(name, template, by, **fields)


def delete_prompt(name: str, version: int | None, by: str) -> None:
    """Delete one version of a prompt, or all."""
    with transaction.atomic():
        rows = Prompt.objects.filter(name=name)
        chosen = list(rows if version is None else rows.filter(pk=find_prompt(name, version).pk))
        if not chosen:
            raise NotFound(f"There is no prompt named {name[:300]}.")
        for row in chosen:
            audit.record(KIND, f"{name}:{row.version}", "delete", by)
            row.delete()


def find_prompt(name: str, version: int | None = None) -> Prompt:
    """Return a version of a prompt, without a version the newest."""
    rows = Prompt.objects.filter(name=name)
    row = (rows.filter(version=version) if version else rows.order_by("-version")).first()
    if row is None:
        raise NotFound(f"There is no prompt named {name[:300]}" + (f" with the version {version}." if version else "."))
    return row


def bind_prompt(integration: str, model: str, name: str, by: str) -> None:
    """Add a model to those that the newest version of a prompt may be used with."""
    with transaction.atomic():
        row = find_prompt(name)
        bound = str(find_model(integration, model))
        if bound not in row.integrations:
            row.integrations = [*row.integrations, bound]
            row.save(update_fields=["integrations"])
            audit.record(KIND, f"{name}:{row.version}", "bind", by, facts={"model": bound})


def change_prompt_tags(name: str, change: Callable[[Tags], Tags], by: str) -> None:
    """Replace the tags of all versions of a prompt by the result of `change`."""
    with transaction.atomic():
        versions = list(Prompt.objects.select_for_update().filter(name=name).order_by("version"))
        if not versions:
            raise NotFound(f"There is no prompt named {name[:300]}.")
        tags = change(versions[-1].tags)
        Prompt.objects.filter(name=name).update(tags=tags)
        mirror_tags(PROMPT, name, tags)
        audit.record(KIND, name, "tag", by)


class TrialFailed(Invalid):
    """The model could not be called."""


@dataclass(slots=True)
class PromptTrial:
    """A prompt with values for its placeholders, and the model to send it to.

    `name`: the name of the prompt, if it has one. `by`: who tries it. `prompt_tokens`, `completion_tokens`: set by the
    worker, if the provider reports them.
    """

    prompt: str
    prompt_variables: Mapping[str, Any]
    settings: ModelSettings
    temperature: float | None = None
    top_p: float | None = None
    stop_words: list[str] = field(default_factory=list)
    name: str = ""
    by: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


def begin_trial(trial: PromptTrial, estimate: Estimate) -> ModelCall:
    """Return the call of a trial, which is committed with its reservation. It counts for the caller, and for no run.

    Raises:
        Conflict: when a budget has no room. A trial does not wait.
    """
    settings = trial.settings
    planned = BudgetedCall(RunLine(), "", trial.by, settings.integration, settings.model)
    with transaction.atomic():
        full = find_full_budget(planned, estimate, clock.now())
        if full is not None:
            raise Conflict(refusal_of(full.facts()))
        return insert_trial(planned, estimate, trial.name)
