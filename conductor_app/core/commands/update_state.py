"""Change the variables of a running workflow, and apply a report to one of its open tasks."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..decision_context import Command, DecisionContext
from ..effects import Effect, SetVariables
from ..errors import Invalid, NotAllowedInState
from ..masking import masked_names, restore_named
from ..reports import Report, apply_report
from ..snapshot import Run
from ..step_types.set_variable import MAX_BYTES


def set_variables(given: Mapping[str, Any], appends: bool = False) -> Command:
    """Return the command that merges variables into those of the run, by name.

    A masked variable given as `***` keeps its value. `appends`: values are appended to variables that are lists.

    Raises:
        NotAllowedInState: when the command is applied and the run has ended.
        Invalid: when the command is applied and the variables exceed the size limit.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if not run.is_open:
            raise NotAllowedInState(f"Workflow {run.id} is {run.status}. Its variables can no longer be changed.")
        known = ctx.variables()
        fresh = (
            {name: _append_value(known.get(name), value) for name, value in given.items()}
            if appends
            else restore_named(dict(given), known, masked_names(run.definition))
        )
        variables = {**known, **fresh}
        size = len(json.dumps(variables, default=str))
        if size > MAX_BYTES:
            raise Invalid(f"The variables of the workflow have {size} bytes. The limit is {MAX_BYTES} bytes.")
        yield SetVariables(variables)

    return command


def _append_value(known: Any, value: Any) -> Any:
    if not isinstance(known, list):
        return value
    return [*known, *(value if isinstance(value, list) else [value])]


def update_state(variables: Mapping[str, Any], attempt_id: str, report: Report | None) -> Command:
    """Return the command that sets variables and applies a report to an attempt, both or neither."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if variables or report is None:
            yield from set_variables(variables)(run, ctx, now)
        if report is not None:
            yield from apply_report(attempt_id, report)(run, ctx, now)

    return command
