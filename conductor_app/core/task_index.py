"""The tasks of a snapshot, sorted as decisions look for them: once for all, since a fan-out asks thousands of times."""

from functools import cached_property

from .definition import Key
from .snapshot import Run, Task
from .states import SKIPPED


class TaskIndex:
    """The tasks of one snapshot."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._newest: dict[int, dict[tuple[str, tuple[int, ...]], Task]] = {}

    def newest(self, ref: str, within: tuple[int, ...] = ()) -> Task | None:
        """The task of this reference that was created last, among those whose turns begin like this."""
        depth = len(within)
        if depth not in self._newest:
            self._newest[depth] = {(task.key.ref, task.key.iteration_path[:depth]): task for task in self._by_age}
        return self._newest[depth].get((ref, within))

    @cached_property
    def _by_age(self) -> list[Task]:
        return sorted(filter(self._may_be_newest, self.run.tasks.values()), key=lambda task: task.seq)

    def _may_be_newest(self, task: Task) -> bool:
        """Whether a task may be the newest of its reference: skipped ones of every turn are read, whatever followed."""
        return self.run.is_whole or task.status != SKIPPED or task.key in self.run.touched

    @cached_property
    def by_loop(self) -> dict[Key, list[Task]]:
        """The tasks that stand in each loop."""
        found: dict[Key, list[Task]] = {}
        for task in self.run.tasks.values():
            if task.step.loops:
                found.setdefault(Key(task.step.loops[-1], task.key.iteration_path[:-1]), []).append(task)
        return found
