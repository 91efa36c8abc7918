"""Stands for the client of a payment provider."""


class Declined(Exception):
    """The provider has declined a card."""


def charge(card, amount, key):
    """Charge a card once for each key, and return the receipt."""
    if card == "expired":
        raise Declined("The card has expired.")
    return f"{key}: {amount}"


def refund(receipt):
    """Return the money of a receipt."""
