"""Write the versions of indexes of vectors."""

from ..randomness import random_hex
from .statements import execute

REPLACE_VERSION = (
    'INSERT INTO conductor_vectorindexversion (database, "index", version) VALUES (%s, %s, %s) '
    'ON CONFLICT (database, "index") DO UPDATE SET version = excluded.version'
)


def replace_version(database: str, index: str) -> None:
    """Give an index another version. Call it at the end of the transaction that writes: it locks the row."""
    execute(REPLACE_VERSION, [database, index, random_hex()])
