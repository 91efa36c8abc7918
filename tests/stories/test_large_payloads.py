"""Payloads that are too large for rows are kept elsewhere; whoever needs them does not notice."""

from pathlib import Path

import pytest
from django.core.files.storage import storages

from conductor_app import blob_storage
from conductor_app.core.reports import Report
from conductor_app.engine import sweeps
from conductor_app.engine.payloads import payload_storage
from conductor_app.engine.runs import run_commands
from conductor_app.engine.tasks import task_commands
from conductor_app.models import PayloadReference, StoredPayload
from tests.builders import definition, fork, inline, policy, step, sub_workflow, wait
from tests.story import ACTOR, Story

MUCH = "x" * 3000
DAY = 86_400


@pytest.fixture(autouse=True)
def _small(settings):
    settings.CONDUCTOR_TASK_PAYLOAD_SOFT_BYTES = 1000
    settings.CONDUCTOR_WORKFLOW_PAYLOAD_SOFT_BYTES = 2000


def stored() -> int:
    return StoredPayload.objects.count()


def test_small_payloads_are_stored_in_their_rows(clock):
    story = Story(clock, step("a"), input={"n": 1})
    story.worker("a").completes(n=2)

    assert (story.row.input, story.task("a").output, stored()) == ({"n": 1}, {"n": 2}, 0)


def test_a_large_output_is_read_where_an_expression_names_it(clock):
    story = Story(clock, step("a"), step("b", inputs={"last": "${a.output.all.last}", "n": "${a.output.n}"}))

    story.worker("a").completes(all={"text": MUCH, "last": "z"}, n=1)

    a = story.task("a")
    assert (a.output, a.output_size > 3000, a.output_path != "") == ({}, True, True)
    assert payload_storage.load_payload(a.output_path)["n"] == 1
    assert story.task("b").input == {"last": "z", "n": 1}


def test_a_worker_receives_a_large_input_completely(clock):
    story = Story(clock, step("a"), step("b", inputs={"all": "${a.output}"}))
    story.worker("a").completes(text=MUCH)

    story.worker("b").polls()

    assert story.task("b").input == {}
    assert story.worker("b").held.input == {"all": {"text": MUCH}}


def test_equal_payloads_are_stored_once(clock):
    story = Story(clock, step("a"), step("b", name="b"), input={"text": MUCH}, outputParameters={"all": "${b.output}"})
    before = stored()
    story.worker("a").completes(text=MUCH * 2)
    story.worker("b").completes()

    assert (before, stored()) == (1, 2)


def test_a_large_input_of_a_run_is_read_where_it_is_needed(clock):
    steps = [inline("count", "$.text.length", inputs={"text": "${workflow.input.text}"})]
    story = Story(clock, *steps, input={"text": MUCH}, outputParameters={"n": "${count.output.result}"})

    assert (story.row.input, story.row.input_path != "") == ({}, True)
    assert (story.status, story.output) == ("COMPLETED", {"n": 3000})


def test_a_large_output_of_a_run_is_stored_externally_and_reaches_its_parent(clock):
    child = definition(step("c"), name="child")
    story = Story(clock, sub_workflow("inner"), step("b", inputs={"n": "${inner.output.n}"}), others=[child])

    story.worker("c").completes(text=MUCH, n=7)

    assert story.child("inner").row.output_path
    assert story.task("b").input == {"n": 7}


def test_branches_with_large_outputs_reach_their_join(clock):
    story = Story(clock, *fork([step("a")], [step("b")]), outputParameters={"n": "${join.output.a.n}"})

    story.worker("a").completes(text=MUCH, n=1)
    story.worker("b").completes(text=MUCH, n=2)

    assert (story.status, story.output) == ("COMPLETED", {"n": 1})
    assert payload_storage.load_payload(story.task("join").output_path)["b"]["n"] == 2


def test_a_change_of_a_large_output_applies_to_the_complete_document(clock):
    story = Story(clock, wait("approve"))
    story.reports("approve", "IN_PROGRESS", text=MUCH, n=1)

    task_commands.report_task(story.id, story.task("approve").id, Report("COMPLETED", {"n": 2}, merges=True), ACTOR)

    assert payload_storage.load_payload(story.task("approve").output_path) == {"text": MUCH, "n": 2}


def test_a_retried_task_receives_its_large_input_again(clock):
    again = step("a", inputs={"text": "${workflow.input.text}"}, policy=policy(retries=1))
    story = Story(clock, again, input={"text": MUCH})

    story.worker("a").fails()
    story.worker("a").polls()

    assert story.worker("a").held.input == {"text": MUCH}


def test_without_external_storage_every_payload_stays_in_its_row(clock, settings):
    settings.CONDUCTOR_PAYLOAD_STORAGE = ""
    story = Story(clock, step("a"), input={"text": MUCH})

    assert (story.row.input, story.row.input_path, stored()) == ({"text": MUCH}, "", 0)


def test_payloads_are_deleted_with_the_last_run_that_references_them(clock):
    story = Story(clock, step("a"), input={"text": MUCH})
    path = story.row.input_path
    second = story.starts("order", input_path=path)
    payloads_of_both = StoredPayload.objects.get().expires_at, second.row.input_path
    assert payloads_of_both == (None, path)

    run_commands.remove_run(story.id, ACTOR, archive=False)
    sweeps.prune_finished(100)
    assert payload_storage.load_payload(path) == {"text": MUCH}

    run_commands.remove_run(second.id, ACTOR, archive=False)
    sweeps.prune_finished(100)
    assert (stored(), PayloadReference.objects.count()) == (0, 0)
    with pytest.raises(blob_storage.StorageUnavailable):
        blob_storage.fetch_payload(path)


def test_an_unused_upload_is_deleted_after_a_day(clock):
    payload_storage.store_payload("task/output", '{"n":1}')

    clock.advance(seconds=DAY - 1)
    sweeps.prune_finished(100)
    assert stored() == 1

    clock.advance(seconds=2)
    sweeps.prune_finished(100)
    assert stored() == 0


def test_a_task_whose_input_is_missing_fails_with_that_reason(clock):
    story = Story(clock, step("a"), step("b", inputs={"all": "${a.output}"}, policy=policy(retries=3)))
    story.worker("a").completes(text=MUCH)
    path = story.task("b").input_path
    blob_storage.delete_payload(path)

    assert story.worker("b").polls() == []

    assert story.status == "FAILED"
    assert story.task("b").reason == f"Its input cannot be read: The payload {path} is missing in the storage."


def test_a_task_waits_while_the_storage_of_its_input_is_away(clock, settings, tmp_path):
    story = Story(clock, step("a"), step("b", inputs={"all": "${a.output}"}))
    story.worker("a").completes(text=MUCH)
    folder = Path(storages[settings.CONDUCTOR_PAYLOAD_STORAGE].location, "engine")
    folder.rename(tmp_path / "away")
    assert story.worker("b").polls() == []
    (tmp_path / "away").rename(folder)

    assert story.worker("b").polls() == []
    assert story.later(seconds=30).worker("b").polls() == ["b"]


@pytest.mark.parametrize("asked", [{"outputParameters": {"all": "${a.output}"}}, {}], ids=["at the end, too", "once"])
def test_a_run_with_a_missing_payload_fails_with_that_reason_and_preserves_the_report(clock, asked):
    story = Story(clock, step("a"), step("b"), step("c", inputs={"all": "${a.output}"}), **asked)
    story.worker("a").completes(text=MUCH)
    path = story.task("a").output_path
    blob_storage.delete_payload(path)

    story.worker("b").completes(n=1)

    assert (story.status, story.reason) == ("FAILED", f"The payload {path} is missing in the storage.")
    assert story.task("b").output == {"n": 1}
