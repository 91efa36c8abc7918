"""LLM_STORE_EMBEDDINGS: stores an embedding."""

from .ai_task import AiTask


class LlmStoreEmbeddings(AiTask):
    """Stores a vector under an id. Executed by a built-in worker."""

    type = "LLM_STORE_EMBEDDINGS"
    icon = "database"
    needed_inputs = ("vectorDB", "index", "embeddings")
    output_members = {"result": None}
