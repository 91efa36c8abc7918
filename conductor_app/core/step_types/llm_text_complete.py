"""LLM_TEXT_COMPLETE: completes a prompt."""

from .ai_task import MODEL_OUTPUT, ModelCallStep


class LlmTextComplete(ModelCallStep):
    """Calls a model with a prompt. Executed by a built-in worker."""

    type = "LLM_TEXT_COMPLETE"
    output_members = MODEL_OUTPUT
