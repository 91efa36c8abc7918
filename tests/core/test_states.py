"""State machines of runs, tasks and attempts, compared to tables of the specification (execution §1)."""

import pytest

from conductor_app.core.errors import NotAllowedInState
from conductor_app.core.states import ATTEMPT, RUN, TASK, StateMachine


def parse_table(text: str) -> dict[tuple[str, str], str]:
    """Parse a parse_table with events in the first row and statuses in the first column; a dot is a rejected event."""
    head, *lines = [line.split() for line in text.strip().splitlines()]
    return {
        (status, event): after
        for status, *cells in lines
        for event, after in zip(head, cells, strict=True)
        if after != "."
    }


# A report can end an attempt that no worker has claimed. `reopen` applies to attempts that the engine holds.
ATTEMPT_MOVES = parse_table("""
                claim  renew   hand_back complete  fail   fail_for_good   expire  cancel   reopen
PENDING         LEASED PENDING PENDING   COMPLETED FAILED FAILED_FOR_GOOD EXPIRED CANCELED .
LEASED          .      LEASED  PENDING   COMPLETED FAILED FAILED_FOR_GOOD EXPIRED CANCELED .
COMPLETED       .      .       .         .         .      .               .       .        LEASED
FAILED          .      .       .         .         .      .               .       .        LEASED
FAILED_FOR_GOOD .      .       .         .         .      .               .       .        LEASED
EXPIRED         .      .       .         .         .      .               .       .        LEASED
CANCELED        .      .       .         .         .      .               .       .        LEASED
""")

TASK_MOVES = parse_table("""
                      release complete  complete_with_errors  fail   time_out  cancel   skip    reopen
BLOCKED               ACTIVE  .         .                     .      TIMED_OUT CANCELED .       .
ACTIVE                .       COMPLETED COMPLETED_WITH_ERRORS FAILED TIMED_OUT CANCELED SKIPPED .
COMPLETED             .       .         .                     .      .         .        .       ACTIVE
COMPLETED_WITH_ERRORS .       .         .                     .      .         .        .       ACTIVE
FAILED                .       .         .                     .      .         .        .       ACTIVE
TIMED_OUT             .       .         .                     .      .         .        .       ACTIVE
CANCELED              .       .         .                     .      .         .        .       ACTIVE
SKIPPED               .       .         .                     .      .         .        .       .
""")

# A paused run can time out or be terminated; terminate only rewrites the status of one that failed (execution §7.2).
RUN_MOVES = parse_table("""
           pause  resume  complete  fail   time_out  terminate  retry   rerun   restart reopen
RUNNING    PAUSED .       COMPLETED FAILED TIMED_OUT TERMINATED .       .       .       .
PAUSED     PAUSED RUNNING .         .      TIMED_OUT TERMINATED .       .       .       .
COMPLETED  .      .       .         .      .         .          .       RUNNING RUNNING RUNNING
FAILED     .      .       .         .      .         TERMINATED RUNNING RUNNING RUNNING RUNNING
TIMED_OUT  .      .       .         .      .         TERMINATED RUNNING RUNNING RUNNING RUNNING
TERMINATED .      .       .         .      .         TERMINATED RUNNING RUNNING RUNNING RUNNING
""")

MACHINES = {"attempt": (ATTEMPT, ATTEMPT_MOVES), "task": (TASK, TASK_MOVES), "run": (RUN, RUN_MOVES)}


def cases():
    for name, (machine, moves) in MACHINES.items():
        for status in sorted(machine.statuses):
            for event in sorted({event for _, event in moves} | {event for _, event in machine.moves}):
                yield pytest.param(machine, status, event, moves.get((status, event)), id=f"{name}-{status}-{event}")


@pytest.mark.parametrize(("machine", "status", "event", "after"), list(cases()))
def test_every_pair_of_status_and_event_follows_the_table(
    machine: StateMachine, status: str, event: str, after: str | None
):
    assert machine.allows(status, event) == (after is not None)
    if after is not None:
        assert machine.after(status, event) == after
        return
    with pytest.raises(NotAllowedInState, match=status):
        machine.after(status, event)


@pytest.mark.parametrize(
    ("machine", "open_statuses"),
    [
        pytest.param(ATTEMPT, {"PENDING", "LEASED"}, id="attempt"),
        pytest.param(TASK, {"BLOCKED", "ACTIVE"}, id="task"),
        pytest.param(RUN, {"RUNNING", "PAUSED"}, id="run"),
    ],
)
def test_a_status_is_either_open_or_final(machine: StateMachine, open_statuses: set[str]):
    assert machine.open == open_statuses
    assert machine.final == machine.statuses - open_statuses


def test_a_refused_transition_names_object_status_and_event():
    with pytest.raises(NotAllowedInState, match="A workflow that is COMPLETED cannot pause"):
        RUN.after("COMPLETED", "pause")
