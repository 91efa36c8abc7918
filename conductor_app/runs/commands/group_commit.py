"""Group commit: under load, reports of one process on several runs and starts of runs share a transaction.

A run that another transaction has locked, a decision that needs more data, and every member of a group whose
transaction fails are changed in transactions of their own, as without a group.
"""

from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass
from threading import Lock

from ...core.decision_context import Command
from ...core.effects import Effect
from ...core.errors import RequestRefused
from ...core.primitives import ID_PATTERN
from ...core.snapshot import Run
from ..store.writing import FinalQuery, RunOrigin

ChooseFinalQuery = Callable[[Run, Sequence[Effect], int], FinalQuery | None]
MAX_GROUP = 16
MAX_ACTIVE_GROUPS = 2
"""The number of groups at the same time: one decides while the database executes the statements of another."""
MAX_WAIT_SECONDS = 0.05
"""The time after which a change does not wait for a group any more. A group takes a few milliseconds."""


@dataclass(frozen=True, slots=True)
class GroupedChange:
    """A change that can share its transaction: a command about one attempt, or a start, by an actor, and nothing else.

    `authorize`: raises Forbidden if the caller has no permission for the loaded run. `final_query`: returns what to
    execute at the end of the transaction, of the loaded run, the effects and the time. `new_run`, `origin`: the run
    that starts, before its first decision; it has no attempt yet. `definitions_revision`: the revision of all
    definitions that it requires; if a definition has changed since then, the change needs a transaction of its own.
    """

    run_id: str
    attempt_id: str
    command: Command
    actor: str
    reason: str
    authorize: Callable[[Run], None] | None = None
    final_query: ChooseFinalQuery | None = None
    new_run: Run | None = None
    origin: RunOrigin | None = None
    definitions_revision: int | None = None

    @property
    def has_valid_ids(self) -> bool:
        """True if the database accepts the ids. A text that it cannot store would fail the whole group."""
        return bool(ID_PATTERN.fullmatch(self.run_id) and ID_PATTERN.fullmatch(self.attempt_id))

    @property
    def unique_key(self) -> str:
        """The key that no other run may have, if the start has one: a second start with it would fail the group."""
        origin, run = self.origin, self.new_run
        key = (origin.idempotency_key or origin.request_id) if origin else None
        return f"{run.definition.name} {key}" if key and run else ""

    @property
    def subject(self) -> str:
        """What at most one change of a group is about: the run, or the key of a run that starts."""
        return self.unique_key or self.run_id


@dataclass(frozen=True, slots=True)
class SavedChange:
    """The outcome of a change whose statements are part of the group's transaction."""

    effects: tuple[Effect, ...]
    notify: Callable[[], None]


class GroupedCommand:
    """A change in a group, with the thread that waits for it.

    `leads`: its thread executes the next group. `saved` or `refusal` is its outcome; without either, the thread changes
    the run in a transaction of its own.
    """

    def __init__(self, change: GroupedChange) -> None:
        self.change = change
        self.leads = False
        self.saved: SavedChange | None = None
        self.refusal: RequestRefused | None = None
        # Decisions authorize and log in the context of the request.
        self.context: Context = copy_context()
        self._wakes = Lock()
        self._wakes.acquire()

    def wait(self, seconds: float = -1) -> bool:
        """Wait until the thread is woken. Returns False after this time."""
        return self._wakes.acquire(timeout=seconds)

    def wake(self) -> None:
        self._wakes.release()

    def forget_outcome(self) -> None:
        self.saved = self.refusal = None


class GroupCommit:
    """The groups of this process, one after another. The thread of a member executes the group."""

    def __init__(self, commit: Callable[[Sequence[GroupedCommand]], None]) -> None:
        self._commit = commit
        self._lock = Lock()
        self._waiting: deque[GroupedCommand] = deque()
        self._active_count = 0

    def change(self, change: GroupedChange) -> tuple[Effect, ...] | None:
        """Make a change, in a group if other changes are waiting. Returns None if it needs its own transaction.

        A change never waits if no group is active.

        Raises:
            RequestRefused: when the command is refused.
        """
        member = GroupedCommand(change)
        if not self._join(member):
            return None
        if member.leads:
            self._lead(member)
        if member.refusal is not None:
            raise member.refusal
        saved = member.saved
        if saved is None:
            return None
        saved.notify()
        return saved.effects

    def _join(self, member: GroupedCommand) -> bool:
        """Wait until the member leads or its group has ended. Returns False if that takes too long."""
        with self._lock:
            if self._active_count < MAX_ACTIVE_GROUPS:
                self._active_count += 1
                member.leads = True
                return True
            self._waiting.append(member)
        if member.wait(MAX_WAIT_SECONDS):
            return True
        with self._lock:
            if member in self._waiting:
                self._waiting.remove(member)
                return False
        return member.wait()

    def _lead(self, leader: GroupedCommand) -> None:
        members = [leader, *self._take_waiting(leader)]
        try:
            self._commit(members)
        except Exception:
            for member in members:
                member.forget_outcome()
        finally:
            with self._lock:
                successor = self._waiting.popleft() if self._waiting else None
                self._active_count -= successor is None
            if successor is not None:
                successor.leads = True
                successor.wake()
            for member in members[1:]:
                member.wake()

    def _take_waiting(self, leader: GroupedCommand) -> list[GroupedCommand]:
        """Remove and return waiting members, at most one for each subject."""
        subjects, taken, left = {leader.change.subject}, [], deque[GroupedCommand]()
        with self._lock:
            for member in self._waiting:
                if len(subjects) < MAX_GROUP and member.change.subject not in subjects:
                    subjects.add(member.change.subject)
                    taken.append(member)
                else:
                    left.append(member)
            self._waiting = left
        return taken
