"""What an operator may do to a run, as one table that list and page share: engine command, permission, states."""

from collections.abc import Callable
from dataclasses import dataclass

from ..core.states import RUN
from ..engine import runs


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that can be asked for. `event`: the move of core/states.py that has to be possible."""

    name: str
    event: str
    command: Callable[..., None]
    done: str
    sentence: str
    options: tuple[tuple[str, str], ...] = ()
    permission: str = "conductor.change_run"
    is_drastic: bool = False

    @property
    def label(self) -> str:
        return self.name.capitalize()

    def is_possible(self, status: str) -> bool:
        """Whether the table has the move, and it leads somewhere else."""
        return RUN.allows(status, self.event) and RUN.after(status, self.event) != status

    def chosen_options(self, answers: dict) -> dict[str, bool]:
        """The options that were ticked."""
        return {name: True for name, _label in self.options if name in answers}


ACTIONS: dict[str, Action] = {
    action.name: action
    for action in (
        Action(
            "retry",
            "retry",
            runs.retry,
            "goes on: what had failed is tried again.",
            "Every task that failed, timed out or was canceled gets another attempt; what succeeded is kept.",
            options=(("resume_children", "Retry inside failed sub-workflows instead of starting them anew"),),
        ),
        Action(
            "pause",
            "pause",
            runs.pause,
            "is paused.",
            "Nothing new is scheduled until the run is resumed. Work that workers hold goes on.",
        ),
        Action("resume", "resume", runs.resume, "goes on.", "The run goes on from where it was paused."),
        Action(
            "terminate",
            "terminate",
            runs.terminate,
            "is terminated.",
            "The run is stopped for good: open tasks are canceled, sub-workflows are stopped too.",
            options=(("with_failure", "Start its failure workflow"),),
            is_drastic=True,
        ),
    )
}
"""Written by hand, in the order in which they are offered."""


def offered(status: str, has_permission: Callable[[str], bool]) -> list[Action]:
    """What this person may do to a run in this status."""
    return [action for action in ACTIONS.values() if action.is_possible(status) and has_permission(action.permission)]
