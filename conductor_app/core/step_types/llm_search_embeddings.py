"""LLM_SEARCH_EMBEDDINGS: searches for the documents nearest to an embedding."""

from .ai_task import AiTask


class LlmSearchEmbeddings(AiTask):
    """Compares vectors. Executed by a built-in worker."""

    type = "LLM_SEARCH_EMBEDDINGS"
    icon = "database"
    needed_inputs = ("vectorDB", "index", "embeddings")
    output_members = {"result": None}
