"""Common base of AI steps, whose tasks call a model or an MCP server."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ..ai_names import INTEGRATION_INPUTS, MODEL_INPUTS, NamedUse, named_uses
from ..step_structure import Document
from .built_in import BuiltIn


class AiTask(BuiltIn):
    """Executed by a built-in worker of the extra `ai`, in threads of its own."""

    icon = "ai"
    is_isolated = False
    naming_inputs = (*INTEGRATION_INPUTS, *MODEL_INPUTS.values())
    needed_inputs: ClassVar[tuple[str, ...]] = ()
    """Inputs of which each is required."""
    policy_defaults = {"retryCount": 3, "retryDelaySeconds": 2, "retryLogic": "LINEAR_BACKOFF"}

    def named_objects(self, inputs: Any) -> Iterator[NamedUse]:
        return named_uses(self.type, inputs)

    def check(self, step: Document, template: Document) -> Iterator[str]:
        yield from super().check(step, template)
        for name in self.needed_inputs:
            if not has_input(step, template, name):
                yield f"inputParameters.{name}"


class ModelCallStep(AiTask):
    """Executed by a built-in worker, which calls a model. The reply is stored before the task is completed."""

    calls_models = True
    needed_inputs = ("llmProvider", "model")


MODEL_OUTPUT: Mapping[str, Any] = dict.fromkeys(
    (
        *("result", "finishReason", "promptTokens", "completionTokens", "tokenUsed", "toolCalls", "media"),
        *("responseId", "reasoning", "reasoningTokens"),
    )
)
"""The members of the output of text and chat tasks."""


def has_input(step: Document, template: Document, name: str) -> bool:
    """Return True if the step or the input template of its task definition has a value for this input."""
    return any(inputs.get(name) not in (None, "") for inputs in (step["inputParameters"], template))
