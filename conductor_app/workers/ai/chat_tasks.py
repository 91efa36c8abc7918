"""LLM_TEXT_COMPLETE and LLM_CHAT_COMPLETE tasks."""

from collections.abc import Callable
from typing import Any

from conductor_app.core.step_types.llm_chat_complete import LlmChatComplete
from conductor_app.core.step_types.llm_text_complete import LlmTextComplete
from conductor_app.engine.ai.integration_settings import ModelSettings
from conductor_app.engine.ai.model_calls import Usage
from conductor_app.models.claimed_attempts import ClaimedAttempt
from conductor_app.workers.ai.chat_reply import AnswerRefused, ChatReply, output_of
from conductor_app.workers.ai.chat_request import ChatRequest, read_chat, read_text
from conductor_app.workers.ai.paid_calls import ModelWorker, named_prompt, paid_call
from conductor_app.workers.ai.providers import complete
from conductor_app.workers.ai.streamed_log import StreamedLog
from conductor_app.workers.ai.templating import as_text
from conductor_app.workers.ai.token_estimates import estimate_chat
from conductor_app.workers.worker import WorkResult


class CompletionWorker(ModelWorker):
    """A worker whose tasks get an answer to messages."""

    prompt_inputs: tuple[str, ...]
    """The inputs that have the prompt or its name, the first of which that is set is used."""
    read_request: Callable[[dict[str, Any], str], ChatRequest]

    def call(self, attempt: ClaimedAttempt, inputs: dict[str, Any], settings: ModelSettings) -> WorkResult:
        """Send the messages and return the answer as the output of the task."""
        name = next((name for name in self.prompt_inputs if inputs.get(name) not in (None, "")), "")
        given = inputs.get(name)
        if isinstance(given, str) and attempt.input.get(name) == given:
            text, prompt = named_prompt(inputs, given, settings)
        else:
            # No permission was checked for a prompt that a secret or another value than a text would name.
            text, prompt = "" if given is None else as_text(given), ""
        request = type(self).read_request(inputs, text)
        progress = StreamedLog(attempt)

        def send(key: str) -> tuple[dict[str, Any], Usage]:
            try:
                reply = complete(settings, request, key, progress.add)
            finally:
                progress.write()
            return reply.as_document(), reply.usage

        content = [attempt.input, text if prompt else ""]
        reply = paid_call(attempt, settings, content, send, estimate_chat(request), prompt)
        try:
            return WorkResult("COMPLETED", output_of(ChatReply.from_document(reply), request))
        except AnswerRefused as refused:
            return WorkResult("FAILED", {}, f"Task execution failed: {refused}")


class ChatComplete(CompletionWorker):
    """Continues a conversation with a model."""

    type = LlmChatComplete.type
    prompt_inputs = ("instructions", "instructionsTemplate")
    read_request = staticmethod(read_chat)


class TextComplete(CompletionWorker):
    """Completes a prompt."""

    type = LlmTextComplete.type
    prompt_inputs = ("promptName", "prompt")
    read_request = staticmethod(read_text)
