"""FORK_JOIN: starts several branches in parallel, and the join that waits for them."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect
from ..snapshot import Task
from ..states import COMPLETED_WITH_ERRORS
from ..step_structure import Body, Document, Flow, as_steps
from .base import StepType, completed_task, resolve_inputs
from .dynamic_branches import require_join


class ForkJoin(StepType):
    """Leads to the head of every branch and to its join; completes at once (execution §8.5)."""

    type = "FORK_JOIN"
    flow = Flow.FORK
    required_fields = ("forkTasks",)
    forwards_failures = True
    shows_isolation_group = True
    missing_join = "Fork task definition is not followed by a join task.  Check the blueprint"
    is_retried = False

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        require_join(step, ctx.run)
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        yield completed_task(step, key, ctx.run, now, input=inputs, output={})

    def bodies(self, step: Document) -> Iterator[Body]:
        for number, branch in enumerate(as_steps(step.get("forkTasks"))):
            place = f"forkTasks[{number}]"
            yield Body(place, ("forkTasks", number), place, as_steps(branch))

    def successors(self, task: Task) -> Iterator[Key]:
        # An optional fork that could not be entered is skipped, because no join would wait for its branches.
        heads = () if task.status == COMPLETED_WITH_ERRORS else task.step.heads
        for head in (*heads, task.step.follower):
            if head and task.lets_control_pass:
                yield Key(head, task.key.iteration_path)
