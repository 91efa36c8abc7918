"""Begin an ended run anew, under its id (execution §7.2)."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Definition
from ..effects import Effect, SetVariables, TransitionRun
from ..errors import NotAllowedInState, NotFound
from ..snapshot import Run
from ..states import COMPLETED, RUN
from .reopen import delete_tasks, notify_parent, reopened_run_facts, require_whole_run


def restart_run(definition: Definition | None = None):
    """The command that forgets all tasks and begins anew, by this definition if one is given."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        plan = definition or run.definition
        if run.is_open:
            raise NotAllowedInState(f"Workflow {run.id} is {run.status}: only one that has ended can be restarted.")
        RUN.after(run.status, "restart")
        if run.status == COMPLETED and run.definition.document.get("restartable") is False:
            name, version = run.definition.name, run.definition.version
            raise NotFound(
                f"Workflow {run.id} is an instance of workflow {name}, version {version}, and is non restartable."
            )
        require_whole_run(run)
        begun = {"created_at": now, "last_retried_at": 0, "next_seq": 1, "definition": plan}
        yield TransitionRun("restart", now, {**reopened_run_facts(now), **begun})
        # Unlike in the original: what the run has made of its variables is no part of its beginning (§11 row 34).
        yield SetVariables(dict(plan.document.get("variables") or {}))
        yield from delete_tasks(run, run.tasks)
        yield from notify_parent(run, "restarted")

    return command
