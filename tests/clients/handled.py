"""Workers for the SDK's TaskHandler, which imports them in processes of their own."""

import os


def cut(size: int) -> dict:
    """A worker that says in which process it ran."""
    return {"pid": os.getpid(), "pieces": size * 2}


async def sew(size: int) -> dict:
    """The same as a coroutine."""
    return {"pid": os.getpid(), "seams": size * 3}
