"""The one place that draws by chance what tells two ids of the same millisecond apart."""

import secrets

# Tests put a source of their own here, so that what is in order once is in order always.
_source = secrets.token_hex


def random_hex() -> str:
    """Sixteen hexadecimal digits that nobody has drawn before."""
    return _source(8)
