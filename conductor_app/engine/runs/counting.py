"""Update the metrics of runs and attempts after a decision is committed."""

from collections.abc import Sequence

from ...core.decide import Decision
from ...core.effects import CreateTask, TransitionAttempt
from ...core.reports import EVENTS
from ...core.snapshot import Run
from ...core.standalone import effects as standalone_effects
from ...core.standalone.snapshot import StandaloneTask
from ...core.states import ATTEMPT, RUN
from ...store.standalone_tasks import STANDALONE
from ...telemetry.metrics import ATTEMPTS_ENDED, RUNS_ENDED, RUNS_STARTED
from ..queues import throughput

OUTCOMES = {event: outcome for outcome, event in EVENTS.items()}


def count_decision(before: Run, decision: Decision) -> None:
    """Count the run that the decision started or ended, and the attempts that it ended."""
    if before.revision == 0:
        RUNS_STARTED.count(before.definition.name)
    if before.status in RUN.open and decision.after.status in RUN.final:
        RUNS_ENDED.count(before.definition.name, decision.after.status)
    throughput.record_decision(before, decision)
    for effect in decision.effects:
        if isinstance(effect, TransitionAttempt) and effect.event in OUTCOMES:
            ATTEMPTS_ENDED.count(_type_of(effect, before, decision.after), OUTCOMES[effect.event])
        elif isinstance(effect, CreateTask) and (status := effect.task.attempt.status) in ATTEMPT.final:
            ATTEMPTS_ENDED.count(effect.task.step.type, status)


def count_standalone(before: StandaloneTask, effects: Sequence[standalone_effects.Effect]) -> None:
    """Count the attempts that a decision on a standalone task ended."""
    throughput.record_standalone_decision(before, effects)
    for effect in effects:
        if isinstance(effect, standalone_effects.TransitionStandaloneAttempt) and effect.event in OUTCOMES:
            ATTEMPTS_ENDED.count(STANDALONE, OUTCOMES[effect.event])


def _type_of(effect: TransitionAttempt, before: Run, after: Run) -> str:
    # The decision that ends an iteration may also delete its tasks: they are only in the snapshot before it.
    task = after.tasks.get(effect.key) or before.tasks.get(effect.key)
    return task.step.type if task else ""
