"""TRY_CATCH: a failure in its body leads to a handler."""

import pytest

from conductor_app.core.commands import Rerun, jump_to_step, skip_step, upgrade_run
from conductor_app.core.definition import Key
from conductor_app.core.errors import Conflict
from tests.builders import catch, fork, loop, plan, policy, step, sub_workflow, terminate, try_
from tests.core.simulated_run import RunInMemory


def test_a_body_that_does_well_ends_the_step_with_its_outputs():
    life = RunInMemory(plan(try_("t", step("a"), step("b"), default=[step("c")]), step("after")))

    life.completes("a__1", "b__1", n=1)

    assert life.waiting == ["after"]
    assert life.task("t").attempt.output == {"try": {"a": {"n": 1}, "b": {"n": 1}}}


def test_a_failure_leads_to_the_handler_and_on():
    life = RunInMemory(plan(try_("t", step("a"), step("b"), default=[step("c")]), step("after")))

    life.fails("a__1", "no funds")
    assert life.waiting == ["c__2"]
    life.completes("c__2", "after")

    assert life.status == "COMPLETED"
    assert life.statuses["t"] == "COMPLETED"


def test_a_handler_can_read_the_failure():
    seen = {"seen": "${t.output.error}"}
    life = RunInMemory(plan(try_("t", step("a", "pay", policy=policy(retries=1)), default=[step("c", inputs=seen)])))

    life.fails("a__1").fails("a__1", "no funds")

    error = life.task("c__2").attempt.input["seen"]
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
    life = RunInMemory(
        plan(try_("t", *fork(*([each] for each in body)), on=CASES, default=[step("other")]), step("after"))
    )

    if outcome == "TIMED_OUT":
        life.ends(f"{ref}__1", outcome)
    else:
        life.report(f"{ref}__1", outcome, reason=reason)

    assert life.waiting == [reached]


def test_parallel_tasks_are_canceled_when_the_body_fails():
    body = fork([step("a")], [sub_workflow("child")], [loop("l", step("x"), times=2)])
    life = RunInMemory(plan(try_("t", *body, default=[step("c")])), known={"child": plan(step("y"), name="child")})

    life.fails("a__1")

    assert life.waiting == ["c__2"]
    assert {life.statuses[ref] for ref in ("child__1", "l__1", "x__1__1", "join__1")} == {"CANCELED"}
    assert [sent.subject for sent in life.sent] == ["terminate"]


def test_a_failure_without_a_matching_handler_fails_the_run():
    life = RunInMemory(plan(try_("t", step("a"), on=[catch(step("c"), status="CANCELED")])))

    life.ends("a__1", "TIMED_OUT")

    assert (life.status, life.statuses["t"]) == ("TIMED_OUT", "TIMED_OUT")


@pytest.mark.parametrize("outcome", ["COMPLETED", "FAILED"])
def test_the_finally_body_always_runs(outcome):
    life = RunInMemory(plan(try_("t", step("a"), last=[step("z")]), step("after")))

    life.report("a__1", outcome, reason="no funds")
    assert (life.waiting, life.status) == (["z__3"], "RUNNING")
    life.completes("z__3")

    if outcome == "COMPLETED":
        assert life.waiting == ["after"]
    else:
        assert (life.status, "no funds" in life.run.reason) == ("FAILED", True)


def test_the_finally_body_runs_after_a_failing_handler():
    life = RunInMemory(plan(try_("t", step("a"), default=[step("c")], last=[step("z")])))

    life.fails("a__1").fails("c__2", "worse")
    assert life.waiting == ["z__3"]

    assert (life.completes("z__3").status, "worse" in life.run.reason) == ("FAILED", True)


def test_a_failure_of_the_last_tasks_fails_the_step():
    life = RunInMemory(plan(try_("t", step("a"), default=[step("c")], last=[step("z")])))

    life.completes("a__1").fails("z__3", "at last")

    assert (life.status, "at last" in life.run.reason) == ("FAILED", True)


def test_an_outer_try_handles_a_failure_that_the_inner_does_not():
    inner = try_("in", step("a"), on=[catch(step("c"), reason="soft")], last=[step("z")])
    life = RunInMemory(plan(try_("out", inner, default=[step("d")]), step("after")))

    life.fails("a__1__1", "hard")
    assert life.waiting == ["z__1__3"]
    life.completes("z__1__3")

    assert life.waiting == ["d__2"]
    assert life.completes("d__2", "after").status == "COMPLETED"


def test_a_failure_in_a_loop_in_the_body_is_caught_and_in_a_body_in_a_loop_too():
    life = RunInMemory(plan(loop("l", try_("t", loop("m", step("a"), times=2), default=[step("c")]), times=2)))

    life.completes("a__1__1__1").fails("a__1__1__2").completes("c__1__2")
    assert life.waiting == ["a__2__1__1"]

    assert life.completes("a__2__1__1", "a__2__1__2").status == "COMPLETED"


def test_a_permissive_failure_does_not_stop_the_body():
    body = fork([step("a", permissive=True)], [step("b")], on=["b"])
    life = RunInMemory(plan(try_("t", *body, default=[step("c")])))

    life.fails("a__1")
    assert life.waiting == ["b__1"]

    assert life.completes("b__1").waiting == ["c__2"]
    assert life.completes("c__2").status == "COMPLETED"


def test_a_time_limit_that_would_end_the_run_ends_the_body():
    limits = policy(retries=2, timeout_seconds=10, timeout_policy="TIME_OUT_WF")
    life = RunInMemory(plan(try_("t", step("a", policy=limits), default=[step("c")])))
    life.claim("a__1")

    life.later(10)

    assert (life.status, life.waiting) == ("RUNNING", ["c__2"])


def test_a_terminate_in_the_body_ends_the_run():
    life = RunInMemory(plan(try_("t", terminate("end", "FAILED", "enough"), default=[step("c")])))

    assert (life.status, life.run.reason) == ("FAILED", "enough")


def test_a_retry_repeats_the_failed_task_and_the_finally_body():
    life = RunInMemory(plan(try_("t", step("a"), last=[step("z")]), step("after")))
    life.fails("a__1").completes("z__3")
    assert life.status == "FAILED"

    life.retry()

    assert life.waiting == ["a__1"]
    assert life.completes("a__1").waiting == ["z__3"]
    assert life.completes("z__3").waiting == ["after"]


def test_a_retry_does_not_repeat_a_handled_failure():
    life = RunInMemory(plan(try_("t", step("a"), default=[step("c")]), step("after")))
    life.fails("a__1").completes("c__2").fails("after")

    assert life.retry().waiting == ["after"]


def test_a_body_without_tasks_is_refused():
    assert RunInMemory(plan(try_("t", default=[step("c")]))).status == "FAILED"


def test_a_jump_can_enter_a_body_but_not_an_unreached_handler():
    steps = plan(step("first"), try_("t", step("a"), step("b"), default=[step("c")]))
    life = RunInMemory(steps)

    with pytest.raises(Conflict, match="control has not reached"):
        life.do(jump_to_step("c"))
    life.do(jump_to_step("b"))

    assert life.waiting == ["b__1"]
    assert life.fails("b__1").waiting == ["c__2"]


def test_a_task_of_an_unreached_handler_can_be_skipped():
    life = RunInMemory(plan(try_("t", step("a"), default=[step("c"), step("d")]), step("after")))

    life.do(skip_step("c"))
    life.fails("a__1")

    assert life.waiting == ["d__2"]
    assert life.completes("d__2").waiting == ["after"]


def test_a_task_of_a_handler_cannot_be_skipped_in_the_phase_of_the_body():
    life = RunInMemory(plan(try_("t", step("a"), default=[step("c")])))

    with pytest.raises(Conflict, match="in iteration 2, not 1"):
        life.do(skip_step("c__1"))


def test_a_retry_repeats_the_first_unhandled_failure():
    life = RunInMemory(plan(try_("t", step("a"), on=[catch(reason="soft")], last=[step("z")]), step("after")))
    life.fails("a__1", "hard").fails("z__3", "at last")
    assert (life.status, "hard" in life.run.reason) == ("FAILED", True)

    life.retry().completes("a__1").completes("z__3")

    assert life.waiting == ["after"]
    assert set(life.task("t").attempt.output) == {"try", "finally"}


def test_a_rerun_from_the_body_reverts_its_handler():
    life = RunInMemory(plan(try_("t", step("a"), step("b"), default=[step("c")], last=[step("z")]), step("after")))
    life.completes("a__1").fails("b__1").completes("c__2", "z__3", "after")

    life.do(Rerun(Key("b", (1,))))

    assert life.waiting == ["b__1"]
    assert set(life.run.tasks) == {Key("t"), Key("a", (1,)), Key("b", (1,))}
    life.completes("b__1", "z__3", "after")
    assert (life.status, set(life.task("t").attempt.output)) == ("COMPLETED", {"try", "finally"})


def test_a_rerun_next_to_a_handled_failure_repeats_the_failure():
    body = fork([step("a")], [step("b")])
    life = RunInMemory(plan(try_("t", *body, default=[step("c")])))
    life.completes("b__1").fails("a__1").completes("c__2")

    life.do(Rerun(Key("b", (1,))))

    assert life.waiting == ["b__1", "a__1"]
    assert life.completes("a__1", "b__1").status == "COMPLETED"


def test_a_rerun_from_a_handler_still_reads_the_failure():
    life = RunInMemory(plan(try_("t", step("a"), default=[step("c", inputs={"why": "${t.output.error.reason}"})])))
    life.fails("a__1", "no funds").completes("c__2")

    life.do(Rerun(Key("c", (2,))))

    assert (life.waiting, life.task("c__2").attempt.input) == (["c__2"], {"why": "no funds"})
    assert life.completes("c__2").task("t").attempt.output["caughtBy"] == "catch default"


def test_a_rerun_of_the_finally_body_ends_with_the_same_result():
    life = RunInMemory(plan(try_("t", step("a"), on=[catch(reason="soft")], last=[step("z")])))
    life.fails("a__1", "hard").completes("z__3")

    life.do(Rerun(Key("z", (3,))))
    assert life.waiting == ["z__3"]

    assert (life.completes("z__3").status, "hard" in life.run.reason) == ("FAILED", True)


def test_an_upgrade_keeps_the_position_in_a_handler():
    before = try_("t", step("a"), on=[catch(step("c"), reason="x")], last=[step("z")])
    late = catch(step("d"), status="TIMED_OUT")
    after = try_("t", step("a"), on=[late, catch(step("c"), step("e"), reason="x")], last=[step("z")])
    life = RunInMemory(plan(before))
    life.fails("a__1", "x")

    life.do(upgrade_run(plan(after, version=2)))

    assert life.waiting == ["c__2"]
    assert life.completes("c__2").waiting == ["e__2"]
    assert life.completes("e__2", "z__3").status == "COMPLETED"


def test_an_upgrade_ends_a_body_that_the_new_version_lacks():
    life = RunInMemory(plan(try_("t", step("a"), default=[step("c")]), step("after")))
    life.fails("a__1")

    life.do(upgrade_run(plan(try_("t", step("a"), last=[step("z")]), step("after"), version=2)))

    assert life.waiting == ["z__3"]
    assert life.completes("z__3").waiting == ["after"]


def test_a_step_in_another_body_cannot_be_upgraded():
    life = RunInMemory(plan(try_("t", step("a"), step("b"), last=[step("z")])))
    life.completes("a__1")

    with pytest.raises(Conflict, match="another part of t"):
        life.do(upgrade_run(plan(try_("t", step("a"), last=[step("b"), step("z")]), version=2)))
