"""JDBC: executes an SQL statement."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..data_requests import CONNECTION_TARGET
from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect
from .base import resolve_inputs
from .built_in import BuiltIn


class JdbcStep(BuiltIn):
    """Executed by a built-in worker."""

    type = "JDBC"
    icon = "database"
    required_inputs = ("statement",)

    def named_connections(self, step: Mapping[str, Any]) -> Iterator[Any]:
        inputs = step.get("inputParameters")
        if isinstance(inputs, Mapping):
            yield inputs.get("connectionId") or inputs.get("integrationName")

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        name = next(self.named_connections({"inputParameters": inputs}))
        written = next(self.named_connections({"inputParameters": step.inputs}))
        if isinstance(name, str) and name:
            ctx.require_use(CONNECTION_TARGET, name, is_authored=step.is_authored and written == name)
        yield from super().enter(step, key, ctx, now)
