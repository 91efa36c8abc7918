"""Trials of integrations and prompts that a page makes outside of runs."""

from collections.abc import Callable
from typing import TypeVar

from ...settings import conf
from ...system_tasks.network_guard import Deadline
from ...utils.randomness import random_hex
from ..commands.calls import estimate_call, fail_call, save_reply
from ..commands.integrations import ModelSettings
from ..commands.prompts import PromptTrial, TrialFailed, begin_trial
from .calls import estimate_chat, store_outcome
from .messages import CallFailed, InputRejected, read_text, without_keys
from .providers import complete, list_models

TRIAL_SECONDS = 60.0
"""The maximum duration of such a call, for which a person waits."""
ReplyT = TypeVar("ReplyT")
SHOWN = 10
STORING_SECONDS = 10.0
"""The time for which a person waits until the outcome of a trial is stored."""


def test_connection(settings: ModelSettings) -> str:
    """Return a sentence about the models that the provider offers.

    Raises:
        TrialFailed: when the provider cannot be reached or refuses the key.
    """
    if settings.category != "AI_MODEL":
        raise TrialFailed(f"Integrations of the category {settings.category} cannot be tested.")
    names = try_call(settings, lambda: list_models(settings))
    if not names:
        return "The provider accepts the key and lists no models."
    more = f", and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    count = "1 model" if len(names) == 1 else f"{len(names)} models"
    return f"The provider offers {count}: {', '.join(names[:SHOWN])}{more}."


def test_prompt(trial: PromptTrial) -> str:
    """Call the model and return its answer. Sets the tokens of the trial.

    Raises:
        Conflict: when a budget has no room for the call.
        TrialFailed: when there is no reply.
    """
    inputs = {
        "promptVariables": dict(trial.prompt_variables),
        "temperature": trial.temperature,
        "topP": trial.top_p,
        "stopWords": list(trial.stop_words),
    }
    try:
        request = read_text(inputs, trial.prompt)
    except InputRejected as error:
        raise TrialFailed(f"The trial is invalid: {error}.") from None
    tokens = estimate_chat(request)
    call = begin_trial(trial, estimate_call(trial.settings, tokens.prompt, tokens.completion))
    try:
        reply = try_call(trial.settings, lambda: complete(trial.settings, request, random_hex()))
    except Exception as error:
        reason = str(error) if isinstance(error, TrialFailed) else type(error).__name__
        store_outcome(lambda: fail_call(call, reason), STORING_SECONDS)
        raise
    store_outcome(lambda: save_reply(call, None, reply.usage), STORING_SECONDS)
    trial.prompt_tokens, trial.completion_tokens = reply.prompt_tokens, reply.completion_tokens
    return reply.texts[0] if reply.texts else ""


def try_call(settings: ModelSettings, send: Callable[[], ReplyT]) -> ReplyT:
    """Return the reply to a call, which takes at most TRIAL_SECONDS.

    Raises:
        TrialFailed: when there is no reply. Its message contains no secrets.
    """
    seconds = min(TRIAL_SECONDS, conf.ai_task_seconds)
    with Deadline(seconds) as deadline:
        try:
            return send()
        except (CallFailed, InputRejected) as error:
            reason = f"{settings.integration} did not reply within {seconds:g} s" if deadline.has_passed else str(error)
            raise TrialFailed(f"The model could not be called: {without_keys(reason, settings)}.") from None
