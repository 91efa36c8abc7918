"""Texts of amounts: a stand-in until the branch of usage and budgets is merged."""

from ... import conf

MILLION = 1_000_000


def format_cost(cost: int) -> str:
    """Format an amount in millionths of the currency."""
    return f"{cost / MILLION:.4f} {conf.ai_currency}"
