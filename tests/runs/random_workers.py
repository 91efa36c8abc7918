"""Random workers on real rows: they complete, fail, hang, answer twice, answer late, hand back and crash."""

from contextlib import suppress
from random import Random

from conductor_app.core.commands import no_command
from conductor_app.core.decide import Report, apply_report
from conductor_app.core.errors import Conflict, NotFound, RequestRefused
from conductor_app.definitions import commands as definition_commands
from conductor_app.definitions.store import load_definition
from conductor_app.runs.commands import repair as skip_and_jump
from conductor_app.runs.models import Attempt
from conductor_app.runs.store import due_rows
from conductor_app.tasks.commands import reports as task_commands
from conductor_app.tasks.commands.claims import claim_tasks
from tests.builders import definition, step
from tests.random_definitions import TYPES, random_definition
from tests.random_versions import next_version
from tests.runs.report_contexts import decide_command, decision_differences, normalized_decision, row_violations
from tests.scenario import ACTOR, Scenario, run_commit_hooks

OUTCOMES = ["COMPLETED"] * 7 + ["FAILED", "FAILED", "FAILED_FOR_GOOD", "CANCELED", "TIMED_OUT"]
HELD_BY_ENGINE = ("JOIN", "DO_WHILE", "FOR_EACH", "FOR_EACH_ITEM", "TRY_CATCH", "EXCLUSIVE_JOIN", "SUB_WORKFLOW")
MAX_ROUNDS = 300


class RandomWorkers:
    """One run and the attempts that its workers have claimed."""

    def __init__(self, clock, seed: int, detours: float = 0) -> None:
        """Create a run; `detours` is the probability that an operator skips or jumps."""
        self.random, self.detours, self.taken = Random(seed), detours, 0
        self.newest = 1
        document = random_definition(self.random, children=True, failureWorkflow="cleanup")
        child = definition(step("x", "pay"), step("y", "mail"), name="child")
        cleanup = definition(step("sweep"), name="cleanup")
        steps = document.pop("tasks")
        self.scenario = Scenario(clock, steps, others=[child, cleanup], **document)
        self.held: list[Attempt] = []
        self.ended: list[Attempt] = []
        self.compared = self.read_whole = self.bad_ends = 0

    def live(self, steps: int) -> None:
        """Perform random actions and check all invariants after each."""
        for _ in range(steps):
            before = self.scenario.status
            self.random.choice([self.poll, self.poll, self.report, self.report, self.report, self.rest, self.person])()
            if self.random.random() < (0.3 if self.detours else 0.05):
                self.operator()
            self.check(before)
            if self.scenario.row.ended_at and not self.retry_run():
                break

    def retry_run(self) -> bool:
        """Let the operator retry the run if it failed."""
        if self.scenario.status == "COMPLETED" or self.random.random() < 0.4:
            return False
        try:
            self.scenario.retry()
        except Conflict:
            return False
        self.count_bad_end("RUNNING")
        return self.scenario.row.ended_at is None

    def check(self, before: str) -> None:
        self.count_bad_end(before)
        assert row_violations(self.scenario.id) == []

    def count_bad_end(self, before: str) -> None:
        self.bad_ends += before in ("RUNNING", "PAUSED") and self.scenario.status in (
            "FAILED",
            "TIMED_OUT",
            "TERMINATED",
        )

    def poll(self) -> None:
        with run_commit_hooks():
            taken = claim_tasks(self.random.choice(TYPES), worker="w", count=self.random.randint(1, 3), wait_ms=0)
        out = {attempt.id for attempt in self.held if self.is_in(attempt, "LEASED")}
        assert not out & {attempt.id for attempt in taken}, "an attempt was handed to two workers"
        self.held = [attempt for attempt in self.held if attempt.id in out] + taken

    @staticmethod
    def is_in(attempt: Attempt, *statuses: str) -> bool:
        return Attempt.objects.filter(pk=attempt.id, status__in=statuses).exists()

    def report(self) -> None:
        stale = self.ended and self.random.random() < 0.15
        if not stale and not self.held:
            return
        attempt = self.random.choice(self.ended if stale else self.held)
        outcome = "IN_PROGRESS" if self.random.random() < 0.15 else self.random.choice(OUTCOMES)
        said = Report(outcome, {"n": self.random.randint(1, 9)}, "by chance", self.random.choice((0, 9)))
        self.report_and_count(attempt, said)
        if outcome != "IN_PROGRESS":
            self.ended.append(attempt)
        self.held = [held for held in self.held if held.id != attempt.id]

    def person(self) -> None:
        """Report on a WAIT or HUMAN task."""
        waiting = Attempt.objects.filter(run_id=self.scenario.id, status="LEASED", task__type__in=("HUMAN", "WAIT"))
        if found := list(waiting.order_by("seq")):
            self.report_and_count(
                self.random.choice(found), Report(self.random.choice(OUTCOMES), {"n": 1}, "said a person")
            )

    def report_and_count(self, attempt: Attempt, said: Report) -> bool:
        if self.is_in(attempt, "LEASED", "PENDING"):
            self.compare(attempt.run_id, [attempt.id], apply_report(attempt.id, said))
        try:
            with run_commit_hooks():
                return task_commands.report_task(attempt.run_id, attempt.id, said, ACTOR)
        except NotFound:
            # A loop with `keepLastN` has deleted it.
            return False

    def compare(self, run_id: str, near: list[str], command) -> None:
        try:
            from_whole, _ = decide_command(run_id, None, command)
        except Conflict:
            return
        from_near, read_whole = decide_command(run_id, near, command)
        self.compared += 1
        self.read_whole += read_whole
        assert decision_differences(normalized_decision(from_near), normalized_decision(from_whole)) == {}

    def rest(self) -> None:
        """Advance the time; the effects of due timers are compared too."""
        moment = due_rows.next_due_moment()
        seconds = self.random.choice((1, 9, 30))
        if moment is not None and moment <= self.scenario.clock.now() + seconds * 1000:
            self.scenario._at(moment)
            for found in due_rows.due_attempts(self.scenario.clock.now(), 100):
                self.compare(found.run_id, found.attempt_ids, no_command)
        self.scenario.later(seconds)

    def operator(self) -> None:
        if self.scenario.status == "RUNNING" and self.random.random() < self.detours:
            self.detour()
        elif self.scenario.status == "RUNNING":
            self.scenario.pause()
            if self.random.random() < 0.5:
                self.rest()
        if self.scenario.status == "PAUSED":
            self.scenario.resume()

    def detour(self) -> None:
        """Let the operator skip or jump where the run allows it."""
        known = load_definition(self.scenario.row.resolved_definition_id)
        with suppress(RequestRefused):
            if self.random.random() < 0.3:
                document = next_version(self.random, dict(known.document) | {"version": self.newest})
                self.newest = document["version"]
                definition_commands.save_workflow(document, ACTOR, overwrite=True)
                with run_commit_hooks():
                    skip_and_jump.upgrade_run(self.scenario.id, known.name, self.newest, ACTOR)
            else:
                act = self.random.choice((self.scenario.skip, self.scenario.jump))
                act(self.random.choice(sorted(known.steps)))
            self.taken += 1

    def ready(self):
        """Return the attempts of the run and its children that can be reported on."""
        visible = Attempt.objects.open().filter(visible_at__lte=self.scenario.clock.now())
        ours = visible.exclude(run__name="cleanup").exclude(queue="", task__type__in=HELD_BY_ENGINE)
        return ours.order_by("seq")

    def finish(self) -> None:
        """Complete all tasks until the run has ended.

        Raises:
            AssertionError: the run does not end.
        """
        for _ in range(MAX_ROUNDS):
            before = self.scenario.status
            if self.scenario.row.ended_at:
                return
            if found := self.ready().first():
                self.report_and_count(found, Report("COMPLETED", {"n": 1}))
            else:
                self.scenario.later(60)
            self.check(before)
        raise AssertionError(f"it does not end: {self.scenario.statuses}")
