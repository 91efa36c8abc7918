"""LLM_GENERATE_EMBEDDINGS: turns a text into a vector."""

from .ai_task import ModelCallStep


class LlmGenerateEmbeddings(ModelCallStep):
    """Calls an embedding model. Executed by a built-in worker."""

    type = "LLM_GENERATE_EMBEDDINGS"
    output_members = {"result": None}
