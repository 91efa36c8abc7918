"""The one refusal of this package."""


class BadPath(ValueError):
    """The text is not a path, or reading it asks for more than a path may."""
