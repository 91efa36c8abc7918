"""Large payloads: they are stored outside their rows, and readers see no difference."""

from pathlib import Path

import pytest
from django.core.files.storage import storages

from conductor_app.core import errors
from conductor_app.core.decide import Report
from conductor_app.payloads import commands as payload_storage
from conductor_app.payloads import store as payload_store
from conductor_app.payloads.models import PayloadReference, StoredPayload
from conductor_app.processes import sweeps
from conductor_app.runs.commands import control
from conductor_app.tasks.commands import reports as task_commands
from tests.builders import definition, fork, inline, policy, step, sub_workflow, wait
from tests.scenario import ACTOR, Scenario

MUCH = "x" * 3000
DAY = 86_400


@pytest.fixture(autouse=True)
def _small(settings):
    settings.CONDUCTOR_TASK_PAYLOAD_SOFT_BYTES = 1000
    settings.CONDUCTOR_WORKFLOW_PAYLOAD_SOFT_BYTES = 2000


def stored() -> int:
    return StoredPayload.objects.count()


def test_small_payloads_are_stored_in_their_rows(clock):
    scenario = Scenario(clock, step("a"), input={"n": 1})
    scenario.worker("a").completes(n=2)

    assert (scenario.row.input, scenario.task("a").output, stored()) == ({"n": 1}, {"n": 2}, 0)


def test_a_large_output_is_read_where_an_expression_names_it(clock):
    scenario = Scenario(clock, step("a"), step("b", inputs={"last": "${a.output.all.last}", "n": "${a.output.n}"}))

    scenario.worker("a").completes(all={"text": MUCH, "last": "z"}, n=1)

    a = scenario.task("a")
    assert (a.output, a.output_size > 3000, a.output_path != "") == ({}, True, True)
    assert payload_storage.load_payload(a.output_path)["n"] == 1
    assert scenario.task("b").input == {"last": "z", "n": 1}


def test_a_worker_receives_a_large_input_completely(clock):
    scenario = Scenario(clock, step("a"), step("b", inputs={"all": "${a.output}"}))
    scenario.worker("a").completes(text=MUCH)

    scenario.worker("b").polls()

    assert scenario.task("b").input == {}
    assert scenario.worker("b").held.input == {"all": {"text": MUCH}}


def test_equal_payloads_are_stored_once(clock):
    scenario = Scenario(
        clock, step("a"), step("b", name="b"), input={"text": MUCH}, outputParameters={"all": "${b.output}"}
    )
    before = stored()
    scenario.worker("a").completes(text=MUCH * 2)
    scenario.worker("b").completes()

    assert (before, stored()) == (1, 2)


def test_a_large_input_of_a_run_is_read_where_it_is_needed(clock):
    steps = [inline("count", "$.text.length", inputs={"text": "${workflow.input.text}"})]
    scenario = Scenario(clock, *steps, input={"text": MUCH}, outputParameters={"n": "${count.output.result}"})

    assert (scenario.row.input, scenario.row.input_path != "") == ({}, True)
    assert (scenario.status, scenario.output) == ("COMPLETED", {"n": 3000})


def test_a_large_output_of_a_run_is_stored_externally_and_reaches_its_parent(clock):
    child = definition(step("c"), name="child")
    scenario = Scenario(clock, sub_workflow("inner"), step("b", inputs={"n": "${inner.output.n}"}), others=[child])

    scenario.worker("c").completes(text=MUCH, n=7)

    assert scenario.child("inner").row.output_path
    assert scenario.task("b").input == {"n": 7}


def test_branches_with_large_outputs_reach_their_join(clock):
    scenario = Scenario(clock, *fork([step("a")], [step("b")]), outputParameters={"n": "${join.output.a.n}"})

    scenario.worker("a").completes(text=MUCH, n=1)
    scenario.worker("b").completes(text=MUCH, n=2)

    assert (scenario.status, scenario.output) == ("COMPLETED", {"n": 1})
    assert payload_storage.load_payload(scenario.task("join").output_path)["b"]["n"] == 2


def test_a_change_of_a_large_output_applies_to_the_complete_document(clock):
    scenario = Scenario(clock, wait("approve"))
    scenario.reports("approve", "IN_PROGRESS", text=MUCH, n=1)

    task_commands.report_task(
        scenario.id, scenario.task("approve").id, Report("COMPLETED", {"n": 2}, merges=True), ACTOR
    )

    assert payload_storage.load_payload(scenario.task("approve").output_path) == {"text": MUCH, "n": 2}


def test_a_retried_task_receives_its_large_input_again(clock):
    again = step("a", inputs={"text": "${workflow.input.text}"}, policy=policy(retries=1))
    scenario = Scenario(clock, again, input={"text": MUCH})

    scenario.worker("a").fails()
    scenario.worker("a").polls()

    assert scenario.worker("a").held.input == {"text": MUCH}


def test_without_external_storage_every_payload_stays_in_its_row(clock, settings):
    settings.CONDUCTOR_PAYLOAD_STORAGE = ""
    scenario = Scenario(clock, step("a"), input={"text": MUCH})

    assert (scenario.row.input, scenario.row.input_path, stored()) == ({"text": MUCH}, "", 0)


def test_payloads_are_deleted_with_the_last_run_that_references_them(clock):
    scenario = Scenario(clock, step("a"), input={"text": MUCH})
    path = scenario.row.input_path
    second = scenario.starts("order", input_path=path)
    payloads_of_both = StoredPayload.objects.get().expires_at, second.row.input_path
    assert payloads_of_both == (None, path)

    control.remove_run(scenario.id, ACTOR, archive=False)
    sweeps.prune_finished(100)
    assert payload_storage.load_payload(path) == {"text": MUCH}

    control.remove_run(second.id, ACTOR, archive=False)
    sweeps.prune_finished(100)
    assert (stored(), PayloadReference.objects.count()) == (0, 0)
    with pytest.raises(errors.StorageUnavailable):
        payload_store.fetch_payload(path)


def test_an_unused_upload_is_deleted_after_a_day(clock):
    payload_storage.store_payload("task/output", '{"n":1}')

    clock.advance(seconds=DAY - 1)
    sweeps.prune_finished(100)
    assert stored() == 1

    clock.advance(seconds=2)
    sweeps.prune_finished(100)
    assert stored() == 0


def test_a_task_whose_input_is_missing_fails_with_that_reason(clock):
    scenario = Scenario(clock, step("a"), step("b", inputs={"all": "${a.output}"}, policy=policy(retries=3)))
    scenario.worker("a").completes(text=MUCH)
    path = scenario.task("b").input_path
    payload_store.delete_payload(path)

    assert scenario.worker("b").polls() == []

    assert scenario.status == "FAILED"
    assert scenario.task("b").reason == f"Its input cannot be read: The payload {path} is missing in the storage."


def test_a_task_waits_while_the_storage_of_its_input_is_away(clock, settings, tmp_path):
    scenario = Scenario(clock, step("a"), step("b", inputs={"all": "${a.output}"}))
    scenario.worker("a").completes(text=MUCH)
    folder = Path(storages[settings.CONDUCTOR_PAYLOAD_STORAGE].location, "engine")
    folder.rename(tmp_path / "away")
    assert scenario.worker("b").polls() == []
    (tmp_path / "away").rename(folder)

    assert scenario.worker("b").polls() == []
    assert scenario.later(seconds=30).worker("b").polls() == ["b"]


@pytest.mark.parametrize("asked", [{"outputParameters": {"all": "${a.output}"}}, {}], ids=["at the end, too", "once"])
def test_a_run_with_a_missing_payload_fails_with_that_reason_and_preserves_the_report(clock, asked):
    scenario = Scenario(clock, step("a"), step("b"), step("c", inputs={"all": "${a.output}"}), **asked)
    scenario.worker("a").completes(text=MUCH)
    path = scenario.task("a").output_path
    payload_store.delete_payload(path)

    scenario.worker("b").completes(n=1)

    assert (scenario.status, scenario.reason) == ("FAILED", f"The payload {path} is missing in the storage.")
    assert scenario.task("b").output == {"n": 1}
