"""JDBC: executes an SQL statement."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..ai_names import NamedUse, is_name
from ..data_requests import CONNECTION_TARGET
from .built_in import BuiltIn


class JdbcStep(BuiltIn):
    """Executed by a built-in worker."""

    type = "JDBC"
    icon = "database"
    required_inputs = ("statement",)
    naming_inputs = ("connectionId", "integrationName")

    def named_objects(self, inputs: Any) -> Iterator[NamedUse]:
        name = inputs.get("connectionId") or inputs.get("integrationName") if isinstance(inputs, Mapping) else None
        if is_name(name):
            yield NamedUse(CONNECTION_TARGET, name, "connectionId")
