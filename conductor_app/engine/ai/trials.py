"""Trials on pages and through the API: a prompt with a model, and the connection of an integration.

The calls themselves belong to the built-in workers, which this layer must not import: the app registers them. A trial
of a prompt is a call like those of runs: budgets apply to it, and the usage counts it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, NamedTuple

from django.db import transaction

from ... import clock, process_state
from ...core.errors import Conflict, Invalid
from ...insight.ai.budget_holds import refusal_of
from ...models import IntegrationModel, ModelCall
from ...models.budgets import BudgetedCall, RunLine
from ...process_state import Wiring
from .. import audit
from .integration_settings import ModelSettings, model_settings
from .model_calls import insert_trial
from .reservations import Estimate, find_full_budget

MAX_PROMPT_LENGTH = 262_144


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


class TrialReply(NamedTuple):
    """The answer of a model, its tokens if the provider reports them, and the duration in milliseconds."""

    text: str
    prompt_tokens: int | None
    completion_tokens: int | None
    duration_ms: int


class Testers(NamedTuple):
    """The functions of the workers. They raise TrialFailed with a message that contains no secrets.

    `test_prompt` returns the answer; `test_connection` a sentence about what answered.
    """

    test_prompt: Callable[[PromptTrial], str]
    test_connection: Callable[[ModelSettings], str]


_load_testers: Wiring[Callable[[], Testers] | None] = process_state.wiring(None)


def register_testers(load: Callable[[], Testers]) -> None:
    """Register the function that returns the testers. It is called at each trial, so that it can import lazily."""
    _load_testers.value = load


def _testers() -> Testers:
    if _load_testers.value is None:
        raise TrialFailed("This process has no workers that call models.")
    return _load_testers.value()


def try_prompt(trial: PromptTrial, by: str) -> TrialReply:
    """Send a prompt to a model and return its answer. The caller checks the permission. The call may cost money.

    Raises:
        Invalid: when the prompt is empty or too long.
        Conflict: when a budget has no room for the call.
        TrialFailed: when the model cannot be called.
    """
    if not trial.prompt.strip():
        raise Invalid("`prompt` must not be empty.")
    if len(trial.prompt) > MAX_PROMPT_LENGTH:
        raise Invalid(f"`prompt` must have at most {MAX_PROMPT_LENGTH:,} characters.")
    settings = trial.settings
    audit.record("integration", settings.integration, "try prompt", by, facts={"model": settings.model})
    trial.by = by
    start = monotonic()
    text = _testers().test_prompt(trial)
    duration = round((monotonic() - start) * 1000)
    return TrialReply(text, trial.prompt_tokens, trial.completion_tokens, duration)


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


def check_connection(integration: str, by: str) -> str:
    """Call the provider of an integration and return what answered, as a sentence. The caller checks the permission.

    Raises:
        UnknownIntegration: when the integration is missing or disabled.
        TrialFailed: when the provider does not answer, or refuses the key.
    """
    settings = model_settings(integration, _first_model(integration))
    audit.record("integration", integration, "test", by)
    return _testers().test_connection(settings)


def _first_model(integration: str) -> str:
    rows = IntegrationModel.objects.filter(integration=integration, is_enabled=True).order_by("name")
    return rows.values_list("name", flat=True).first() or ""
