"""Change what a run knows while it is under way: its variables, and what an open task came to."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..decision_context import DecisionContext
from ..effects import Effect, SetVariables
from ..errors import Invalid, NotAllowedInState
from ..masking import masked_names, restore_named
from ..reports import Report, apply_report
from ..snapshot import Run
from ..step_types.set_variable import MOST_BYTES


def set_variables(given: Mapping[str, Any], appends: bool = False):
    """The command that lays these variables over the run's own, by name; what waits looks again.

    What reads `***`, because the definition masks it, stays what it is. `appends`: values are added to those variables
    that are lists.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if not run.is_open:
            raise NotAllowedInState(f"Workflow {run.id} is {run.status}: its variables change no more.")
        known = ctx.variables()
        fresh = (
            {name: _append_value(known.get(name), value) for name, value in given.items()}
            if appends
            else restore_named(dict(given), known, masked_names(run.definition))
        )
        variables = {**known, **fresh}
        size = len(json.dumps(variables, default=str))
        if size > MOST_BYTES:
            raise Invalid(f"The workflow's variables would take {size} bytes; {MOST_BYTES} are allowed.")
        yield SetVariables(variables)

    return command


def _append_value(known: Any, value: Any) -> Any:
    if not isinstance(known, list):
        return value
    return [*known, *(value if isinstance(value, list) else [value])]


def update_state(variables: Mapping[str, Any], attempt_id: str, report: Report | None):
    """The command that sets variables and hears a report on an attempt, both or neither."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if variables or report is None:
            yield from set_variables(variables)(run, ctx, now)
        if report is not None:
            yield from apply_report(attempt_id, report)(run, ctx, now)

    return command
