"""Call a function in a forked process, whose memory is freed when it ends."""

import gc
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Generic, TypeVar

Result = TypeVar("Result")
FORK = get_context("fork")
"""Forked processes share the memory of what their parent has loaded. The parent must have no threads."""


class ForkedCall(Generic[Result]):
    """The call of a function. It starts at once, in parallel to this process."""

    def __init__(self, function: Callable[[], Result]) -> None:
        self._receiver, sender = FORK.Pipe(duplex=False)
        self._process = FORK.Process(target=_send_result, args=(function, sender))
        self._process.start()
        sender.close()

    def result(self) -> Result:
        """Wait for the end of the call and return its result, or raise its exception.

        Raises:
            EOFError: when the process was killed.
        """
        result, error = self._receiver.recv()
        self._process.join()
        if error:
            raise error
        return result


def _send_result(function: Callable[[], object], sender: Connection) -> None:
    gc.enable()
    try:
        sender.send((function(), None))
    except Exception as error:
        sender.send((None, error))
