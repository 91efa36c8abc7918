"""Invariants of standalone tasks after arbitrary sequences of decisions."""

from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core.errors import RequestRefused
from conductor_app.core.primitives import fast_replace
from conductor_app.taskcluster.core import decisions
from conductor_app.taskcluster.core.snapshot import COMPLETED, EXCEPTIONS, FAILED
from tests.hypothesis_profile import property_settings
from tests.taskcluster.simulated_task import DEADLINE_MS, LEASE_MS, StandaloneTaskInMemory

REASONS = st.sampled_from([COMPLETED, FAILED, *EXCEPTIONS])
NUMBERS = st.integers(0, 4)
STEPS = st.one_of(
    st.tuples(st.just("claims")),
    st.tuples(st.just("reports"), NUMBERS, REASONS),
    st.tuples(st.just("renews"), NUMBERS),
    st.tuples(st.just("waits"), st.sampled_from([1, LEASE_MS // 2, LEASE_MS, DEADLINE_MS])),
    st.tuples(
        st.sampled_from(["schedule_task", "rerun_task", "cancel_task", "cancel_if_open", "redefine_task", "released"])
    ),
    st.tuples(st.just("prioritize"), st.integers(1, 7)),
)


def take_step(task: StandaloneTaskInMemory, action: str, *details) -> None:
    match action, details:
        case "claims", ():
            task.claim()
        case "reports", (number, reason):
            task.apply_command_and_check(decisions.report_attempt(number, reason))
        case "renews", (number,):
            task.apply_command_and_check(decisions.renew_lease(number))
        case "waits", (ms,):
            task.later(ms)
        case "released", ():
            task.snapshot = fast_replace(task.snapshot, waits=False)
            task.apply_command_and_check(decisions.satisfy_dependency("other"))
        case "prioritize", (priority,):
            task.apply_command_and_check(decisions.prioritize(priority))
        case _:
            task.apply_command_and_check(getattr(decisions, action))


@property_settings(150)
@given(st.lists(STEPS, max_size=40), st.integers(0, 3), st.booleans())
def test_the_invariants_of_a_task_hold_after_every_decision(steps, retries, waits):
    task = StandaloneTaskInMemory(retries, waits)

    for step in steps:
        before = task.snapshot
        try:
            take_step(task, *step)
        except RequestRefused:
            assert task.snapshot is before or step[0] == "released"

    task.later(10 * DEADLINE_MS)
    assert not task.snapshot.is_open
