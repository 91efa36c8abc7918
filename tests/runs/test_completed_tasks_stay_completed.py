"""Work that a worker has completed is not dispatched again unless the plan names it, in trees of runs at any depth."""

from random import Random

import pytest

from conductor_app.core import task_impact
from conductor_app.core.decide import Report
from conductor_app.core.errors import RequestRefused
from conductor_app.runs.commands.plans import Operation, OperationPlan, apply_operation, plan_operation
from conductor_app.runs.models import Attempt, Run, Task
from conductor_app.tasks.commands import reports as task_commands
from conductor_app.tasks.commands.claims import claim_tasks
from tests.builders import Document, definition, dynamic_fork, each, fork, loop, step, sub_workflow, try_
from tests.hypothesis_profile import seeds
from tests.runs.report_contexts import row_violations
from tests.scenario import ACTOR, Scenario, run_commit_hooks

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

WORKER = "pay"
CONTAINERS = ["fork", "fork", "loop", "loop", "dynamic", "each", "try"]
DEPTH = 4
"""Levels of runs in a tree, the root among them: the last step of each level starts the next one."""
MAX_REPORTS = 25
OPERATIONS = 5
Path = tuple[str, ...]
"""Where a task stands in the tree: the references of the tasks above it, then its own."""


class Tree:
    """Definitions that name one another, and one run of the root."""

    def __init__(self, clock, seed: int) -> None:
        self.random, self.count, self.clock = Random(seed), 0, clock
        below: list[Document] = []
        for depth in range(DEPTH, 0, -1):
            steps = self.steps(2, "" if depth == DEPTH else f"level{depth + 1}")
            below.append(definition(*steps, name=f"level{depth}"))
        root = below.pop()
        self.scenario = Scenario(clock, *root["tasks"], others=below, name="level1", input=self.branches())

    def branches(self) -> Document:
        refs = [f"d{number}" for number in range(self.random.randint(1, 3))]
        tasks = [{"name": WORKER, "taskReferenceName": ref, "type": "SIMPLE"} for ref in refs]
        return {"tasks": tasks, "inputs": {ref: {} for ref in refs}}

    def ref(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def steps(self, most: int, child: str, nesting: int = 0) -> list[Document]:
        found: list[Document] = []
        for _ in range(self.random.randint(1, most)):
            found += self.one(child, nesting)
        return [*found, *([sub_workflow(self.ref("s"), child)] if child and not nesting else [])]

    def one(self, child: str, nesting: int) -> list[Document]:
        kinds = ["step", "step"] + (["child"] if child else []) + (CONTAINERS if nesting < 2 else [])
        kind = self.random.choice(kinds)
        if kind == "child":
            return [sub_workflow(self.ref("s"), child)]
        if kind == "fork":
            join = self.ref("j")
            return fork(*(self.steps(1, child, nesting + 1) for _ in range(2)), join=join)
        if kind == "loop":
            return [loop(self.ref("l"), *self.steps(2, child, nesting + 1), times=2)]
        if kind == "each":
            return [each(self.ref("e"), *self.steps(2, child, nesting + 1), items=[1, 2], parallel=2)]
        if kind == "try":
            handler = step(self.ref("c"), WORKER)
            return [try_(self.ref("y"), *self.steps(1, child, nesting + 1), default=[handler])]
        if kind == "dynamic" and nesting == 0:
            inputs = {"forkTaskInputs": [1, 2], "forkTaskName": WORKER}
            return dynamic_fork(self.ref("f"), join=self.ref("j"), inputs=inputs)
        return [step(self.ref("t"), WORKER)]

    def runs(self) -> list[Run]:
        """Return the root and the runs of all tasks in the tree, parents first."""
        found, left = [], [self.scenario.id]
        while left:
            run = Run.objects.get(pk=left.pop(0))
            found.append(run)
            newest = Task.objects.filter(run=run).values_list("attempt_id", flat=True)
            left += Attempt.objects.filter(pk__in=newest).exclude(child_id="").values_list("child_id", flat=True)
        return found

    def path_of(self, run_id: str, own: str) -> Path:
        path: Path = (own,)
        while (run := Run.objects.get(pk=run_id)).parent_id:
            path = (str(Task.objects.get(attempts=run.parent_attempt_id)), *path)
            run_id = run.parent_id
        return path

    def completed(self) -> dict[Path, tuple]:
        """Return every completed worker task in the tree with its public fields, by path."""
        found = {}
        for run in self.runs():
            for task in Task.objects.filter(run=run, status="COMPLETED", name=WORKER):
                attempt = Attempt.objects.get(pk=task.attempt_id)
                facts = (attempt.pk, attempt.run_id, attempt.output, attempt.ended_at, attempt.number)
                found[self.path_of(run.pk, str(task))] = facts
        return found

    def work(self, reports: int, fails: float) -> list[Path]:
        """Let workers claim and report on all available tasks; return the paths of the claimed tasks."""
        given = []
        for _ in range(reports):
            self.clock.advance(seconds=1)
            with run_commit_hooks():
                taken = claim_tasks(WORKER, worker=self.random.choice("vw"), wait_ms=0)
            if not taken:
                break
            [attempt] = taken
            if attempt.run_id in {run.pk for run in self.runs()}:
                # A run that was opened by itself after its failure had been handled may outlive the task above it.
                given.append(self.path_of(attempt.run_id, str(attempt.task)))
            outcome = "FAILED" if self.random.random() < fails else "COMPLETED"
            said = Report(outcome, {"at": self.clock.now()}, "by chance", worker=attempt.worker)
            with run_commit_hooks():
                assert task_commands.report_task(attempt.run_id, attempt.id, said, ACTOR)
        return given

    def operation(self) -> tuple[str, Operation]:
        """Return a random operation that an operator can apply to an ended run of the tree."""
        ended = [run for run in self.runs() if run.ended_at is not None]
        run = self.random.choice(ended)
        place = self.random.choice(list(Task.objects.filter(run=run).order_by("seq")) or [None])
        choices = [Operation("retry"), Operation("retry", resume_children=True), Operation("retry")]
        if place is not None:
            choices.append(Operation("rerun", attempt_id=place.attempt_id))
            run = self.random.choice([run, self.scenario.row]) if self.scenario.row.ended_at else run
        choices.append(Operation("rerun"))
        return run.pk, self.random.choice(choices)

    def named(self, planned: OperationPlan) -> set[Path]:
        """Return the paths of the tasks that the plan marks for rerun, deletion or cancellation."""
        touched = {task_impact.AGAIN, task_impact.DROPPED, task_impact.CANCELLED}
        found, dropped = set(), set()
        for run in planned.runs:
            if Run.objects.filter(pk=run.run_id).exists():
                places = {self.path_of(run.run_id, str(fate.key)): fate.name for fate in run.impacts}
                found |= {path for path, name in places.items() if name in touched}
                dropped |= {path for path, name in places.items() if name == task_impact.DROPPED}
        # With the task that stood for a child goes all that the child has done.
        return found | {path for path in self.completed() if any(path[: len(top)] == top for top in dropped)}


@pytest.mark.parametrize("seed", seeds(0, 20))
def test_only_the_tasks_of_the_plan_run_again(clock, seed):
    tree = Tree(clock, seed)
    tree.work(tree.random.randint(1, MAX_REPORTS), fails=0.1)
    if tree.scenario.row.ended_at is None:
        tree.scenario.terminate()
    for _ in range(OPERATIONS):
        run_id, operation = tree.operation()
        before = tree.completed()
        try:
            planned = plan_operation(run_id, operation)
        except RequestRefused:
            with pytest.raises(RequestRefused), run_commit_hooks():
                apply_operation(run_id, operation, ACTOR)
            continue
        named = tree.named(planned)
        kept = {path: facts for path, facts in before.items() if path not in named}
        above = tree.path_of(run_id, "")[:-1]
        asked_for = set() if operation.resume_children else {path for path in before if path[: len(above)] == above}
        assert named & before.keys() <= asked_for, "work is done again that the caller has not asked for"

        with run_commit_hooks():
            apply_operation(run_id, operation, ACTOR, revision=planned.revision)

        after = tree.completed()
        assert {path: after.get(path) for path in kept} == kept, (operation, run_id)
        given = tree.work(tree.random.randint(1, MAX_REPORTS), fails=0.1)
        assert set(given) & kept.keys() == set(), (operation, run_id)
        assert [each for run in tree.runs() for each in row_violations(run.pk)] == []
        if tree.scenario.row.ended_at is None:
            tree.scenario.terminate()
