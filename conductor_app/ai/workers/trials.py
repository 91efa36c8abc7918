"""The trial of a prompt: one call of a model with given variables."""

from conductor_app.engine.ai.model_calls import fail_call, save_reply
from conductor_app.engine.ai.reservations import estimate_call
from conductor_app.engine.ai.trials import PromptTrial, TrialFailed, begin_trial
from conductor_app.randomness import random_hex
from conductor_app.workers.ai import providers
from conductor_app.workers.ai.call_outcomes import store_outcome
from conductor_app.workers.ai.chat_request import InputRejected, read_text
from conductor_app.workers.ai.token_estimates import estimate_chat
from conductor_app.workers.ai.trial_calls import try_call

STORING_SECONDS = 10.0
"""The time for which a person waits until the outcome of a trial is stored."""


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
        reply = try_call(trial.settings, lambda: providers.complete(trial.settings, request, random_hex()))
    except Exception as error:
        reason = str(error) if isinstance(error, TrialFailed) else type(error).__name__
        store_outcome(lambda: fail_call(call, reason), STORING_SECONDS)
        raise
    store_outcome(lambda: save_reply(call, None, reply.usage), STORING_SECONDS)
    trial.prompt_tokens, trial.completion_tokens = reply.prompt_tokens, reply.completion_tokens
    return reply.texts[0] if reply.texts else ""
