"""Values that definitions mask: sealed with the keys of this server, and opened for decisions and workers."""

from typing import Any

from ..core import sealing
from . import vault

PURPOSE = "masked field"


def seal(text: str) -> str:
    """The text, sealed."""
    return vault.seal(PURPOSE, text)


def opened(value: Any) -> Any:
    """A copy of the value with what was sealed put in again; `***` where no key of this server opens it."""
    return sealing.opened(value, _open)


def _open(text: str) -> str:
    try:
        return vault.opened(PURPOSE, text)
    except vault.Unreadable as refused:
        raise ValueError from refused
