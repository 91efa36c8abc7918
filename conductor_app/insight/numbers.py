"""Formats for numbers, with the separators of the active language.

Django's own formats stay those of machines, because a number in a template may be the geometry of a drawing.
"""

from django.utils.translation import pgettext


def format_count(count: int) -> str:
    """Return a count with separated thousands."""
    return f"{count:,}".replace(",", pgettext("between thousands", ","))


def format_decimal(number: float, decimals: int = 1) -> str:
    """Return a number with a fixed number of decimals, and with separated thousands."""
    whole, _point, rest = f"{number:,.{decimals}f}".partition(".")
    whole = whole.replace(",", pgettext("between thousands", ","))
    return f"{whole}{pgettext('between the whole and the tenths of a number', '.')}{rest}"
