"""What an operator may do to a run or from one of its tasks, as one table that list and pages share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.errors import Invalid
from ...core.states import RUN
from ...engine import runs


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
    is_of_task: bool = False  # offered beside an attempt, whose id goes along
    title: str = ""

    @property
    def label(self) -> str:
        return self.title or self.name.capitalize()

    def is_possible(self, status: str) -> bool:
        """Whether the table has the move, and it leads somewhere else."""
        return RUN.allows(status, self.event) and RUN.after(status, self.event) != status

    def chosen(self, answers: Mapping[str, str]) -> dict[str, Any]:
        """The options that were ticked, and the attempt that it is about; raises Invalid where that is missing."""
        ticked: dict[str, Any] = {name: True for name, _label in self.options if name in answers}
        if not self.is_of_task:
            return ticked
        if not answers.get("attempt_id"):
            raise Invalid("It is not said which task is meant.")
        return {**ticked, "attempt_id": answers["attempt_id"]}


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
            "restart",
            "restart",
            runs.restart,
            "begins anew.",
            "The run begins anew under its id, with its input: all tasks and what came of them are forgotten.",
            options=(("latest_definitions", "By the newest version of its definition"),),
            is_drastic=True,
        ),
        Action(
            "rerun",
            "rerun",
            runs.rerun,
            "goes on from this task.",
            "This task and what came after it are forgotten and done again. Other branches keep their results.",
            is_drastic=True,
            is_of_task=True,
            title="Rerun from this task",
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


def of_runs() -> list[Action]:
    """What may be done to a run as a whole."""
    return [action for action in ACTIONS.values() if not action.is_of_task]


def offered(status: str, has_permission: Callable[[str], bool]) -> dict[str, list[Action]]:
    """What this person may do to a run in this status, and from one of its tasks; as templates know it."""
    possible = [
        action for action in ACTIONS.values() if action.is_possible(status) and has_permission(action.permission)
    ]
    return {
        "actions": [action for action in possible if not action.is_of_task],
        "task_actions": [action for action in possible if action.is_of_task],
    }
