"""The integrations and prompts that a step of an AI task names in its inputs."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeGuard

INTEGRATION_TARGET, MODEL_TARGET, PROMPT_TARGET = "INTEGRATION_PROVIDER", "INTEGRATION", "PROMPT"
"""The target types of permissions on integrations, their models (`integration:model`) and prompts."""

INTEGRATION_INPUTS = ("llmProvider", "embeddingModelProvider", "vectorDB")
MODEL_INPUTS = {"llmProvider": "model", "embeddingModelProvider": "embeddingModel"}
PROMPT_INPUTS = ("promptName", "prompt", "instructions", "instructionsTemplate")
"""The inputs that have the name of a prompt or its text: the text itself is used if there is no prompt of that name."""
MAX_PROMPT_NAME_LENGTH = 255
TYPE_PREFIXES = ("LLM_", "GENERATE_")
"""The prefixes of task types that call models or search vectors."""


class NamedUse(NamedTuple):
    """An integration, model or prompt that a step names. `input`: the input with the name."""

    target_type: str
    name: str
    input: str


def named_uses(task_type: Any, inputs: Any) -> Iterator[NamedUse]:
    """Yield the integrations, models and prompts that the inputs of a task name. Expressions are omitted.

    An integration whose model is an expression, or that has none, is yielded without its model.
    """
    if not isinstance(task_type, str) or not task_type.startswith(TYPE_PREFIXES) or not isinstance(inputs, Mapping):
        return
    for input in INTEGRATION_INPUTS:
        if is_name(name := inputs.get(input)):
            model = inputs.get(MODEL_INPUTS.get(input, ""))
            yield (
                NamedUse(MODEL_TARGET, f"{name}:{model}", input)
                if is_name(model)
                else NamedUse(INTEGRATION_TARGET, name, input)
            )
    for input in PROMPT_INPUTS:
        name = inputs.get(input)
        if is_name(name) and len(name) <= MAX_PROMPT_NAME_LENGTH and "\n" not in name:
            yield NamedUse(PROMPT_TARGET, name, input)


def is_name(value: Any) -> TypeGuard[str]:
    """Return True for a text that can be the name of an object: not empty, without an expression and without NUL."""
    return isinstance(value, str) and bool(value) and "${" not in value and "\0" not in value
