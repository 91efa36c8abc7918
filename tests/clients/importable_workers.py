"""Workers that a process of their own can import, as the SDK's TaskHandler makes it do."""

import os


def cut(size: int) -> dict:
    """Return the id of the process that runs this worker."""
    return {"pid": os.getpid(), "pieces": size * 2}


async def sew(size: int) -> dict:
    """Return the id of the process that runs this coroutine worker."""
    return {"pid": os.getpid(), "seams": size * 3}


def nothing() -> dict:
    """Return at once."""
    return {}
