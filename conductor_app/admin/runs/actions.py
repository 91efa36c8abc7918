"""What an operator may do to a run or from one of its tasks, as one table that list and pages share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.errors import Invalid
from ...core.states import RUN
from ...engine import runs


@dataclass(frozen=True, slots=True)
class RunAction:
    """One thing that can be asked for. `event`: the move of core/states.py that has to be possible.

    `ends_run`: it makes an end, which somebody asks for only where there is none yet; the table allows clients more.
    """

    name: str
    event: str
    command: Callable[..., None]
    label: Any
    done: Any
    sentence: Any
    options: tuple[tuple[str, Any], ...] = ()
    permission: str = "conductor.change_run"
    is_drastic: bool = False
    needs_attempt: bool = False  # offered beside an attempt, whose id goes along
    is_planned: bool = False  # it repeats work: the planner shows what would happen
    ends_run: bool = False
    button: Any = ""

    def is_possible(self, status: str) -> bool:
        """Whether the table has the move, it leads somewhere else, and a person would ask for it."""
        if self.ends_run and status in RUN.final:
            return False
        return RUN.allows(status, self.event) and RUN.after(status, self.event) != status

    def parse_options(self, answers: Mapping[str, str]) -> dict[str, Any]:
        """The options that were ticked, and the attempt that it is about; raises Invalid where that is missing."""
        ticked: dict[str, Any] = {name: True for name, _label in self.options if name in answers}
        if not self.needs_attempt:
            return ticked
        if not answers.get("attempt_id"):
            raise Invalid(_("It is not said which task is meant."))
        return {**ticked, "attempt_id": answers["attempt_id"]}


RUN_ACTIONS: dict[str, RunAction] = {
    action.name: action
    for action in (
        RunAction(
            "retry",
            "retry",
            runs.retry,
            gettext_lazy("Retry"),
            gettext_lazy("The run goes on: what had failed is tried again."),
            gettext_lazy(
                "Every task that failed, timed out or was canceled gets another attempt; what succeeded is kept."
            ),
            options=(
                ("resume_children", gettext_lazy("Retry inside failed sub-workflows instead of starting them anew")),
            ),
            is_planned=True,
            button=gettext_lazy("Retry this run"),
        ),
        RunAction(
            "restart",
            "restart",
            runs.restart,
            gettext_lazy("Restart"),
            gettext_lazy("The run begins anew."),
            gettext_lazy(
                "The run begins anew under its id, with its input: all tasks and what came of them are forgotten."
            ),
            options=(("latest_definitions", gettext_lazy("By the newest version of its definition")),),
            is_drastic=True,
            is_planned=True,
            button=gettext_lazy("Restart this run"),
        ),
        RunAction(
            "rerun",
            "rerun",
            runs.rerun,
            gettext_lazy("Rerun from this task"),
            gettext_lazy("The run goes on from this task."),
            gettext_lazy(
                "This task and what came after it are forgotten and done again. Other branches keep their results."
            ),
            is_drastic=True,
            needs_attempt=True,
            is_planned=True,
            button=gettext_lazy("Rerun from this task"),
        ),
        RunAction(
            "pause",
            "pause",
            runs.pause_run,
            gettext_lazy("Pause"),
            gettext_lazy("The run is paused."),
            gettext_lazy("Nothing new is scheduled until the run is resumed. Work that workers hold goes on."),
            button=gettext_lazy("Pause this run"),
        ),
        RunAction(
            "resume",
            "resume",
            runs.resume_run,
            gettext_lazy("Resume"),
            gettext_lazy("The run goes on."),
            gettext_lazy("The run goes on from where it was paused."),
            button=gettext_lazy("Resume this run"),
        ),
        RunAction(
            "terminate",
            "terminate",
            runs.terminate_run,
            gettext_lazy("Terminate"),
            gettext_lazy("The run is terminated."),
            gettext_lazy("The run is stopped for good: open tasks are canceled, sub-workflows are stopped too."),
            options=(("with_failure", gettext_lazy("Start its failure workflow")),),
            is_drastic=True,
            ends_run=True,
            button=gettext_lazy("Terminate this run"),
        ),
    )
}
"""Written by hand, in the order in which they are offered."""


def run_actions() -> list[RunAction]:
    """What may be done to a run as a whole."""
    return [action for action in RUN_ACTIONS.values() if not action.needs_attempt]


def available_actions(status: str, has_permission: Callable[[str], bool]) -> dict[str, list[RunAction]]:
    """What this person may do to a run in this status, and from one of its tasks; as templates know it."""
    possible = [
        action for action in RUN_ACTIONS.values() if action.is_possible(status) and has_permission(action.permission)
    ]
    return {
        "actions": [action for action in possible if not action.needs_attempt],
        "task_actions": [action for action in possible if action.needs_attempt],
    }
