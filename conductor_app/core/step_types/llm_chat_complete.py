"""LLM_CHAT_COMPLETE: continues a conversation with a model."""

from collections.abc import Iterator
from typing import Any

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..step_structure import Document
from .ai_task import MODEL_OUTPUT, ModelCallStep
from .chat_history import history_of
from .field_checks import is_expression, unknown_word_message

ROLES = ("user", "assistant", "system", "tool_call", "tool")


class LlmChatComplete(ModelCallStep):
    """Calls a model with messages, among them the answers of earlier iterations and of the step's participants.

    Executed by a built-in worker.
    """

    type = "LLM_CHAT_COMPLETE"
    output_members = MODEL_OUTPUT
    extended_input = "messages"

    def check(self, step: Document, template: Document) -> Iterator[str]:
        yield from super().check(step, template)
        messages = step["inputParameters"].get("messages")
        for number, message in enumerate(messages if isinstance(messages, list) else ()):
            role = message.get("role") if isinstance(message, dict) else None
            if isinstance(role, str) and role not in ROLES and not is_expression(role):
                yield f"The role of messages[{number}] is wrong: {unknown_word_message(role, ROLES)}"

    def extend_inputs(self, step: Step, key: Key, inputs: dict[str, Any], ctx: DecisionContext) -> dict[str, Any]:
        """Return the inputs with the history of the conversation at the end of `messages`."""
        history = history_of(step, key, inputs, ctx)
        given = inputs.get("messages")
        if not history or not isinstance(given, list | None):
            return inputs
        question = inputs.get("userInput")
        first = given or ([{"role": "user", "message": question}] if question else [])
        return {**inputs, "messages": [*first, *history]}
