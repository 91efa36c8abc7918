"""Task outputs that are cached and reused (execution §10.1)."""

import pytest

from conductor_app.core.decide import Report
from conductor_app.processes import sweeps
from conductor_app.runs.commands import control
from conductor_app.runs.models import CachedResult
from conductor_app.tasks.commands import reports as task_commands
from tests.builders import dynamic_fork, policy, step, switch
from tests.runs.report_contexts import row_violations
from tests.scenario import ACTOR, Scenario, run_commit_hooks


def rates(**config):
    """Return a task that fetches exchange rates."""
    cache = {"key": "${from}-${pair.to}", "ttlInSecond": 60, **config}
    inputs = {"from": "EUR", "pair": {"to": "${workflow.input.to}"}}
    return step("rate", inputs=inputs, policy=policy(retries=1)) | {"cacheConfig": cache}


def ask(clock, to: str = "USD", **config) -> Scenario:
    return Scenario(clock, rates(**config), step("after", inputs={"n": "${rate.output.n}"}), input={"to": to})


def test_a_cached_result_completes_the_task_without_a_queue(clock):
    ask(clock).worker("rate").completes(n=7)

    scenario = ask(clock)

    assert (scenario.queue("rate"), scenario.statuses) == ([], {"rate": "COMPLETED", "after": "SCHEDULED"})
    assert (scenario.task("rate").output, scenario.task("after").input) == ({"n": 7}, {"n": 7})
    assert row_violations(scenario.id) == []


def test_another_key_is_another_result(clock):
    ask(clock).worker("rate").completes(n=7)

    scenario = ask(clock, to="CHF")

    assert scenario.is_waiting_for("rate")
    scenario.worker("rate").completes(n=1)
    assert ask(clock, to="CHF").task("after").input == {"n": 1}


def test_a_cached_result_is_used_for_the_ttl_of_its_step(clock):
    ask(clock).worker("rate").completes(n=7)

    clock.advance(seconds=59)
    assert ask(clock).is_waiting_for("after")
    clock.advance(seconds=1)

    scenario = ask(clock)
    assert scenario.is_waiting_for("rate")
    scenario.worker("rate").completes(n=8)
    assert ask(clock).task("after").input == {"n": 8}
    assert CachedResult.objects.count() == 1


@pytest.mark.parametrize("outcome", ["FAILED", "FAILED_FOR_GOOD", "CANCELED"])
def test_only_completed_results_are_cached(clock, outcome):
    first = ask(clock)
    first.worker("rate").polls()
    with run_commit_hooks():
        task_commands.report_task(first.id, first.task("rate").id, Report(outcome, {"n": 1}), ACTOR)

    assert ask(clock).is_waiting_for("rate")


@pytest.mark.parametrize(
    "config", [{"ttlInSecond": 0}, {"key": ""}, {"key": "${none}"}, {"key": None}, {"ttlInSecond": -5}], ids=str
)
def test_nothing_is_cached_without_a_key_or_a_ttl(clock, config):
    ask(clock, **config).worker("rate").completes(n=7)

    assert ask(clock, **config).is_waiting_for("rate")
    assert CachedResult.objects.count() == 0


def test_tasks_of_a_dynamic_fork_use_cached_results(clock):
    branches = [rates() | {"taskReferenceName": f"r{number}"} for number in (1, 2)]
    ask(clock).worker("rate").completes(n=7)

    fork = dynamic_fork(inputs={"tasks": "${workflow.input.branches}", "inputs": {}})
    for branch in branches:
        branch["inputParameters"] = {"from": "EUR", "pair": {"to": "USD"}}
    scenario = Scenario(clock, fork, step("after"), input={"branches": branches})

    assert scenario.is_waiting_for("after")


def test_an_externally_stored_result_is_reused(clock, settings):
    settings.CONDUCTOR_TASK_PAYLOAD_SOFT_BYTES = 1000
    ask(clock).worker("rate").completes(n=7, text="x" * 3000)

    scenario = ask(clock)

    assert (scenario.task("after").input, scenario.task("rate").output_path != "") == ({"n": 7}, True)


def test_cached_results_are_removed_with_their_run_and_expired_ones_are_swept(clock):
    first = ask(clock)
    first.worker("rate").completes(n=7)
    first.terminate()
    with run_commit_hooks():
        control.remove_run(first.id, ACTOR)

    assert ask(clock).is_waiting_for("rate")
    clock.advance(seconds=60)
    sweeps.prune_finished(10)
    assert CachedResult.objects.count() == 0


def test_a_rerun_uses_cached_results_like_a_first_run(clock):
    scenario = Scenario(clock, rates(), switch("way", {"x": [step("b")]}, inputs={"case": "x"}), input={"to": "USD"})
    scenario.worker("rate").completes(n=7)
    scenario.worker("b").completes()

    scenario.rerun("rate")

    assert (scenario.is_waiting_for("b"), scenario.task("rate").output) == (True, {"n": 7})


def test_runs_that_mask_other_names_share_no_results(clock):
    """A cached result would otherwise expose values in clear text that the other run encrypts."""
    fields = {"input": {"to": "USD"}}
    Scenario(clock, rates(), name="masks", maskedFields=["n"], **fields).worker("rate").completes(n=7)

    assert Scenario(clock, rates(), name="shows", **fields).is_waiting_for("rate")
    assert Scenario(clock, rates(), name="masks too", maskedFields=["n"], **fields).status == "COMPLETED"
