"""The trial of a prompt: one call of a model with given variables."""

from conductor_app.engine.ai.trials import PromptTrial, TrialFailed
from conductor_app.randomness import random_hex
from conductor_app.workers.ai import providers
from conductor_app.workers.ai.chat_request import InputRejected, read_text
from conductor_app.workers.ai.trial_calls import try_call


def test_prompt(trial: PromptTrial) -> str:
    """Call the model and return its answer. Sets the tokens of the trial.

    Raises:
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
    reply = try_call(trial.settings, lambda: providers.complete(trial.settings, request, random_hex()))
    trial.prompt_tokens, trial.completion_tokens = reply.prompt_tokens, reply.completion_tokens
    return reply.texts[0] if reply.texts else ""
