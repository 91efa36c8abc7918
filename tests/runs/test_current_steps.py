"""The current step of open runs: where each stands and why it waits, in a few words and few queries."""

import pytest

from conductor_app.core.snapshot import NEVER
from conductor_app.explanations.cause import current_steps
from conductor_app.runs.commands import control
from conductor_app.runs.models import Message, Run
from conductor_app.tasks.commands import queues as queue_commands
from tests.builders import human, join, simple, step_of, wait
from tests.scenario import claim_and_report, claim_next, define_task, define_workflow, start_run, start_run_of

pytestmark = pytest.mark.django_db


def words_of(clock, run=None):
    """Return task, words and seconds since then for the run, or for the newest one."""
    now = clock.now()
    run = run or Run.objects.order_by("-created_at", "-pk").first()
    found = current_steps([run], now).get(run.pk)
    return found and (found.task, found.words, found.since and (now - found.since) / 1000)


def test_a_task_behind_a_limit_names_the_limit_and_how_long_it_waits(clock):
    define_task("write_ledger", concurrentExecLimit=1)
    define_workflow("order", simple("write_ledger"))
    start_run("order")
    claim_next("write_ledger")
    run = start_run("order")
    clock.advance(seconds=600)

    assert words_of(clock, run) == ("write_ledger", "limit 1 of 1", 600)


def test_a_task_behind_a_rate_limit_names_the_rate(clock):
    define_task("ship", rateLimitPerFrequency=1, rateLimitFrequencyInSeconds=60)
    define_workflow("order", simple("ship"))
    start_run("order")
    claim_next("ship")
    run = start_run("order")

    assert words_of(clock, run) == ("ship", "rate limit 1 in 60 s", 0)


def test_a_queued_task_says_whether_workers_poll(clock):
    start_run_of(simple("ship"))
    assert words_of(clock) == ("ship", "no workers", 0)

    claim_next("ship")
    assert words_of(clock, start_run("order")) == ("ship", "queued", 0)


def test_a_task_of_a_paused_queue_says_so(clock):
    start_run_of(simple("ship"))
    queue_commands.pause_queue("ship", "ann", "", NEVER)

    assert words_of(clock)[:2] == ("ship", "queue paused")


def test_a_task_with_a_worker_names_the_worker(clock):
    start_run_of(simple("ship"))
    claim_next("ship", "w7")
    clock.advance(seconds=5)

    assert words_of(clock) == ("ship", "on w7", 5)


def test_a_failed_task_names_its_next_attempt(clock):
    define_task("ship", retryCount=2, retryDelaySeconds=30)
    define_workflow("order", simple("ship"))
    start_run("order")
    claim_and_report("ship", "FAILED")

    assert words_of(clock) == ("ship", "attempt 2 in 30.0 s", None)


def test_a_wait_names_the_time_that_is_left(clock):
    start_run_of(wait("hold", duration="90 s"))

    assert words_of(clock) == ("hold", "until 12:01, 1 min 30 s left", None)


def test_a_human_task_says_so(clock):
    start_run_of(human("approve"))
    clock.advance(seconds=60)

    assert words_of(clock) == ("approve", "human task, for anyone", 60)


def test_a_fork_is_explained_by_a_queued_branch(clock):
    branches = [[human("slow")], [simple("ship")]]
    start_run_of(step_of("FORK_JOIN", "fork", forkTasks=branches), join("join", ["slow", "ship"]))

    assert words_of(clock)[0] == "ship"


def test_a_task_whose_message_was_not_delivered_says_so(clock):
    run = start_run_of(human("approve"))
    Message.objects.create(to=run.pk, subject="resume", sent_at=clock.now(), due_at=NEVER)

    assert words_of(clock, run)[1] == "message not delivered"


def test_an_ended_run_has_no_current_step(clock):
    run = start_run_of(simple("ship"))
    control.terminate_run(run.pk, "ann")

    assert words_of(clock) is None


def test_the_steps_of_many_runs_take_few_queries(clock, django_assert_max_num_queries):
    define_task("ship", concurrentExecLimit=1)
    define_task("pack", concurrentExecLimit=1, rateLimitPerFrequency=1, rateLimitFrequencyInSeconds=60)
    define_workflow("order", simple("ship"))
    define_workflow("parcel", simple("pack"))
    for _ in range(15):
        start_run("order"), start_run("parcel")
    claim_next("ship"), claim_next("pack")

    runs = list(Run.objects.all())

    with django_assert_max_num_queries(4):
        assert len(current_steps(runs, clock.now())) == 30
