"""LLM_INDEX_TEXT: stores a text with its embeddings."""

from .ai_task import AiTask


class LlmIndexText(AiTask):
    """Calls an embedding model for the chunks of a text. Executed by a built-in worker."""

    type = "LLM_INDEX_TEXT"
    icon = "database"
    needed_inputs = ("vectorDB", "index", "docId", "embeddingModelProvider", "embeddingModel")
    output_members = {"result": None}
