"""What came of a task: all that control has reached from it, and what has waited for that."""

from collections.abc import Iterator, Mapping

from ..definition import Key, Step
from ..snapshot import Run, Task
from ..step_types import forked_references, step_type_of

TasksByLoop = Mapping[Key, list[Key]]


class Downstream:
    """The trail of a task. `gone`: the task itself and what came after it. `waiting`: the joins and loops that stay
    and wait for any of these; a loop with the turn in which it goes on.
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
        """Go where control went. A step that was never reached is passed too: it may have been skipped over."""
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
        """What came after the joins and loops that waited for a task, as far as they are not open still."""
        to_ask = [task]
        while to_ask:
            asked = to_ask.pop()
            for key in waiting_keys(asked):
                waiter = self.run.tasks.get(key)
                if waiter is None or key in self.waiting:
                    continue
                is_loop = key == asked.loop
                self.waiting[key] = asked.key.iteration_path[-1] if is_loop else None
                to_ask.append(waiter)
                if waiter.step.follower:
                    yield Key(waiter.step.follower, key.iteration_path), waiter
                if is_loop:
                    yield from (
                        (late, waiter)
                        for late in tasks_after_iteration(self._inside, waiter, asked.key.iteration_path[-1])
                    )


def waiting_keys(task: Task) -> Iterator[Key]:
    """The keys of the joins and the loop that wait for a task."""
    for ref in {task.joined_by, *task.step.joined_by} - {""}:
        yield Key(ref, task.key.iteration_path)
    if task.loop:
        yield task.loop


def tasks_by_loop(run: Run) -> TasksByLoop:
    """The tasks in each loop, in whatever turn and however deep."""
    inside: dict[Key, list[Key]] = {}
    for key, task in run.tasks.items():
        for depth, ref in enumerate(task.step.loops):
            inside.setdefault(Key(ref, key.iteration_path[:depth]), []).append(key)
    return inside


def tasks_after_iteration(inside: TasksByLoop, loop: Task, iteration: int) -> list[Key]:
    """The tasks in the turns of a loop that came after this one."""
    if not step_type_of(loop.step.type).iterations_are_sequential(loop):
        return []
    depth = len(loop.key.iteration_path)
    return [key for key in inside.get(loop.key, ()) if key.iteration_path[depth] > iteration]


def next_keys(step: Step, key: Key, task: Task | None) -> Iterator[Key]:
    """Where control may go from a step in the same turn of its loops; the body of a loop has turns of its own."""
    heads = () if step.inside else step.heads
    forked = forked_references(task) if task else ()
    for ref in (*heads, *forked, step.follower):
        if ref:
            yield Key(ref, key.iteration_path)
