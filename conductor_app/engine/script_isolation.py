"""How the kernel of this host isolates the helper processes that evaluate scripts."""

from collections.abc import Iterator
from functools import cache

from ..scripts.pool import ScriptsUnavailable, probe_isolation
from ..scripts.process import Isolation

ENGINES = {"javascript_jq": "JavaScript and jq", "monty": "Python"}
"""The languages of each engine."""


def script_isolation() -> dict[str, Isolation]:
    """Return the isolation by languages. The first call in a process starts a helper of each engine."""
    return {languages: _isolation(engine) for engine, languages in ENGINES.items()}


def isolation_warnings(is_root: bool) -> Iterator[str]:
    """Yield one sentence for each kind of isolation that the host should provide and does not.

    `is_root`: whether the server runs as root. Helpers of another user run as this user, which is expected.
    """
    for languages, isolation in script_isolation().items():
        if isolation.filter:
            yield f"Scripts in {languages} run without a filter of system calls: {isolation.filter}."
        if isolation.user and is_root:
            yield f"Scripts in {languages} run as root: {isolation.user}."


def _isolation(engine: str) -> Isolation:
    try:
        return _probe(engine)
    except ScriptsUnavailable as error:
        reason = str(error).rstrip(".")
        return Isolation(reason, reason)


@cache
def _probe(engine: str) -> Isolation:
    return probe_isolation(engine)
