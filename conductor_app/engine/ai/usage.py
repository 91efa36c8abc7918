"""Record what calls of models use. (Stand-in until the branch of usage and budgets is merged.)"""

from ...models import ModelCall


def record_usage(call: ModelCall) -> None:
    """Do nothing yet."""
