"""Tokens that clients report for calls that this server did not make."""

from django.db import IntegrityError, transaction
from django.db.models import F

from ... import clock
from ...core.errors import Invalid
from ...models import ModelUsage
from .integrations import find_model

HOUR_MS = 3_600_000
MAX_TOKENS = 2**53


def add_tokens(integration: str, model: str, tokens: int, by: str) -> None:
    """Add tokens to the usage of a model in this hour.

    Raises:
        NotFound: when there is no such model.
        Invalid: when the number is negative or too large.
    """
    if not 0 <= tokens <= MAX_TOKENS:
        raise Invalid(f"The number of tokens must be between 0 and {MAX_TOKENS}.")
    find_model(integration, model)
    hour = clock.now() // HOUR_MS * HOUR_MS
    key = {"hour": hour, "integration": integration, "model": model, "definition": "", "caller": by[:320]}
    with transaction.atomic():
        if ModelUsage.objects.filter(**key).update(prompt_tokens=F("prompt_tokens") + tokens):
            return
        try:
            with transaction.atomic():
                ModelUsage.objects.create(**key, prompt_tokens=tokens)
        except IntegrityError:
            # A concurrent request created the row.
            ModelUsage.objects.filter(**key).update(prompt_tokens=F("prompt_tokens") + tokens)
