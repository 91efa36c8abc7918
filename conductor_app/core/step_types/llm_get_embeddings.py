"""LLM_GET_EMBEDDINGS: the deprecated name of LLM_SEARCH_EMBEDDINGS."""

from .ai_task import AiTask


class LlmGetEmbeddings(AiTask):
    """Compares vectors. Executed by a built-in worker."""

    type = "LLM_GET_EMBEDDINGS"
    icon = "database"
    needed_inputs = ("vectorDB", "index", "embeddings")
    output_members = {"result": None}
