"""Query parameters as their types: booleans in any case, numbers within their bits, lists repeated or with commas."""

from urllib.parse import parse_qsl

from django.http import HttpRequest

from ...core.errors import Invalid

BOOLEAN_BY_WORD = {
    "true": True,
    "on": True,
    "yes": True,
    "1": True,
    "false": False,
    "off": False,
    "no": False,
    "0": False,
}


class QueryParameters:
    """Query parameters of a request. Unknown parameters are ignored."""

    def __init__(self, request: HttpRequest) -> None:
        pairs = parse_qsl(request.META.get("QUERY_STRING", ""), keep_blank_values=True, errors="replace")
        self.values: dict[str, list[str]] = {}
        for name, value in pairs:
            # PostgreSQL keeps no NUL in text.
            self.values.setdefault(name, []).append(value.replace("\0", ""))

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter as text."""
        return self.values.get(name, (default,))[0]

    def flag(self, name: str, default: bool) -> bool:
        """Return a boolean parameter. An empty value counts as absent.

        Raises:
            Invalid: when the value is neither true nor false.
        """
        text = self.text(name).strip().lower()
        if not text:
            return default
        if text not in BOOLEAN_BY_WORD:
            raise Invalid(f"Query parameter '{name}' must be true or false, not '{text[:100]}'.")
        return BOOLEAN_BY_WORD[text]

    def integer(self, name: str, default: int, bits: int = 32) -> int:
        """Return an integer parameter. An empty value counts as absent.

        Raises:
            Invalid: when the value is no integer or out of range.
        """
        text = self.text(name).strip()
        return parse_integer(text, f"Query parameter '{name}'", bits) if text else default

    def required(self, name: str) -> str:
        """Return the value of a required parameter.

        Raises:
            Invalid: when it is missing.
        """
        if name not in self.values:
            raise Invalid(f"Required query parameter '{name}' is missing.")
        return self.text(name)

    def texts(self, name: str) -> list[str]:
        """Return all values of a repeated parameter."""
        return [each for value in self.values.get(name, ()) for each in value.split(",") if each]


def parse_integer(text: str, label: str, bits: int = 32) -> int:
    """Return the integer that a text represents.

    Raises:
        Invalid: when the text is no integer or out of range.
    """
    digits = text.removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        raise Invalid(f"{label} must be an integer, not '{text[:100]}'.")
    if not -(2 ** (bits - 1)) <= int(text) < 2 ** (bits - 1):
        raise Invalid(f"{label} is out of range: '{text}'.")
    return int(text)
