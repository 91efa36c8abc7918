"""Print the three state machines as tables for the README."""

from typing import Any

from django.core.management.base import BaseCommand

from conductor_app.core.states import ATTEMPT, RUN, TASK, StateMachine

STATE_MACHINES = {"Run": RUN, "Task": TASK, "Attempt": ATTEMPT}


class Command(BaseCommand):
    """`manage.py draw_states`: the state tables as Markdown."""

    help = "Print the states of runs, tasks and attempts as Markdown."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(draw_tables())


def draw_tables() -> str:
    """Return one table per state machine, with one row per status and its transitions."""
    return "\n".join(_table(name, machine) for name, machine in STATE_MACHINES.items())


def _table(name: str, machine: StateMachine) -> str:
    lines = [f"| {name} is | and then |", "|---|---|"]
    lines += [
        f"| {_status_line(status, machine)} | {_transition_cell(status, machine)} |"
        for status in _order_statuses(machine)
    ]
    return "\n".join([*lines, ""])


def _order_statuses(machine: StateMachine) -> list[str]:
    """Return the statuses, those with transitions first."""
    return list(dict.fromkeys([status for status, _ in machine.moves] + list(machine.moves.values())))


def _status_line(status: str, machine: StateMachine) -> str:
    return f"`{status}`" if status in machine.open else f"**`{status}`**"


def _transition_cell(status: str, machine: StateMachine) -> str:
    by_target: dict[str, list[str]] = {}
    for (source, event), target in machine.moves.items():
        if source == status:
            by_target.setdefault(target, []).append(event.replace("_", " "))
    return "; ".join(f"{', '.join(events)} → `{target}`" for target, events in by_target.items()) or "–"
