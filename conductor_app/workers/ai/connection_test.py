"""Check the connection of an integration."""

from ...core.integrations import MCP, VECTOR_DB
from ...engine.ai.integration_settings import ModelSettings
from ...engine.ai.trials import TrialFailed
from .prompt_test import call_provider


def test_connection(settings: ModelSettings) -> str:
    """Return a sentence about what the provider answered.

    Raises:
        TrialFailed: when the provider does not answer.
    """
    if settings.category in (MCP, VECTOR_DB):
        raise TrialFailed(f"Integrations of the category {settings.category} cannot be tested.")
    reply = call_provider(settings, "GET", "models")
    found = reply.get("data") if isinstance(reply, dict) else []
    return f"The provider answered and offers {len(found or ())} models."
