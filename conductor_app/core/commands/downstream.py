"""Find the tasks that control reached from a task, and the joins and loops that waited for them."""

from collections.abc import Iterator, Mapping

from ..definition import Key, Step
from ..snapshot import Run, Task
from ..step_types import forked_references, step_type_of

TasksByLoop = Mapping[Key, list[Key]]


class Downstream:
    """The tasks downstream of a task.

    `gone`: the task itself and the tasks after it. `waiting`: the joins and loops that stay and wait for any of these,
    each loop with the iteration in which it continues.
    """

    def __init__(self, run: Run, start: Key, inside: TasksByLoop | None = None) -> None:
        self.run, self.start = run, start
        self.gone: set[Key] = set()
        self.waiting: dict[Key, int | None] = {}
        self._seen: set[Key] = set()
        self._inside = tasks_by_loop(run) if inside is None else inside
        self._follow([(start, run.tasks[start])])
        self.waiting = {key: iteration for key, iteration in self.waiting.items() if key not in self.gone}

    def _follow(self, to_follow: list[tuple[Key, Task]]) -> None:
        """Follow control. A step without a task is followed as well, because it may have been skipped."""
        while to_follow:
            key, source = to_follow.pop()
            if key in self._seen:
                continue
            self._seen.add(key)
            task = self.run.tasks.get(key)
            step = task.step if task else self.run.step(key.ref, source)
            if step is None:
                continue
            to_follow += [(after, task or source) for after in next_keys(step, key, task)]
            if task is not None:
                to_follow += [(inner, task) for inner in self._inside.get(key, ())]
                self.gone.add(key)
                to_follow += self._add_reopened(task)

    def _add_reopened(self, task: Task) -> Iterator[tuple[Key, Task]]:
        """Yield the keys after the joins and loops that waited for a task and are not open."""
        to_check = [task]
        while to_check:
            awaited = to_check.pop()
            for key in waiting_keys(awaited):
                waiter = self.run.tasks.get(key)
                if waiter is None or key in self.waiting:
                    continue
                is_loop = key == awaited.loop
                self.waiting[key] = awaited.key.iteration_path[-1] if is_loop else None
                to_check.append(waiter)
                if waiter.step.follower:
                    yield Key(waiter.step.follower, key.iteration_path), waiter
                if is_loop:
                    yield from (
                        (late, waiter)
                        for late in tasks_after_iteration(self._inside, waiter, awaited.key.iteration_path[-1])
                    )


def waiting_keys(task: Task) -> Iterator[Key]:
    """Yield the keys of the joins and the loop that wait for a task."""
    for ref in {task.joined_by, *task.step.joined_by} - {""}:
        yield Key(ref, task.key.iteration_path)
    if task.loop:
        yield task.loop


def tasks_by_loop(run: Run) -> TasksByLoop:
    """Return the tasks in each loop, in any iteration and at any depth."""
    inside: dict[Key, list[Key]] = {}
    for key, task in run.tasks.items():
        for depth, ref in enumerate(task.step.loops):
            inside.setdefault(Key(ref, key.iteration_path[:depth]), []).append(key)
    return inside


def tasks_after_iteration(inside: TasksByLoop, loop: Task, iteration: int) -> list[Key]:
    """Return the tasks in later iterations of a loop."""
    if not step_type_of(loop.step.type).iterations_are_sequential(loop):
        return []
    depth = len(loop.key.iteration_path)
    return [key for key in inside.get(loop.key, ()) if key.iteration_path[depth] > iteration]


def next_keys(step: Step, key: Key, task: Task | None) -> Iterator[Key]:
    """Yield the keys that control may reach from a step without entering or leaving an iteration."""
    heads = () if step.inside else step.heads
    forked = forked_references(task) if task else ()
    for ref in (*heads, *forked, step.follower):
        if ref:
            yield Key(ref, key.iteration_path)
