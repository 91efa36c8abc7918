"""The three state machines as tables."""

from collections.abc import Iterator

from conductor_app.core.states import ATTEMPT, RUN, TASK, StateMachine

from .tables import code, table

STATE_MACHINES = {"Run": RUN, "Task": TASK, "Attempt": ATTEMPT}


def write_tables() -> str:
    return "\n".join(
        f"### {name}\n\n" + table(("status", "transitions"), _rows(machine)) for name, machine in STATE_MACHINES.items()
    )


def _order(machine: StateMachine) -> list[str]:
    """Return the statuses, those with transitions first."""
    return list(dict.fromkeys([status for status, _ in machine.moves] + list(machine.moves.values())))


def _rows(machine: StateMachine) -> Iterator[tuple[str, str]]:
    """Yield the transitions with the statuses that have them."""
    statuses: dict[str, list[str]] = {}
    for status in _order(machine):
        name, moves = _row(status, machine)
        statuses.setdefault(moves, []).append(name)
    for moves, names in statuses.items():
        yield ", ".join(names), moves


def _row(status: str, machine: StateMachine) -> tuple[str, str]:
    by_target: dict[str, list[str]] = {}
    for (source, event), target in machine.moves.items():
        if source == status:
            by_target.setdefault(target, []).append(event.replace("_", " "))
    moves = "; ".join(f"{', '.join(events)} → {code(target)}" for target, events in by_target.items())
    return code(status) if status in machine.open else f"**{code(status)}**", moves
