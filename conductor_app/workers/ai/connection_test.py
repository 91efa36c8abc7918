"""The test of an integration's connection: it lists the models, which costs nothing."""

from conductor_app.engine.ai.integration_settings import ModelSettings
from conductor_app.engine.ai.trials import TrialFailed
from conductor_app.workers.ai import providers
from conductor_app.workers.ai.trial_calls import try_call

SHOWN = 10


def test_connection(settings: ModelSettings) -> str:
    """Return a sentence about the models that the provider offers.

    Raises:
        TrialFailed: when the provider cannot be reached or refuses the key.
    """
    if settings.category != "AI_MODEL":
        raise TrialFailed(f"Integrations of the category {settings.category} cannot be tested.")
    names = try_call(settings, lambda: providers.list_models(settings))
    if not names:
        return "The provider accepts the key and lists no models."
    more = f", and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    count = "1 model" if len(names) == 1 else f"{len(names)} models"
    return f"The provider offers {count}: {', '.join(names[:SHOWN])}{more}."
