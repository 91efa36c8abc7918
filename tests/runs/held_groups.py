"""Groups of changes that share a transaction, made certain: the first one begins only when further changes wait."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import Any

from django.db import connection

from conductor_app.runs.commands.change import commit_group
from conductor_app.runs.commands.group_commit import GroupCommit, GroupedChange, GroupedCommand


class HeldGroups:
    """Groups whose first transaction begins only after `count` further changes wait."""

    def __init__(self, count: int) -> None:
        self.sizes: list[int] = []
        self.count, self._has_begun = count, Event()
        self.groups = GroupCommit(self._commit)
        self.commit: Callable[[Sequence[GroupedCommand]], None] = commit_group

    def _commit(self, members: Sequence[GroupedCommand]) -> None:
        if not self.sizes:
            self._has_begun.set()
            while len(self.groups._waiting) < self.count:
                Event().wait(0.001)
        self.sizes.append(len(members))
        self.commit(members)

    def change_all(self, changes: Sequence[GroupedChange]) -> list[Future[Any]]:
        """Start all changes, the first one before the others, and return their results."""
        return self.call_all([partial(self.groups.change, change) for change in changes])

    def call_all(self, calls: Sequence[Callable[[], Any]]) -> list[Future[Any]]:
        """Call all functions in threads of their own, the first one before the others, and return their results."""
        with ThreadPoolExecutor(len(calls)) as pool:
            first = pool.submit(_call, calls[0])
            self._has_begun.wait(30)
            others = [pool.submit(_call, call) for call in calls[1:]]
        return [first, *others]


def _call(function: Callable[[], Any]) -> Any:
    try:
        return function()
    finally:
        connection.close()
