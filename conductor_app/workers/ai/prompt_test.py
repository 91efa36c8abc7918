"""Send the prompt of a page or an API request to a model."""

from typing import Any

import requests

from ... import conf
from ...core.prompts import fill_in
from ...engine.ai.integration_settings import ModelSettings
from ...engine.ai.trials import PromptTrial, TrialFailed
from ..network_guard import AddressRefused, Guard, GuardedSession

TIMEOUT_SECONDS = 60


def test_prompt(trial: PromptTrial) -> str:
    """Return the answer of a model to a prompt.

    Raises:
        TrialFailed: when the model cannot be called.
    """
    text = fill_in(trial.prompt, trial.prompt_variables)
    body: dict[str, Any] = {"model": trial.settings.model, "messages": [{"role": "user", "content": text}]}
    given = {"temperature": trial.temperature, "top_p": trial.top_p, "stop": trial.stop_words or None}
    body |= {name: value for name, value in given.items() if value is not None}
    reply = call_provider(trial.settings, "POST", "chat/completions", body)
    try:
        usage = reply.get("usage") or {}
        trial.prompt_tokens, trial.completion_tokens = usage.get("prompt_tokens"), usage.get("completion_tokens")
        return str(reply["choices"][0]["message"]["content"] or "")
    except (AttributeError, KeyError, IndexError, TypeError):
        raise TrialFailed("The answer of the provider is not a chat completion.") from None


def call_provider(settings: ModelSettings, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """Return the JSON reply of a server that is compatible with OpenAI's API.

    Raises:
        TrialFailed: when it does not answer, or with an error.
    """
    address = f"{(settings.base_url or 'https://api.openai.com/v1').rstrip('/')}/{path}"
    headers = {"Authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
    guard = Guard(lambda: conf.http_task_allowed_networks)
    try:
        with GuardedSession(guard) as session:
            reply = session.request(method, address, json=body, headers=headers, timeout=TIMEOUT_SECONDS)
            if reply.status_code != 200:
                raise TrialFailed(f"The provider answered with the status {reply.status_code}.")
            return reply.json()
    except AddressRefused as refused:
        raise TrialFailed(
            f"The address {refused.address} is not public. Add its network to HTTP_TASK_ALLOWED_NETWORKS to permit it."
        ) from None
    except (requests.RequestException, ValueError) as error:
        raise TrialFailed(f"The provider did not answer: {type(error).__name__}.") from None
