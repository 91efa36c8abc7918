"""LLM_SEARCH_INDEX: searches for the documents nearest to a text."""

from .ai_task import AiTask


class LlmSearchIndex(AiTask):
    """Calls an embedding model for the query. Executed by a built-in worker."""

    type = "LLM_SEARCH_INDEX"
    icon = "database"
    needed_inputs = ("vectorDB", "index", "query", "embeddingModelProvider", "embeddingModel")
    output_members = {"result": None}
