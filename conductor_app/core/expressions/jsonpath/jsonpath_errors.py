"""The one refusal of this package."""


class BadPath(ValueError):
    """The text is not a path, or exceeds a limit of paths."""
