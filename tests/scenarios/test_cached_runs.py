"""Run outputs that are cached and reused by runs with the same key (execution §10.1)."""

import pytest

from conductor_app.core.simulation import SimulationScript
from conductor_app.definitions.simulation import commands as simulation
from conductor_app.processes import sweeps
from conductor_app.runs.commands import control
from conductor_app.runs.commands.start import StartRequest
from conductor_app.runs.models import CachedResult
from tests.builders import definition, policy, simple, step, sub_workflow, wait
from tests.runs.report_contexts import row_violations
from tests.scenario import ACTOR, Scenario, run_commit_hooks

CACHE = {"key": "${workflow.input.to}", "ttlInSecond": 60}


def ask(clock, to: str = "USD", note: str = "", **fields) -> Scenario:
    """Start a run that fetches an exchange rate; the note is not part of its cache key."""
    said = {"name": "rates", "cacheConfig": CACHE, "outputParameters": {"n": "${rate.output.n}"}} | fields
    return Scenario(clock, step("rate", policy=policy()), input={"to": to, "note": note}, **said)


def test_a_run_with_a_cached_key_completes_at_once_with_the_cached_output(clock):
    first = ask(clock)
    first.worker("rate").completes(n=7)

    again = ask(clock, note="other")

    assert (again.status, again.output, again.statuses) == ("COMPLETED", {"n": 7}, {})
    assert again.id != first.id
    assert again.reason == f"Output reused from run {first.id}, which has the same cache key."
    assert row_violations(again.id) == []


@pytest.mark.parametrize("key", ["${to}", "${workflow.input.to}", "${to}-${workflow.version}", "always"])
def test_a_cache_key_is_built_from_the_input_or_from_expressions(clock, key):
    ask(clock, cacheConfig={**CACHE, "key": key}).worker("rate").completes(n=7)

    assert ask(clock, cacheConfig={**CACHE, "key": key}).status == "COMPLETED"


def test_another_key_is_another_output(clock):
    ask(clock).worker("rate").completes(n=7)

    assert ask(clock, to="CHF").is_waiting_for("rate")


def test_a_cached_output_expires_after_its_ttl_and_use_does_not_extend_it(clock):
    ask(clock).worker("rate").completes(n=7)
    clock.advance(seconds=59)
    assert ask(clock).status == "COMPLETED"
    clock.advance(seconds=1)

    assert ask(clock).is_waiting_for("rate")
    sweeps.prune_finished(10)
    assert CachedResult.objects.count() == 0


@pytest.mark.parametrize("cache", [{"ttlInSecond": 0}, {"key": ""}, {"key": "${none}"}, {"key": None}], ids=str)
def test_nothing_is_cached_without_a_key_or_a_ttl(clock, cache):
    ask(clock, cacheConfig={**CACHE, **cache}).worker("rate").completes(n=7)

    assert ask(clock, cacheConfig={**CACHE, **cache}).is_waiting_for("rate")


def test_a_failure_is_not_cached(clock):
    ask(clock).worker("rate").fails()

    assert ask(clock).is_waiting_for("rate")


def test_a_changed_definition_does_not_use_earlier_cached_outputs(clock):
    ask(clock).worker("rate").completes(n=7)

    assert ask(clock, outputParameters={"m": "${rate.output.n}"}).is_waiting_for("rate")


def test_a_restarted_run_executes_its_tasks_and_its_output_is_cached(clock):
    scenario = ask(clock)
    scenario.worker("rate").completes(n=7)

    scenario.restart()

    assert scenario.is_waiting_for("rate")
    scenario.worker("rate").completes(n=8)
    assert ask(clock).output == {"n": 8}


def test_a_cached_output_is_removed_with_its_run(clock):
    first = ask(clock)
    first.worker("rate").completes(n=7)
    with run_commit_hooks():
        control.remove_run(first.id, ACTOR)

    assert ask(clock).is_waiting_for("rate")


def test_a_sub_workflow_uses_the_cached_output(clock):
    child = definition(simple("rate"), name="child", cacheConfig={"key": "all", "ttlInSecond": 60})
    twice = [sub_workflow("one", "child"), sub_workflow("two", "child")]
    scenario = Scenario(clock, *twice, others=[child], tasks=[policy("rate")])
    scenario.worker("rate").completes(n=7)

    assert (scenario.status, scenario.child("two").statuses) == ("COMPLETED", {})
    assert scenario.task("two").output == {"n": 7, "subWorkflowId": scenario.child("two").id}


def test_an_externally_stored_output_is_reused(clock, settings):
    settings.CONDUCTOR_WORKFLOW_PAYLOAD_SOFT_BYTES = 1000
    ask(clock, outputParameters={"text": "${rate.output.text}"}).worker("rate").completes(text="x" * 3000)

    again = ask(clock, outputParameters={"text": "${rate.output.text}"})

    assert (again.status, again.row.output_path != "") == ("COMPLETED", True)


def test_a_rate_limited_run_with_a_cached_output_needs_no_slot(clock):
    limit = {"rateLimitConfig": {"rateLimitKey": "one", "concurrentExecLimit": 1}}
    steps = [step("rate", policy=policy()), wait("w")]
    scenario = Scenario(clock, *steps, name="rates", cacheConfig=CACHE, input={"to": "USD"}, **limit)
    scenario.worker("rate").completes(n=7)
    scenario.reports("w")
    going_on = scenario.starts("rates", {"to": "CHF"})

    known = scenario.starts("rates", {"to": "USD"})

    assert (going_on.status, known.status) == ("RUNNING", "COMPLETED")


def test_a_workflow_test_does_not_use_cached_outputs(clock):
    ask(clock).worker("rate").completes(n=7)

    request = StartRequest("rates", input={"to": "USD"})
    document, _children = simulation.simulate_workflow(request, SimulationScript())

    assert (document["status"], len(document["tasks"])) == ("RUNNING", 1)


def test_a_task_and_a_workflow_with_the_same_name_and_key_have_separate_caches(clock):
    cache = {"cacheConfig": {"key": "same", "ttlInSecond": 60}}
    fields = {"name": "rate", "outputParameters": {"whole": "${rate.output.n}"}} | cache
    Scenario(clock, step("rate", policy=policy()) | cache, **fields).worker("rate").completes(n=7)

    assert Scenario(clock, step("rate", policy=policy()) | cache, **fields).output == {"whole": 7}
    assert CachedResult.objects.count() == 2
