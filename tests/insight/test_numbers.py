"""Numbers with the separators of the reader's language."""

import pytest
from django.utils import translation

from conductor_app.insight.ai.amounts import format_cost, format_tokens
from conductor_app.insight.numbers import format_count, format_decimal


@pytest.mark.parametrize(
    ("language", "count", "decimal"), [("en", "1,234,567", "-1,234.50"), ("de", "1.234.567", "-1.234,50")]
)
def test_numbers_have_the_separators_of_the_language(language, count, decimal):
    with translation.override(language):
        assert (format_count(1_234_567), format_decimal(-1234.5, 2)) == (count, decimal)


def test_large_counts_are_exact():
    assert format_count(10**17 + 1) == "100,000,000,000,000,001"


def test_costs_and_tokens_have_the_separators_of_the_language():
    with translation.override("de"):
        assert (format_cost(1_234_560_000), format_cost(4_200)) == ("$1.234,56", "$0,0042")
        assert format_tokens(214_200).startswith("214.200 ")
