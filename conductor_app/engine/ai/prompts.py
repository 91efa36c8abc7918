"""Texts of prompts: a stand-in until the branch of integrations and prompts is merged."""

from ...core.errors import Invalid
from ...models import Prompt


class PromptRefused(Invalid):
    """The prompt may not be used with this model."""


def prompt_text(name: str, version: int | None, integration: str, model: str) -> str | None:
    """Return the template of a prompt, without a version that of its newest; None if no prompt has this name."""
    rows = Prompt.objects.filter(name=name)
    row = rows.order_by("-version").first() if not version else rows.filter(version=version).first()
    if row is not None and row.integrations and f"{integration}:{model}" not in row.integrations:
        raise PromptRefused(f"The prompt {name} may not be used with {integration}:{model}.")
    return row.template if row else None
