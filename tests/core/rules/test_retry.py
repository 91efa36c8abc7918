"""Effect of a task's end on its run (execution §1.3), and further attempts (execution §3)."""

import pytest

from tests.builders import plan, policy, step
from tests.core.simulated_run import RunInMemory

PLAIN, OPTIONAL, PERMISSIVE = {}, {"optional": True}, {"permissive": True}
BOTH = {"optional": True, "permissive": True}

# Fields of the step, outcome of its attempt, status of the task, whether the next step runs, status of the run.
MATRIX = [
    (PLAIN, "COMPLETED", "COMPLETED", True, "COMPLETED"),
    (PLAIN, "FAILED", "FAILED", False, "FAILED"),
    (PLAIN, "FAILED_FOR_GOOD", "FAILED_WITH_TERMINAL_ERROR", False, "FAILED"),
    (PLAIN, "TIMED_OUT", "TIMED_OUT", False, "TIMED_OUT"),
    (PLAIN, "CANCELED", "CANCELED", False, "TERMINATED"),
    (OPTIONAL, "COMPLETED", "COMPLETED", True, "COMPLETED"),
    (OPTIONAL, "FAILED", "COMPLETED_WITH_ERRORS", True, "COMPLETED"),
    (OPTIONAL, "FAILED_FOR_GOOD", "COMPLETED_WITH_ERRORS", True, "COMPLETED"),
    (OPTIONAL, "TIMED_OUT", "COMPLETED_WITH_ERRORS", True, "COMPLETED"),
    (OPTIONAL, "CANCELED", "COMPLETED_WITH_ERRORS", True, "COMPLETED"),
    (PERMISSIVE, "COMPLETED", "COMPLETED", True, "COMPLETED"),
    (PERMISSIVE, "FAILED", "FAILED", True, "FAILED"),
    (PERMISSIVE, "FAILED_FOR_GOOD", "FAILED_WITH_TERMINAL_ERROR", True, "FAILED"),
    (PERMISSIVE, "TIMED_OUT", "TIMED_OUT", True, "FAILED"),
    (PERMISSIVE, "CANCELED", "CANCELED", True, "FAILED"),
    (BOTH, "FAILED", "COMPLETED_WITH_ERRORS", True, "COMPLETED"),
]


def case_id(case) -> str:
    kind, outcome, *_ = case
    return f"{' and '.join(kind) or 'plain'}-{outcome}"


@pytest.mark.parametrize(("kind", "outcome", "status", "continues", "end"), MATRIX, ids=map(case_id, MATRIX))
def test_the_end_of_a_task_determines_the_status_of_its_run(kind, outcome, status, continues, end):
    run = RunInMemory(plan(step("a", **kind), step("b")))

    run.ends("a", outcome)

    assert run.statuses["a"] == status
    assert ("b" in run.statuses) == continues
    if continues:
        run.completes("b")
    assert run.status == end


@pytest.mark.parametrize("kind", [PLAIN, OPTIONAL, PERMISSIVE], ids=["plain", "optional", "permissive"])
@pytest.mark.parametrize("outcome", ["FAILED", "TIMED_OUT"])
def test_all_retries_are_used_before_a_task_fails(kind, outcome):
    run = RunInMemory(plan(step("a", policy=policy(retries=2), **kind), step("b")))

    run.ends("a", outcome).ends("a", outcome)

    assert run.statuses == {"a": "SCHEDULED"}
    assert run.task("a").attempt.number == 2
    run.ends("a", outcome)
    assert run.statuses["a"] != "SCHEDULED"


@pytest.mark.parametrize("outcome", ["FAILED_FOR_GOOD", "CANCELED"])
def test_terminal_failures_are_not_retried(outcome):
    run = RunInMemory(plan(step("a", policy=policy(retries=5))))

    run.ends("a", outcome)

    assert run.status in ("FAILED", "TERMINATED")


def test_a_retry_is_a_new_attempt_with_a_link_to_the_previous_one():
    run = RunInMemory(
        plan(step("a", policy=policy(retries=1, delay_seconds=5), inputs={"n": "${workflow.input.n}"})), {"n": 1}
    )
    first = run.claim("a").attempt
    run.later(10).fails("a", "no funds")

    second = run.task("a").attempt

    assert (second.number, second.previous_id, second.status) == (1, first.id, "PENDING")
    assert (second.scheduled_at, second.visible_at) == (10_000, 15_000)
    assert (second.started_at, second.ended_at, second.worker, second.poll_count) == (None, None, "", 0)
    assert second.reason == "no funds"
    assert second.input == {"n": 1}
    assert second.seq > first.seq


def test_a_retry_has_an_id_of_its_own():
    run = RunInMemory(plan(step("a", policy=policy(retries=1), inputs={"me": "${CPEWF_TASK_ID}"}))).fails("a")

    attempt = run.task("a").attempt

    assert attempt.input == {"me": attempt.id}


@pytest.mark.parametrize(
    ("own", "registered", "attempts"), [(None, 2, 3), (1, 2, 2), (0, 2, 1), (4, 0, 5)], ids=lambda value: str(value)
)
def test_the_retry_count_of_the_step_overrides_the_task_definition(own, registered, attempts):
    fields = {} if own is None else {"retryCount": own}
    run = RunInMemory(plan(step("a", policy=policy(retries=registered), **fields)))
    count = 0

    while run.status == "RUNNING":
        run.fails("a")
        count += 1

    assert count == attempts


def test_the_total_timeout_ends_the_retries():
    run = RunInMemory(plan(step("a", policy=policy(retries=9, total_seconds=100, timeout_policy="RETRY"))))

    run.later(99).fails("a")
    assert run.statuses == {"a": "SCHEDULED"}

    run.later(1)
    assert run.status == "TIMED_OUT"


def test_the_run_names_the_failed_task_and_its_reason():
    run = RunInMemory(plan(step("a"))).fails("a", "no funds")

    id = run.task("a").attempt.id
    assert run.snapshot.reason == f"Task {id} failed with status: FAILED and reason: 'no funds'"
    assert run.snapshot.failed_attempt_id == id
    assert run.snapshot.failed_refs == ("a",)


def test_the_reason_of_a_run_lists_the_failures_of_permissive_tasks():
    run = RunInMemory(plan(step("a", permissive=True), step("b", permissive=True), step("c")))

    run.fails("a", "one").fails("b", "two").completes("c")

    a, b = (run.task(key).attempt.id for key in "ab")
    assert run.snapshot.reason == (
        f"Task {a} failed with status: FAILED and reason: 'one'. Task {b} failed with status: FAILED and reason: 'two'"
    )


def test_the_names_of_failed_tasks_remain_after_a_successful_retry():
    run = RunInMemory(plan(step("a", name="pay", policy=policy(retries=1)))).fails("a").completes("a")

    assert (run.status, run.snapshot.failed_refs, run.snapshot.failed_names) == ("COMPLETED", ("a",), ("pay",))


def test_a_run_without_tasks_completes_immediately():
    assert RunInMemory(plan()).status == "COMPLETED"
