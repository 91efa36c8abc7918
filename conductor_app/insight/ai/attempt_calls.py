"""The calls of models that an attempt has made."""

from ...models import ModelCall


def calls_of_attempt(attempt_id: str) -> list[ModelCall]:
    """Return the calls of an attempt without their replies, oldest first."""
    return list(ModelCall.objects.filter(attempt_id=attempt_id).defer("reply").order_by("started_at", "id"))
