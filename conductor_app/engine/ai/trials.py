"""Trials of prompts and connections: a stand-in until the branch of integrations and prompts is merged."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import Invalid
from .integration_settings import ModelSettings


class TrialFailed(Invalid):
    """The model could not be called."""


@dataclass(slots=True)
class PromptTrial:
    """A prompt with values for its placeholders, and the model to send it to.

    `prompt_tokens`, `completion_tokens`: set by the worker, if the provider reports them.
    """

    prompt: str
    prompt_variables: Mapping[str, Any]
    settings: ModelSettings
    temperature: float | None = None
    top_p: float | None = None
    stop_words: list[str] = field(default_factory=list)
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
