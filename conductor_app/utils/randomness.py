"""The source of randomness: the only module that generates random digits, for ids of the same millisecond."""

import secrets

# Tests replace this to make the order of ids deterministic.
_source = secrets.token_hex


def random_hex() -> str:
    """Return sixteen random hexadecimal digits."""
    return _source(8)
