"""Workers that a process of their own can import, as the SDK's TaskHandler makes it do."""

import os


def cut(size: int) -> dict:
    """A worker that says in which process it ran."""
    return {"pid": os.getpid(), "pieces": size * 2}


async def sew(size: int) -> dict:
    """The same as a coroutine."""
    return {"pid": os.getpid(), "seams": size * 3}


def nothing() -> dict:
    """Work that is done at once."""
    return {}
