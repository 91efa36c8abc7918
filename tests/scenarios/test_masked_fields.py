"""Masked fields: encrypted in rows, `***` in views, and in plain text for workers and expressions."""

import pytest
from django.db import connection

from conductor_app.core.effects import PublishEvent
from conductor_app.core.masking import MARK, REDACTED
from conductor_app.payloads import store as payload_store
from tests.builders import definition, each, fork, loop, plan, set_variable, step, sub_workflow, switch
from tests.core.simulated_run import RunInMemory
from tests.runs.report_contexts import row_violations
from tests.scenario import Scenario

NUMBER = "4711-0815"
CARD = {"card": {"number": NUMBER, "holder": "Ada"}}
MASKED = {"maskedFields": ["number", "token"]}


@pytest.fixture
def tables(db):
    """Return the contents of the tables of runs, attempts and messages as text."""

    def read() -> str:
        with connection.cursor() as cursor:
            found = []
            for table in ("run", "attempt", "task", "message", "historyentry"):
                cursor.execute(f"SELECT * FROM conductor_{table}")
                found += cursor.fetchall()
        return repr(found)

    return read


def test_masked_values_are_sealed_in_every_row(clock, tables):
    inputs = {"number": "${workflow.input.card.number}", "holder": "${workflow.input.card.holder}"}
    remembered = set_variable("v", token="${workflow.input.card.number}")
    scenario = Scenario(clock, step("pay", inputs=inputs), remembered, step("after"), input=CARD, **MASKED)

    scenario.worker("pay").completes(token=NUMBER, deep=[{"number": NUMBER}], sum=3)
    scenario.worker("after").completes(number=NUMBER)

    assert (scenario.status, NUMBER in tables(), "Ada" in tables()) == ("COMPLETED", False, True)
    assert scenario.row.input == {"card": {"number": REDACTED, "holder": "Ada"}}
    assert scenario.task("pay").input == {"number": REDACTED, "holder": "Ada"}
    assert scenario.task("pay").output == {"token": REDACTED, "deep": [{"number": REDACTED}], "sum": 3}
    assert (scenario.output, scenario.row.variables) == ({"number": REDACTED}, {"token": REDACTED})


def test_decisions_use_the_decrypted_values(clock):
    ways = switch("way", {NUMBER: [step("known")]}, [step("unknown")], inputs={"number": "${pay.output.number}"})
    scenario = Scenario(clock, step("pay"), ways, **MASKED)

    scenario.worker("pay").completes(number=NUMBER)

    assert scenario.is_waiting_for("known")


def test_items_iterations_and_branches_receive_decrypted_values(clock):
    a = step("a", inputs={"plain": "${each.output.item.number}"})
    items = each("each", a, items="${workflow.input.items}")
    turns = loop("l", step("c"), times=1)
    forked = fork([step("x")], [step("y")], join="j")
    last = step("last", inputs={"x": "${j.output.x.number}", "all": "${each.output.results}"})
    scenario = Scenario(clock, items, turns, forked, last, input={"items": [{"number": 1}, {"number": 2}]}, **MASKED)

    for number in (1, 2):
        assert scenario.task(f"a__{number}__1").input == {"plain": number}
        scenario.worker("a").completes(number=NUMBER)
    for name in ("c", "x", "y"):
        scenario.worker(name).completes(number=NUMBER)

    assert scenario.task("last").input["x"] == NUMBER
    assert scenario.task("last").input["all"][0] == {"a": {"number": REDACTED}}
    assert row_violations(scenario.id) == []


def test_a_child_returns_its_masked_result_to_its_parent(clock, tables):
    child = definition(step("x", "pay"), name="child", **MASKED)
    scenario = Scenario(
        clock, sub_workflow("s"), step("after", inputs={"n": "${s.output.number}"}), others=[child], **MASKED
    )

    scenario.worker("pay").completes(number=NUMBER)

    assert scenario.task("s").output["number"] == REDACTED
    assert scenario.task("after").input == {"n": NUMBER}


def test_externally_stored_payloads_are_encrypted(clock, settings):
    settings.CONDUCTOR_TASK_PAYLOAD_SOFT_BYTES = 1000
    seen = {"n": "${pay.output.number}"}
    scenario = Scenario(clock, step("pay"), step("after", inputs=seen), **MASKED)

    scenario.worker("pay").completes(number=NUMBER, text="x" * 3000)

    kept = payload_store.fetch_payload(scenario.task("pay").output_path).decode()
    assert (NUMBER in kept, MARK in kept) == (False, True)
    assert scenario.task("after").input == {"n": NUMBER}


def test_values_that_no_key_decrypts_stay_hidden(clock, settings):
    scenario = Scenario(clock, step("pay"), step("after", inputs={"n": "${pay.output.number}"}), step("z"), **MASKED)
    scenario.worker("pay").completes(number=NUMBER)
    settings.SECRET_KEY = "another key, of which nobody knew when the value was sealed"

    scenario.terminate()
    scenario.rerun("after")

    assert scenario.task("after").input == {"n": REDACTED}


def test_listeners_do_not_receive_masked_values():
    life = RunInMemory(plan(step("pay"), workflowStatusListenerEnabled=True, **MASKED), CARD)
    life.completes("pay", number=NUMBER)

    payloads = [effect.payload for effect in life.effects if isinstance(effect, PublishEvent)]

    assert {payload["input"]["card"]["number"] for payload in payloads} == {REDACTED}
    assert payloads[-1]["output"] == {"number": REDACTED}


@pytest.mark.parametrize("masked", [[], None])
def test_without_masked_fields_every_value_is_visible(clock, masked):
    scenario = Scenario(clock, step("pay"), input=CARD, maskedFields=masked)

    assert scenario.row.input == CARD
