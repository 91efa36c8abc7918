"""JDBC: executes an SQL statement."""

from .built_in import BuiltIn


class JdbcStep(BuiltIn):
    """Executed by a built-in worker."""

    type = "JDBC"
    required_inputs = ("statement",)
