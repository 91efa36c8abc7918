"""Restart an ended run from the beginning, under its id (execution §7.2)."""

from collections.abc import Iterator

from ..decision_context import Command, DecisionContext
from ..definition import Definition
from ..effects import Effect, SetVariables, TransitionRun
from ..errors import NotAllowedInState, NotFound
from ..snapshot import Run
from ..states import COMPLETED, RUN
from .reopen import delete_tasks, notify_parent, reopened_run_facts, require_whole_run


def restart_run(definition: Definition | None = None) -> Command:
    """Return the command that deletes all tasks and starts again, with this definition if one is given.

    Raises:
        NotAllowedInState: when the command is applied and the run is open.
        NotFound: when the command is applied and the definition is not restartable.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        new_definition = definition or run.definition
        if run.is_open:
            raise NotAllowedInState(f"Workflow {run.id} is {run.status}. Only an ended workflow can be restarted.")
        RUN.after(run.status, "restart")
        if run.status == COMPLETED and run.definition.document.get("restartable") is False:
            name, version = run.definition.name, run.definition.version
            raise NotFound(
                f"Workflow {run.id} is an instance of workflow {name}, version {version}, and is non restartable."
            )
        require_whole_run(run)
        start_facts = {"created_at": now, "last_retried_at": 0, "next_seq": 1, "definition": new_definition}
        yield TransitionRun("restart", now, {**reopened_run_facts(now), **start_facts})
        # Unlike in Conductor, a restart resets the variables (§11 row 34).
        yield SetVariables(dict(new_definition.document.get("variables") or {}))
        yield from delete_tasks(run, run.tasks)
        yield from notify_parent(run, "restarted")

    return command
