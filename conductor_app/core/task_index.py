"""Index of the tasks of a snapshot for the lookups of decisions. A fan-out looks up thousands of tasks."""

from functools import cached_property

from .definition import Key
from .snapshot import Run, Task
from .states import SKIPPED


class TaskIndex:
    """Index of the tasks of one snapshot."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._newest: dict[int, dict[tuple[str, tuple[int, ...]], Task]] = {}

    def newest(self, ref: str, within: tuple[int, ...] = ()) -> Task | None:
        """Return the most recently created task of this reference in the iterations `within`, or None."""
        depth = len(within)
        if depth not in self._newest:
            self._newest[depth] = {(task.key.ref, task.key.iteration_path[:depth]): task for task in self._by_age}
        return self._newest[depth].get((ref, within))

    @cached_property
    def _by_age(self) -> list[Task]:
        return sorted(filter(self._may_be_newest, self.run.tasks.values()), key=lambda task: task.seq)

    def _may_be_newest(self, task: Task) -> bool:
        """Return True if a task may be the newest of its reference.

        Skipped tasks of earlier iterations are read as well.
        """
        return self.run.is_whole or task.status != SKIPPED or task.key in self.run.touched

    @cached_property
    def by_loop(self) -> dict[Key, list[Task]]:
        """Return the tasks directly inside each loop."""
        found: dict[Key, list[Task]] = {}
        for task in self.run.tasks.values():
            if task.step.loops:
                found.setdefault(Key(task.step.loops[-1], task.key.iteration_path[:-1]), []).append(task)
        return found
