"""Fairness keys in definitions, start requests and schedules, and on the pages."""

import pytest

from conductor_app.processes import sweeps
from conductor_app.runs.models import Attempt, Run
from tests.builders import definition, simple, step
from tests.page_text import page_text
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db(transaction=True)
KEYS = {"fairnessKey": "${workflow.input.tenant}", "fairnessWeight": 2}


def test_a_start_request_may_carry_a_key_and_a_weight(api):
    api.define(simple("pack"), **KEYS)

    run_id = api.start(input={"tenant": "a"})
    other = api.start(input={"tenant": "a"}, fairnessKey="gold", fairnessWeight="3.5")

    shares = dict(Attempt.objects.values_list("run_id", "fairness_key"))
    assert shares == {run_id: "a", other: "gold"}
    assert [api.workflow(id)["fairnessKey"] for id in (run_id, other)] == ["a", "gold"]
    assert Run.objects.get(pk=other).fairness == {"key": "gold", "weight": 3.5}
    assert [task["workflowInstanceId"] for task in api.poll("pack", count=2)] == [run_id, other]


def test_a_report_that_asks_for_the_next_task_gets_the_one_whose_turn_it_is(api, clock):
    api.define(simple("pack"), **KEYS)
    for tenant in ("a", "a", "a", "b"):
        clock.advance(seconds=0.001)
        last = api.start(input={"tenant": tenant})
    [task] = api.poll("pack")

    ids = {name: task[name] for name in ("workflowInstanceId", "taskId")}
    following = api.post("/tasks/update-v2", {**ids, "status": "COMPLETED", "workerId": "tester"}).json()

    assert following["workflowInstanceId"] == last


def test_a_schedule_starts_runs_with_its_key(api, clock):
    api.define(simple("pack"), **KEYS)
    started = {"name": "order", "input": {}, "fairnessKey": "nightly", "fairnessWeight": 0.5}
    saved = api.post(
        "/scheduler/schedules",
        {"name": "night", "cronExpression": "0 0 13 * * ?", "zoneId": "UTC", "startWorkflowRequest": started},
    )
    assert saved.status_code == 200, saved.content

    clock.advance(seconds=3600)
    sweeps.fire_schedules(10)

    attempt = Attempt.objects.get()
    assert (attempt.fairness_key, attempt.fairness_weight) == ("nightly", 0.5)


def test_a_simulated_run_has_its_key(api):
    written = {"name": "order", "tasks": [simple("pack")], "schemaVersion": 2, **KEYS}

    run = api.post("/workflow/test", {"name": "order", "workflowDef": written, "input": {"tenant": "a"}}).json()

    assert run["fairnessKey"] == "a"


def test_a_definition_keeps_its_key_and_its_weight(api):
    api.define({**simple("pack"), "fairnessKey": "eu", "fairnessWeight": "${workflow.input.weight}"}, **KEYS)

    document = api.get("/metadata/workflow/order").json()

    assert (document["fairnessKey"], document["fairnessWeight"]) == ("${workflow.input.tenant}", 2)
    assert document["tasks"][0]["fairnessWeight"] == "${workflow.input.weight}"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"fairnessWeight": 0}, "fairnessWeight must be a number from 0.001 to 1000"),
        ({"fairnessWeight": 1001}, "fairnessWeight must be a number from 0.001 to 1000"),
        ({"fairnessWeight": "many"}, "fairnessWeight must be a number"),
        ({"fairnessKey": {}}, "fairnessKey must be text"),
        ({"fairnessKey": "k" * 256}, "fairnessKey must have at most 255 characters"),
        ({"fairnessKey": "", "fairnessWeight": 2}, "fairnessWeight needs a fairnessKey"),
    ],
)
def test_an_invalid_key_or_weight_is_refused(api, fields, message):
    api.define(simple("pack"))
    given = {"fairnessKey": "a"} | fields

    started = api.post("/workflow", {"name": "order", **given})
    defined = api.post("/metadata/workflow", definition(step("pack"), name="other", **given))
    nested = api.post("/metadata/workflow", definition(step("pack", **given), name="other"))

    for reply in (started, defined, nested):
        assert reply.status_code == 400
        assert message in reply.content.decode()


def test_a_key_with_an_invalid_expression_is_refused(api):
    for fields, inner in (({"fairnessKey": "${workflow.input[}"}, {}), ({}, {"fairnessKey": "${nobody.output.x}"})):
        reply = api.post("/metadata/workflow", definition(step("pack", **inner), name="other", **fields))

        assert reply.status_code == 400
        assert "fairnessKey" in reply.content.decode()


def test_the_sentence_of_a_waiting_task_names_its_key(operator, clock):
    scenario = Scenario(clock, simple("ship"), input={"tenant": "acme"}, **KEYS)
    scenario.worker("ship").polls()
    for tenant in ("acme", "acme", "other"):
        clock.advance(seconds=1)
        last = scenario.starts("order", {"tenant": tenant})
    clock.advance(seconds=1)
    third = scenario.starts("order", {"tenant": "acme"})

    page = page_text(operator.get(f"/admin/why-waiting/{third.task('ship').pk}/"))
    assert "The task waits behind 2 tasks of the same fairness key acme." in page
    assert "Position 4" in page
    page = page_text(operator.get(f"/admin/why-waiting/{last.task('ship').pk}/"))
    assert "The task is the next one of fairness key other." in page
    run = page_text(operator.get(f"/admin/conductor/run/{third.id}/change/"))
    assert "behind 2 tasks of fairness key acme" in run


def test_the_page_of_a_queue_lists_its_keys(operator, clock):
    scenario = Scenario(clock, simple("ship"), input={"tenant": "acme"}, **KEYS)
    page = "/admin/queue/?name=ship"
    for tenant in ("acme", "<b>", "acme"):
        clock.advance(seconds=1)
        scenario.starts("order", {"tenant": tenant})

    shown = page_text(operator.get(page))

    assert "Fairness keys" in shown
    assert "acme 0 2 3 50 %" in shown and "<b> 0 2 1 50 %" in shown


def test_the_page_of_a_queue_without_keys_does_not_mention_them(operator, clock):
    Scenario(clock, simple("ship"))

    assert "Fairness" not in page_text(operator.get("/admin/queue/?name=ship"))
