"""Background work of optional slices, which their `wiring` registers at the start of a process."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from . import process_state
from .process_state import Wiring

Sweep = Callable[[int], int]
"""One pass over at most the given number of due rows. Returns how many items it handled."""
IsStopping = Callable[[], bool]
"""Returns True if the process stops, so that the caller starts no further item."""


@dataclass(frozen=True)
class BackgroundWork:
    """The background work of a slice. Sweeps have names, under which their passes are recorded."""

    sweeps: Mapping[str, Sweep] = field(default_factory=dict)
    """Run continuously, while rows are due that `due_times` of the store reports under the name of the sweep."""
    wake_task: Callable[[str], object] | None = None
    """Evaluates the timers of a task without a run."""
    skip_messages: Sequence[Callable[[int], int]] = ()
    """Delete messages that are due at the given time and need no delivery, and return how many."""
    publish: Sequence[Callable[[IsStopping], object]] = ()
    """The job `work` calls them, in one thread per process."""
    export: Sequence[Callable[[IsStopping], object]] = ()
    """The job `work` calls them in another thread, because the systems that they send to may not answer for seconds."""
    deletions: Sequence[Callable[[int], object]] = ()
    """Delete expired rows, before the job `prune` removes runs."""
    prune: Sequence[Callable[[int], object]] = ()
    """Steps of the job `prune`. An error in one does not stop the others."""
    prune_sweeps: Mapping[str, Sweep] = field(default_factory=dict)
    """Repeated by the job `prune` until they find nothing."""
    reencrypt: Sequence[Callable[[], int]] = ()
    """Encrypt secrets with the newest key, and return how many."""


_registered: Wiring[tuple[BackgroundWork, ...]] = process_state.wiring(())


def register(work: BackgroundWork) -> None:
    """Add the background work of a slice."""
    _registered.value = (*_registered.value, work)


def wake_task(task_id: str) -> None:
    """Evaluate the timers of a task without a run, in the slice that has such tasks."""
    for work in _registered.value:
        if work.wake_task:
            work.wake_task(task_id)


def registered_work() -> Iterator[BackgroundWork]:
    """Yield the background work of each slice, in the order of registration."""
    yield from _registered.value
