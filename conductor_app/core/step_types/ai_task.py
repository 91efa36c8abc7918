"""Common base of AI steps, whose tasks call a model or an MCP server."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ..ai_names import named_uses
from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect
from ..step_structure import Document
from .base import resolve_inputs
from .built_in import BuiltIn


class AiTask(BuiltIn):
    """Executed by a built-in worker of the extra `ai`, in threads of its own."""

    icon = "ai"
    is_isolated = False
    needed_inputs: ClassVar[tuple[str, ...]] = ()
    """Inputs of which each is required."""
    policy_defaults = {"retryCount": 3, "retryDelaySeconds": 2, "retryLogic": "LINEAR_BACKOFF"}

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        written = set(named_uses(self.type, step.inputs))
        for use in named_uses(self.type, resolve_inputs(step, ctx, key, ctx.run, now)):
            ctx.require_use(use.target_type, use.name, is_authored=step.is_authored and use in written)
        yield from super().enter(step, key, ctx, now)

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
