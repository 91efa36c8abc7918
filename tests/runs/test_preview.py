"""A preview states the effects of an operation and changes nothing."""

import pytest

from conductor_app.core import commands
from conductor_app.core.definition import Key
from conductor_app.core.errors import Conflict, NotFound, RequestRefused
from conductor_app.definitions.models import ResolvedDefinition
from conductor_app.runs.commands import control
from conductor_app.runs.commands import repair as run_commands_repair
from conductor_app.runs.commands.plans import Preview, preview
from conductor_app.runs.models import Attempt, HistoryEntry, Message, Run, Task
from conductor_app.runs.store.rows import parse_iteration_path
from tests.builders import definition, fork, inline, step, sub_workflow
from tests.hypothesis_profile import seeds
from tests.runs.random_workers import RandomWorkers
from tests.runs.report_contexts import row_violations
from tests.scenario import ACTOR, Scenario, run_commit_hooks

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

LEAF = definition(step("x"), name="leaf")


def everything() -> list:
    """Return all rows that an operator's action can change."""
    return [
        list(model.objects.order_by("pk").values())
        for model in (Run, Task, Attempt, Message, HistoryEntry, ResolvedDefinition)
    ]


def lines(seen: Preview) -> dict[str, list]:
    """Return the history entries that the preview announces for each run."""
    return {id: [effect.to_history() for effect in run.effects] for id, run in seen.runs.items() if run.effects}


def entries_since(after: int) -> dict[str, list]:
    """Return the history entries of each run that were written since."""
    found: dict[str, list] = {}
    for entry in HistoryEntry.objects.filter(pk__gt=after).order_by("pk"):
        found.setdefault(entry.run_id, []).extend(entry.effects)
    return found


def last_entry() -> int:
    return HistoryEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def statuses(seen: Preview) -> dict[str, str]:
    return {id: run.after.status for id, run in seen.runs.items()}


def test_a_preview_does_not_change_any_row(clock):
    scenario = Scenario(clock, *fork([step("a")], [sub_workflow("s", "leaf")]), others=[LEAF])
    scenario.worker("a").fails()
    before = everything()

    seen = preview(scenario.id, commands.restart_run())

    assert everything() == before
    assert seen.revision == scenario.row.revision
    assert seen.runs[scenario.id].after.status == "RUNNING"


def test_a_preview_includes_the_runs_that_would_receive_messages(clock):
    middle = definition(sub_workflow("below", "leaf"), step("m"), name="middle")
    scenario = Scenario(clock, sub_workflow("s", "middle"), others=[LEAF, middle])
    scenario.worker("x").fails()
    leaf = scenario.child("s").child("below")

    seen = preview(leaf.id, commands.Retry())

    assert statuses(seen) == {leaf.id: "RUNNING", scenario.child("s").id: "RUNNING", scenario.id: "RUNNING"}


def test_a_preview_of_a_rerun_includes_the_new_child(clock):
    scenario = Scenario(clock, sub_workflow("s", "leaf"), others=[LEAF])
    scenario.worker("x").completes()

    seen = preview(scenario.id, commands.Rerun(Key("s")))
    begun = seen.runs[scenario.id].after.tasks[Key("s")].attempt.child_id

    assert [str(key) for key in seen.runs[begun].after.tasks] == ["x"]
    scenario.rerun("s")
    assert scenario.child("s").id == begun


def test_a_preview_evaluates_scripts(clock):
    scenario = Scenario(
        clock, inline("i", "Math.abs($.n)", inputs={"n": "${workflow.input.n}"}), step("a"), input={"n": 1}
    )
    scenario.worker("a").completes()

    seen = preview(scenario.id, commands.Rerun(Key("i"), input={"n": -8}))

    assert seen.runs[scenario.id].after.tasks[Key("i")].attempt.output == {"result": 8}


def test_a_preview_refuses_an_impossible_command(clock):
    scenario = Scenario(clock, step("a"))

    with pytest.raises(Conflict):
        preview(scenario.id, commands.Rerun())
    with pytest.raises(NotFound):
        preview("nobody", commands.Rerun())


class Deeds:
    """Something that an operator does to a run, as a command and as an act."""

    def __init__(self, chance: RandomWorkers) -> None:
        self.random, self.id = chance.random, chance.scenario.id

    def rerun(self):
        task = self.random.choice([None, *Task.objects.filter(run_id=self.id).order_by("seq")])
        key = Key(task.ref, parse_iteration_path(task.iteration_path)) if task else None
        attempt = task.attempt_id if task else ""
        return commands.Rerun(key), lambda: run_commands_repair.rerun(self.id, ACTOR, attempt_id=attempt)

    def restart(self):
        return commands.restart_run(), lambda: run_commands_repair.restart(self.id, ACTOR)

    def retry(self):
        return commands.Retry(), lambda: run_commands_repair.retry(self.id, ACTOR)

    def terminate(self):
        return commands.terminate_run("enough"), lambda: control.terminate_run(self.id, ACTOR, "enough")

    def below(self):
        """Retry or restart a child."""
        child = self.random.choice(list(Run.objects.filter(parent_id=self.id).order_by("created_at", "id")) or [None])
        self.id = child.id if child else self.id
        return self.random.choice((self.restart, self.rerun, self.retry))()


@pytest.mark.parametrize("seed", seeds(0, 12))
def test_the_previewed_effects_happen_and_the_run_ends(clock, seed):
    chance = RandomWorkers(clock, seed)
    chance.live(steps=25)
    chance.finish()
    for _ in range(3):
        deeds = Deeds(chance)
        command, act = chance.random.choice(
            (deeds.rerun, deeds.rerun, deeds.rerun, deeds.restart, deeds.retry, deeds.terminate, deeds.below)
        )()
        before, since = everything(), last_entry()
        try:
            seen = preview(deeds.id, command)
        except RequestRefused as refused:
            with pytest.raises(type(refused)), run_commit_hooks():
                act()
            continue
        assert everything() == before

        with run_commit_hooks():
            act()

        assert lines(seen) == entries_since(since)
        for id, foreseen in seen.runs.items():
            row = Run.objects.get(pk=id)
            assert (row.status, row.revision, row.next_seq) == (
                foreseen.after.status,
                foreseen.after.revision,
                foreseen.after.next_seq,
            )
            assert row_violations(id) == []
        chance.finish()
        assert chance.scenario.row.ended_at
