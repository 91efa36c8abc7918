"""Numbers with separated thousands."""

from conductor_app.ai.queries.budgets import format_cost, format_tokens
from conductor_app.utils.formatting import format_count, format_decimal


def test_thousands_are_separated():
    assert (format_count(1_234_567), format_decimal(-1234.5, 2)) == ("1,234,567", "-1,234.50")


def test_large_counts_are_exact():
    assert format_count(10**17 + 1) == "100,000,000,000,000,001"


def test_thousands_of_costs_and_tokens_are_separated():
    assert (format_cost(1_234_560_000), format_cost(4_200)) == ("$1,234.56", "$0.0042")
    assert format_tokens(214_200).startswith("214,200 ")
