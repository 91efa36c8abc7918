"""The source of randomness: the only module that draws random digits, which distinguish ids of the same millisecond."""

import secrets

# Tests replace this with a source that makes order deterministic.
_source = secrets.token_hex


def random_hex() -> str:
    """Return sixteen random hexadecimal digits."""
    return _source(8)
