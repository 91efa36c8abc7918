"""TRY_CATCH: handlers of failures in its body."""

import pytest

from conductor_app.core.commands import Rerun, jump_to_step, skip_step, upgrade_run
from conductor_app.core.definition import Key
from conductor_app.core.errors import Conflict
from tests.builders import catch, fork, loop, plan, policy, step, sub_workflow, terminate, try_
from tests.core.simulated_run import RunInMemory


def test_a_successful_body_completes_the_step_with_its_outputs():
    run = RunInMemory(plan(try_("t", step("a"), step("b"), default=[step("c")]), step("after")))

    run.completes("a__1", "b__1", n=1)

    assert run.waiting == ["after"]
    assert run.task("t").attempt.output == {"try": {"a": {"n": 1}, "b": {"n": 1}}}


def test_a_failure_leads_to_the_handler_and_then_to_the_next_step():
    run = RunInMemory(plan(try_("t", step("a"), step("b"), default=[step("c")]), step("after")))

    run.fails("a__1", "no funds")
    assert run.waiting == ["c__2"]
    run.completes("c__2", "after")

    assert run.status == "COMPLETED"
    assert run.statuses["t"] == "COMPLETED"


def test_a_handler_can_read_the_failure():
    seen = {"seen": "${t.output.error}"}
    run = RunInMemory(plan(try_("t", step("a", "pay", policy=policy(retries=1)), default=[step("c", inputs=seen)])))

    run.fails("a__1").fails("a__1", "no funds")

    error = run.task("c__2").attempt.input["seen"]
    assert {name: error[name] for name in ("taskRef", "taskType", "status", "reason", "attempt")} == {
        "taskRef": "a",
        "taskType": "pay",
        "status": "FAILED",
        "reason": "no funds",
        "attempt": 2,
    }


CASES = [
    catch(step("late"), status="TIMED_OUT"),
    catch(step("funds"), reason="no (funds|money)", taskRef=["x", "a"]),
    catch(step("ship"), taskType="shipping"),
    catch(step("hard"), status=["FAILED_WITH_TERMINAL_ERROR"]),
    catch(taskRef="quiet"),
]


@pytest.mark.parametrize(
    ("ref", "outcome", "reason", "reached"),
    [
        ("a", "TIMED_OUT", "", "late__2"),
        ("a", "FAILED", "there is no money at all", "funds__2"),
        ("b", "FAILED", "there is no money at all", "ship__2"),
        ("c", "FAILED_FOR_GOOD", "", "hard__2"),
        ("quiet", "FAILED", "", "after"),
        ("c", "FAILED", "no money", "other__2"),
    ],
)
def test_the_first_case_that_matches_handles_a_failure(ref, outcome, reason, reached):
    body = [step("a"), step("b", "shipping"), step("c"), step("quiet")]
    run = RunInMemory(
        plan(try_("t", *fork(*([each] for each in body)), on=CASES, default=[step("other")]), step("after"))
    )

    if outcome == "TIMED_OUT":
        run.ends(f"{ref}__1", outcome)
    else:
        run.report(f"{ref}__1", outcome, reason=reason)

    assert run.waiting == [reached]


def test_parallel_tasks_are_canceled_when_the_body_fails():
    body = fork([step("a")], [sub_workflow("child")], [loop("l", step("x"), times=2)])
    run = RunInMemory(plan(try_("t", *body, default=[step("c")])), known={"child": plan(step("y"), name="child")})

    run.fails("a__1")

    assert run.waiting == ["c__2"]
    assert {run.statuses[ref] for ref in ("child__1", "l__1", "x__1__1", "join__1")} == {"CANCELED"}
    assert [sent.subject for sent in run.sent_messages] == ["terminate"]


def test_a_failure_without_a_matching_handler_fails_the_run():
    run = RunInMemory(plan(try_("t", step("a"), on=[catch(step("c"), status="CANCELED")])))

    run.ends("a__1", "TIMED_OUT")

    assert (run.status, run.statuses["t"]) == ("TIMED_OUT", "TIMED_OUT")


@pytest.mark.parametrize("outcome", ["COMPLETED", "FAILED"])
def test_the_finally_body_always_runs(outcome):
    run = RunInMemory(plan(try_("t", step("a"), last=[step("z")]), step("after")))

    run.report("a__1", outcome, reason="no funds")
    assert (run.waiting, run.status) == (["z__3"], "RUNNING")
    run.completes("z__3")

    if outcome == "COMPLETED":
        assert run.waiting == ["after"]
    else:
        assert (run.status, "no funds" in run.snapshot.reason) == ("FAILED", True)


def test_the_finally_body_runs_after_a_failing_handler():
    run = RunInMemory(plan(try_("t", step("a"), default=[step("c")], last=[step("z")])))

    run.fails("a__1").fails("c__2", "worse")
    assert run.waiting == ["z__3"]

    assert (run.completes("z__3").status, "worse" in run.snapshot.reason) == ("FAILED", True)


def test_a_failure_of_the_finally_body_fails_the_step():
    run = RunInMemory(plan(try_("t", step("a"), default=[step("c")], last=[step("z")])))

    run.completes("a__1").fails("z__3", "at last")

    assert (run.status, "at last" in run.snapshot.reason) == ("FAILED", True)


def test_an_outer_try_handles_a_failure_that_the_inner_does_not():
    inner = try_("in", step("a"), on=[catch(step("c"), reason="soft")], last=[step("z")])
    run = RunInMemory(plan(try_("out", inner, default=[step("d")]), step("after")))

    run.fails("a__1__1", "hard")
    assert run.waiting == ["z__1__3"]
    run.completes("z__1__3")

    assert run.waiting == ["d__2"]
    assert run.completes("d__2", "after").status == "COMPLETED"


def test_a_failure_is_caught_in_a_loop_in_the_body_and_in_a_body_in_a_loop():
    run = RunInMemory(plan(loop("l", try_("t", loop("m", step("a"), times=2), default=[step("c")]), times=2)))

    run.completes("a__1__1__1").fails("a__1__1__2").completes("c__1__2")
    assert run.waiting == ["a__2__1__1"]

    assert run.completes("a__2__1__1", "a__2__1__2").status == "COMPLETED"


def test_a_permissive_failure_does_not_stop_the_body():
    body = fork([step("a", permissive=True)], [step("b")], on=["b"])
    run = RunInMemory(plan(try_("t", *body, default=[step("c")])))

    run.fails("a__1")
    assert run.waiting == ["b__1"]

    assert run.completes("b__1").waiting == ["c__2"]
    assert run.completes("c__2").status == "COMPLETED"


def test_a_time_limit_that_would_end_the_run_ends_the_body():
    limits = policy(retries=2, timeout_seconds=10, timeout_policy="TIME_OUT_WF")
    run = RunInMemory(plan(try_("t", step("a", policy=limits), default=[step("c")])))
    run.claim("a__1")

    run.later(10)

    assert (run.status, run.waiting) == ("RUNNING", ["c__2"])


def test_a_terminate_in_the_body_ends_the_run():
    run = RunInMemory(plan(try_("t", terminate("end", "FAILED", "enough"), default=[step("c")])))

    assert (run.status, run.snapshot.reason) == ("FAILED", "enough")


def test_a_retry_repeats_the_failed_task_and_the_finally_body():
    run = RunInMemory(plan(try_("t", step("a"), last=[step("z")]), step("after")))
    run.fails("a__1").completes("z__3")
    assert run.status == "FAILED"

    run.retry()

    assert run.waiting == ["a__1"]
    assert run.completes("a__1").waiting == ["z__3"]
    assert run.completes("z__3").waiting == ["after"]


def test_a_retry_does_not_repeat_a_handled_failure():
    run = RunInMemory(plan(try_("t", step("a"), default=[step("c")]), step("after")))
    run.fails("a__1").completes("c__2").fails("after")

    assert run.retry().waiting == ["after"]


def test_a_body_without_tasks_is_refused():
    assert RunInMemory(plan(try_("t", default=[step("c")]))).status == "FAILED"


def test_a_jump_can_enter_a_body_but_not_an_unreached_handler():
    steps = plan(step("first"), try_("t", step("a"), step("b"), default=[step("c")]))
    run = RunInMemory(steps)

    with pytest.raises(Conflict, match="control has not reached"):
        run.apply(jump_to_step("c"))
    run.apply(jump_to_step("b"))

    assert run.waiting == ["b__1"]
    assert run.fails("b__1").waiting == ["c__2"]


def test_a_task_of_an_unreached_handler_can_be_skipped():
    run = RunInMemory(plan(try_("t", step("a"), default=[step("c"), step("d")]), step("after")))

    run.apply(skip_step("c"))
    run.fails("a__1")

    assert run.waiting == ["d__2"]
    assert run.completes("d__2").waiting == ["after"]


def test_a_task_of_a_handler_cannot_be_skipped_in_the_phase_of_the_body():
    run = RunInMemory(plan(try_("t", step("a"), default=[step("c")])))

    with pytest.raises(Conflict, match="in iteration 2, not 1"):
        run.apply(skip_step("c__1"))


def test_a_retry_repeats_the_first_unhandled_failure():
    run = RunInMemory(plan(try_("t", step("a"), on=[catch(reason="soft")], last=[step("z")]), step("after")))
    run.fails("a__1", "hard").fails("z__3", "at last")
    assert (run.status, "hard" in run.snapshot.reason) == ("FAILED", True)

    run.retry().completes("a__1").completes("z__3")

    assert run.waiting == ["after"]
    assert set(run.task("t").attempt.output) == {"try", "finally"}


def test_a_rerun_from_the_body_reverts_its_handler():
    run = RunInMemory(plan(try_("t", step("a"), step("b"), default=[step("c")], last=[step("z")]), step("after")))
    run.completes("a__1").fails("b__1").completes("c__2", "z__3", "after")

    run.apply(Rerun(Key("b", (1,))))

    assert run.waiting == ["b__1"]
    assert set(run.snapshot.tasks) == {Key("t"), Key("a", (1,)), Key("b", (1,))}
    run.completes("b__1", "z__3", "after")
    assert (run.status, set(run.task("t").attempt.output)) == ("COMPLETED", {"try", "finally"})


def test_a_rerun_next_to_a_handled_failure_repeats_the_failure():
    body = fork([step("a")], [step("b")])
    run = RunInMemory(plan(try_("t", *body, default=[step("c")])))
    run.completes("b__1").fails("a__1").completes("c__2")

    run.apply(Rerun(Key("b", (1,))))

    assert run.waiting == ["b__1", "a__1"]
    assert run.completes("a__1", "b__1").status == "COMPLETED"


def test_a_rerun_from_a_handler_still_reads_the_failure():
    run = RunInMemory(plan(try_("t", step("a"), default=[step("c", inputs={"why": "${t.output.error.reason}"})])))
    run.fails("a__1", "no funds").completes("c__2")

    run.apply(Rerun(Key("c", (2,))))

    assert (run.waiting, run.task("c__2").attempt.input) == (["c__2"], {"why": "no funds"})
    assert run.completes("c__2").task("t").attempt.output["caughtBy"] == "catch default"


def test_a_rerun_of_the_finally_body_ends_with_the_same_result():
    run = RunInMemory(plan(try_("t", step("a"), on=[catch(reason="soft")], last=[step("z")])))
    run.fails("a__1", "hard").completes("z__3")

    run.apply(Rerun(Key("z", (3,))))
    assert run.waiting == ["z__3"]

    assert (run.completes("z__3").status, "hard" in run.snapshot.reason) == ("FAILED", True)


def test_an_upgrade_keeps_the_position_in_a_handler():
    before = try_("t", step("a"), on=[catch(step("c"), reason="x")], last=[step("z")])
    late = catch(step("d"), status="TIMED_OUT")
    after = try_("t", step("a"), on=[late, catch(step("c"), step("e"), reason="x")], last=[step("z")])
    run = RunInMemory(plan(before))
    run.fails("a__1", "x")

    run.apply(upgrade_run(plan(after, version=2)))

    assert run.waiting == ["c__2"]
    assert run.completes("c__2").waiting == ["e__2"]
    assert run.completes("e__2", "z__3").status == "COMPLETED"


def test_an_upgrade_ends_a_body_that_the_new_version_lacks():
    run = RunInMemory(plan(try_("t", step("a"), default=[step("c")]), step("after")))
    run.fails("a__1")

    run.apply(upgrade_run(plan(try_("t", step("a"), last=[step("z")]), step("after"), version=2)))

    assert run.waiting == ["z__3"]
    assert run.completes("z__3").waiting == ["after"]


def test_a_step_in_another_body_cannot_be_upgraded():
    run = RunInMemory(plan(try_("t", step("a"), step("b"), last=[step("z")])))
    run.completes("a__1")

    with pytest.raises(Conflict, match="another part of t"):
        run.apply(upgrade_run(plan(try_("t", step("a"), last=[step("b"), step("z")]), version=2)))
