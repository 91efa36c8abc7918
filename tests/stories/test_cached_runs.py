"""Runs whose output is known of another with the same key (execution §10.1)."""

import pytest

from conductor_app.engine import sweeps
from conductor_app.engine.definitions import simulation
from conductor_app.engine.runs import run_commands
from conductor_app.models import CachedResult
from tests.builders import definition, policy, step, step_without_policy, sub_workflow, wait
from tests.engine.views import row_violations
from tests.story import ACTOR, Story, run_commit_hooks

CACHE = {"key": "${workflow.input.to}", "ttlInSecond": 60}


def ask(clock, to: str = "USD", note: str = "", **fields) -> Story:
    """A run that asks for an exchange rate; the note is no part of its key."""
    said = {"name": "rates", "cacheConfig": CACHE, "outputParameters": {"n": "${rate.output.n}"}} | fields
    return Story(clock, step("rate", policy=policy()), input={"to": to, "note": note}, **said)


def test_a_run_with_a_known_key_has_the_kept_output_at_once(clock):
    first = ask(clock)
    first.worker("rate").completes(n=7)

    again = ask(clock, note="other")

    assert (again.status, again.output, again.statuses) == ("COMPLETED", {"n": 7}, {})
    assert again.id != first.id
    assert again.reason == f"Output reused from run {first.id}, which has the same cache key."
    assert row_violations(again.id) == []


@pytest.mark.parametrize("key", ["${to}", "${workflow.input.to}", "${to}-${workflow.version}", "always"])
def test_a_key_names_the_input_or_what_any_expression_names(clock, key):
    ask(clock, cacheConfig={**CACHE, "key": key}).worker("rate").completes(n=7)

    assert ask(clock, cacheConfig={**CACHE, "key": key}).status == "COMPLETED"


def test_another_key_is_another_output(clock):
    ask(clock).worker("rate").completes(n=7)

    assert ask(clock, to="CHF").is_waiting_for("rate")


def test_an_output_is_used_for_as_long_as_the_definition_says_and_no_use_prolongs_that(clock):
    ask(clock).worker("rate").completes(n=7)
    clock.advance(seconds=59)
    assert ask(clock).status == "COMPLETED"
    clock.advance(seconds=1)

    assert ask(clock).is_waiting_for("rate")
    sweeps.prune_finished(10)
    assert CachedResult.objects.count() == 0


@pytest.mark.parametrize("cache", [{"ttlInSecond": 0}, {"key": ""}, {"key": "${none}"}, {"key": None}], ids=str)
def test_without_a_key_or_a_time_nothing_is_used_again(clock, cache):
    ask(clock, cacheConfig={**CACHE, **cache}).worker("rate").completes(n=7)

    assert ask(clock, cacheConfig={**CACHE, **cache}).is_waiting_for("rate")


def test_a_failure_is_not_kept(clock):
    ask(clock).worker("rate").fails()

    assert ask(clock).is_waiting_for("rate")


def test_what_has_changed_in_a_definition_is_asked_anew(clock):
    ask(clock).worker("rate").completes(n=7)

    assert ask(clock, outputParameters={"m": "${rate.output.n}"}).is_waiting_for("rate")


def test_a_run_that_is_begun_anew_does_its_work_and_its_output_is_kept(clock):
    story = ask(clock)
    story.worker("rate").completes(n=7)

    story.restart()

    assert story.is_waiting_for("rate")
    story.worker("rate").completes(n=8)
    assert ask(clock).output == {"n": 8}


def test_an_output_is_gone_with_its_run(clock):
    first = ask(clock)
    first.worker("rate").completes(n=7)
    with run_commit_hooks():
        run_commands.remove_run(first.id, ACTOR)

    assert ask(clock).is_waiting_for("rate")


def test_a_sub_workflow_has_the_kept_output_too(clock):
    child = definition(step_without_policy("rate"), name="child", cacheConfig={"key": "all", "ttlInSecond": 60})
    twice = [sub_workflow("one", "child"), sub_workflow("two", "child")]
    story = Story(clock, *twice, others=[child], tasks=[policy("rate")])
    story.worker("rate").completes(n=7)

    assert (story.status, story.child("two").statuses) == ("COMPLETED", {})
    assert story.task("two").output == {"n": 7, "subWorkflowId": story.child("two").id}


def test_an_output_that_is_kept_elsewhere_is_used_again(clock, settings):
    settings.CONDUCTOR_WORKFLOW_PAYLOAD_SOFT_BYTES = 1000
    ask(clock, outputParameters={"text": "${rate.output.text}"}).worker("rate").completes(text="x" * 3000)

    again = ask(clock, outputParameters={"text": "${rate.output.text}"})

    assert (again.status, again.row.output_path != "") == ("COMPLETED", True)


def test_a_run_that_its_limit_holds_needs_no_place_for_what_is_known(clock):
    limit = {"rateLimitConfig": {"rateLimitKey": "one", "concurrentExecLimit": 1}}
    steps = [step("rate", policy=policy()), wait("w")]
    story = Story(clock, *steps, name="rates", cacheConfig=CACHE, input={"to": "USD"}, **limit)
    story.worker("rate").completes(n=7)
    story.reports("w")
    going_on = story.starts("rates", {"to": "CHF"})

    known = story.starts("rates", {"to": "USD"})

    assert (going_on.status, known.status) == ("RUNNING", "COMPLETED")


def test_what_is_tried_out_is_no_repetition(clock):
    ask(clock).worker("rate").completes(n=7)

    request = run_commands.StartRequest("rates", input={"to": "USD"})
    document, _children = simulation.simulate_workflow(request, simulation.Written())

    assert (document["status"], len(document["tasks"])) == ("RUNNING", 1)


def test_a_task_and_a_workflow_of_one_name_and_key_share_nothing(clock):
    cache = {"cacheConfig": {"key": "same", "ttlInSecond": 60}}
    fields = {"name": "rate", "outputParameters": {"whole": "${rate.output.n}"}} | cache
    Story(clock, step("rate", policy=policy()) | cache, **fields).worker("rate").completes(n=7)

    assert Story(clock, step("rate", policy=policy()) | cache, **fields).output == {"whole": 7}
    assert CachedResult.objects.count() == 2
