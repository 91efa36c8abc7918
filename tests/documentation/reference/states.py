"""The three state machines as tables."""

from conductor_app.core.states import ATTEMPT, RUN, TASK, StateMachine

from .tables import code, table

STATE_MACHINES = {"Run": RUN, "Task": TASK, "Attempt": ATTEMPT}


def write_tables() -> str:
    return "\n".join(
        f"### {name}\n\n"
        + table(("status", "transitions"), map(lambda status, m=machine: _row(status, m), _order(machine)))
        for name, machine in STATE_MACHINES.items()
    )


def _order(machine: StateMachine) -> list[str]:
    """Return the statuses, those with transitions first."""
    return list(dict.fromkeys([status for status, _ in machine.moves] + list(machine.moves.values())))


def _row(status: str, machine: StateMachine) -> tuple[str, str]:
    by_target: dict[str, list[str]] = {}
    for (source, event), target in machine.moves.items():
        if source == status:
            by_target.setdefault(target, []).append(event.replace("_", " "))
    moves = "; ".join(f"{', '.join(events)} → {code(target)}" for target, events in by_target.items())
    return code(status) if status in machine.open else f"**{code(status)}**", moves
